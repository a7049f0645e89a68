"""What other nodes ask of the connections that this node holds. It speaks the wire, and decides nothing.

Rights, redaction, budgets and the trail are where the call came from: on that node's road. Each request has
an id: asked twice, it is made once. What came of it is remembered for a while.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

from dragoman.background_tasks import BackgroundTasks
from dragoman.cluster.places import NodeMessage, NotHeld, Places
from dragoman.connections.deadline import Deadline
from dragoman.connections.link_pool import Key, key_of
from dragoman.connections.placed_messages import (
    Target,
    dump_error,
    dump_listing,
    dump_result,
    dump_status,
    load_call,
    load_deadline,
    load_question,
)
from dragoman.connections.pool import Connections
from dragoman.connector import Connector
from dragoman.errors import Conflict, DragomanError, InputRequired, Internal, ShuttingDown, Unreachable
from dragoman.scope import Caller, holder_caller
from dragoman.tool import AdmittedCall

Json = dict[str, Any]
Outcome = tuple[str, Any]
_RESULTS_LIVE = 10.0  # seconds that a result is kept for who did not hear it
_IDS_LIVE = 120.0  # seconds that an id is known after its request was done
UNKNOWN_COUNTS = 30.0  # an id that is not known was never seen, if it was sent within so many seconds
_BEHIND = 1.0  # seconds to hear of a change that another node has heard of
_LOOK = 1.0
_TIME_TO_MOVE = 10.0
_LAST_WORDS = 1.0  # seconds to say what came of requests, once their connections are closed
_MISSED = 3  # looks in a row at which a node is not there


class CallGate(Protocol):
    """The room of one connector; see `ConcurrencyGate`."""

    async def enter(self, connector: Connector, deadline: float) -> None: ...

    def leave(self, connector: Connector) -> None: ...


class RequestChannel:
    """Fills `SourceChannel` for a call of another node: what is told and asked goes there."""

    def __init__(self, message: NodeMessage, deadline: Deadline) -> None:
        said = message.body["channel"]
        self.capabilities: Mapping[str, Any] = said["capabilities"]
        self.inputs: Mapping[str, Any] = said["inputs"]
        self.meta: Mapping[str, Any] = said.get("meta") or {}
        self.retries: bool = said["retries"] is True
        self.task: str | None = said.get("task")
        self.is_left: bool = said.get("left") is True
        self.notes: Json = {}
        self._message = message
        self._deadline = deadline
        self._asked: dict[int, tuple[Json, asyncio.Future[Any]]] = {}
        self._count = 0

    async def keep_task(self, task: str) -> None:
        self.task = task
        await self._message.reply("task", task)

    def note_pending(self, asked: Mapping[str, Any]) -> None:
        self.notes["pending"] = asked

    def note_refused(self, code: int, message: str, data: Any) -> None:
        self.notes["refused"] = [code, message, data]

    def note_admitted(self, admitted: AdmittedCall) -> None:
        self.notes["admitted"] = True

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.extend()
        await self._message.reply("progress", [progress, total, message])

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._count += 1
        number = self._count
        question: Json = {"number": number, "method": method, "params": params}
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = (question, answer)
        try:
            with self._deadline.waiting():
                await self._message.reply("question", question)
                said = await answer
        finally:
            del self._asked[number]
        if said.get("answer") is None:
            raise InputRequired(str(said.get("refused") or "nobody can be asked here"))
        return said["answer"]

    def decline(self, params: Mapping[str, Any], reason: str) -> dict[str, Any]:
        self.notes.setdefault("declined", []).append([params, reason])
        return {"action": "decline"}

    async def ask_again(self) -> None:
        """The question or its answer may have been lost."""
        for question, _ in [*self._asked.values()]:
            await self._message.reply("question", question)

    def answered(self, body: Any) -> None:
        question = self._asked.get(int(body["number"]))
        if question is not None and not question[1].done():
            question[1].set_result(body)


class _Job:
    """One request of another node."""

    __slots__ = ("channel", "done_at", "message", "outcome", "task")

    def __init__(self, message: NodeMessage) -> None:
        self.message = message
        self.channel: RequestChannel | None = None
        self.outcome: Outcome | None = None
        self.task: asyncio.Task[None] | None = None
        self.done_at = 0.0

    def cancel(self, said: Any) -> None:
        """What a server works on for a call that is over is cancelled there, too."""
        if self.channel is not None and isinstance(said, dict) and cast("Json", said).get("over") is True:
            self.channel.is_left = False
        if self.task is not None:
            self.task.cancel()


class Holder:
    """Makes what others ask for. `connector_of` knows connectors by their id."""

    def __init__(
        self,
        connections: Connections,
        places: Places,
        tasks: BackgroundTasks,
        connector_of: Callable[[str], Connector | None],
        gate_of: Callable[[Connector], CallGate | None],
    ) -> None:
        self._connections = connections
        self._places = places
        self._tasks = tasks
        self._connector_of = connector_of
        self._gate_of = gate_of
        self._jobs: dict[str, _Job] = {}
        self._with_result: deque[_Job] = deque()
        self._done: deque[_Job] = deque()
        self._moving: set[Key] = set()

    def take(self, message: NodeMessage) -> None:
        """Every message of another node comes here, in the order in which it was sent."""
        self._forget_old()
        job = self._jobs.get(message.id)
        match message.kind:
            case "answer":
                if job is not None and job.channel is not None:
                    job.channel.answered(message.body)
            case "cancel":
                if job is not None:
                    job.cancel(message.body)
            case "poll":
                self._tasks.start(self._tell(message, job), "say how a request is")
            case _ if job is None:
                job = self._jobs[message.id] = _Job(message)
                job.task = self._tasks.start(self._make(job), f"{message.kind} for another node")
            case _:
                self._tasks.start(self._tell(message, job), "say how a request is")

    async def _tell(self, message: NodeMessage, job: _Job | None) -> None:
        if job is None:
            await message.reply("unknown")
        elif job.outcome is not None:
            await self._answer(job)
        elif job.done_at:
            await message.reply("forgotten")
        else:
            await message.reply("running")
            if job.channel is not None:
                await job.channel.ask_again()

    async def _make(self, job: _Job) -> None:
        try:
            job.outcome = await self._outcome(job)
        except asyncio.CancelledError:
            job.outcome = "cancelled", None
            raise
        finally:
            job.done_at = asyncio.get_running_loop().time()
            self._with_result.append(job)
            self._done.append(job)
        await self._answer(job)

    async def _answer(self, job: _Job) -> None:
        # Once the lease is over nobody hears from here: another answer may count by then.
        if job.outcome is not None and (self._places.lease.is_held or job.outcome[0] == "moved"):
            kind, value = job.outcome
            notes = job.channel.notes if job.channel is not None else {}
            await job.message.reply(kind, {"value": value, "notes": notes})

    async def _outcome(self, job: _Job) -> Outcome:
        message = job.message
        try:
            return await self._made(job)
        except NotHeld:
            return "moved", None
        except ShuttingDown:
            return "moved", None
        except DragomanError as error:
            return "failed", dump_error(error)
        except (KeyError, TypeError, ValueError) as error:
            fault = Internal(
                f"a node cannot read what another asks of it ({message.kind}: {type(error).__name__})",
                hint="do all nodes have versions that go together? dragoman cluster status",
            )
            return "failed", dump_error(fault)

    async def _made(self, job: _Job) -> Outcome:
        kind, body = job.message.kind, job.message.body
        target = Target.of(body)
        key = (target.connector, target.identity)
        if key in self._moving or not await self._places.may_hold(key):
            raise NotHeld
        connector, caller = await self._newest(target), holder_caller(target.identity)
        if connector is None or key_of(connector, caller) != key:
            raise Unreachable("the connector was changed or removed meanwhile", hint="call again")
        servers = self._connections
        match kind:
            case "call":
                return "done", await self._called(job, connector, caller)
            case "ask":
                deadline = load_deadline(body)
                channel = job.channel = RequestChannel(job.message, deadline)
                return "done", await servers.ask(load_question(body, connector, caller, deadline, channel))
            case "list":
                return "done", dump_listing(await servers.list_tools(connector, caller))
            case "connect":
                return "done", dump_status(await servers.connect(connector, caller))
            case "disconnect":
                return "done", dump_status(await servers.disconnect(connector, caller))
            case "watch":
                return await self._watched(job, connector, caller, str(body["uri"]))
            case "move":
                return "done", await self.move(key, body["to"])
            case _:
                raise ValueError("no kind of request")

    async def _called(self, job: _Job, connector: Connector, caller: Caller) -> Any:
        body = job.message.body
        deadline = load_deadline(body)
        channel = job.channel = RequestChannel(job.message, deadline)
        call = load_call(body, connector, caller, deadline, channel)
        async with self._room(connector, deadline):
            return dump_result(await self._connections.call(call))

    @asynccontextmanager
    async def _room(self, connector: Connector, deadline: Deadline) -> AsyncGenerator[None]:
        """Calls from everywhere share the room that the connector has, unless they had theirs where they came
        from.
        """
        gate = self._gate_of(connector)
        if gate is None:
            yield
            return
        await gate.enter(connector, deadline.at)
        try:
            yield
        finally:
            gate.leave(connector)

    async def _newest(self, target: Target) -> Connector | None:
        """The connector, once this node has heard of the change that the other has heard of."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _BEHIND
        while True:
            found = self._connector_of(target.connector)
            if found is not None and found.revision >= target.revision:
                return found if found.enabled else None
            if loop.time() >= give_up or (found is None and self._connections.is_retired(target.connector)):
                return None
            await asyncio.sleep(0.02)

    async def _watched(self, job: _Job, connector: Connector, caller: Caller, uri: str) -> Outcome:
        """For as long as somebody over there wants it."""
        key = key_of(connector, caller)
        end = await self._connections.watch(connector, caller, uri)
        try:
            await job.message.reply("watched")
            await self.until_lost(key)
        finally:
            end()
        raise NotHeld

    async def move(self, key: Key, to: str | None, patience: float = _TIME_TO_MOVE) -> None:
        """Closes what this node holds and has node `to` hold it, or whoever asks next.

        `Conflict` where it is in use for longer than `patience` seconds: then it stays.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + patience
        self._moving.add(key)
        try:
            while not await self._connections.close_idle(key):
                if loop.time() >= give_up:
                    raise Conflict(
                        "the connection is in use and was not moved", hint="try again when its calls are done"
                    )
                await asyncio.sleep(0.05)
            await self._places.let_go(key, to, is_moved=True)
        finally:
            self._moving.discard(key)

    async def until_lost(self, key: Key) -> None:
        """Returns once this node does not hold it any more."""
        while self._places.holds(key) and key not in self._moving:  # noqa: ASYNC110 - a lease ends by the clock
            await asyncio.sleep(_LOOK)

    async def finish(self) -> None:
        """This node leaves: whoever asked hears what came of it, or that it was not made."""
        last = [job.task for job in self._jobs.values() if job.task and job.message.kind != "watch"]
        if last:
            await asyncio.wait(last, timeout=_LAST_WORDS)

    def is_moving(self, key: Key) -> bool:
        return key in self._moving

    async def end_orphans(self) -> None:
        """Requests of nodes that are gone: nobody waits for them any more."""
        missed: dict[str, int] = {}
        while True:
            await asyncio.sleep(2 * _LOOK)
            living = {*await self._places.present()}
            waiting = [job for job in self._jobs.values() if not job.done_at]
            gone = {job.message.node for job in waiting} - living
            missed = {node: missed.get(node, 0) + 1 for node in gone}
            for job in waiting:
                if missed.get(job.message.node, 0) >= _MISSED and job.task is not None:
                    job.task.cancel()

    def _forget_old(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._with_result and now - self._with_result[0].done_at > _RESULTS_LIVE:
            self._with_result.popleft().outcome = None
        while self._done and now - self._done[0].done_at > _IDS_LIVE:
            self._jobs.pop(self._done.popleft().message.id, None)
