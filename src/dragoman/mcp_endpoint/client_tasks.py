"""Calls of clients that take long or wait for a person, given to them as tasks of MCP.

In the 2026 era a client that declares the extension gets a task in place of a result as soon as its call
waits for a person or takes more than a moment; in the 2025 era one asks for a task with its call. How a task
stands is in the store, for the caller alone that began it, so that any process answers for it. The process
that works on it says so every few seconds; when it has ended, whoever is asked next enters the call again:
what has not left is made then, what a server works on as a task is followed, all else is `uncertain`.
Owns the tasks of asyncio; `stop` ends them.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any, Literal, cast

from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY

from dragoman.connections.server_tasks import EXTENSION, RELATED
from dragoman.errors import DragomanError, InputRequired
from dragoman.hub import clients_of
from dragoman.hub.door_clients import DoorClients
from dragoman.mcp_endpoint.channels import SessionChannel, can_answer, has_forms, signed
from dragoman.mcp_endpoint.messages import Params, RpcError, RpcRequest
from dragoman.mcp_endpoint.methods import McpMethods, stamped, told
from dragoman.mcp_endpoint.notifications import Tell
from dragoman.mcp_endpoint.request_context import RequestContext
from dragoman.mcp_endpoint.sessions import CANCELLED
from dragoman.tool import ClientChannel, NoChannel
from dragoman.web.encoding import encode

METHODS = frozenset({"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"})
AT_ONCE = 3.0
"""Seconds in which a call is answered with its result: most are, and a task costs another request."""
LASTS = 3600.0
MOST_PER_USER = 100
POLL = 2.0
RENEWED_EVERY = 5.0
GONE_AFTER = 20.0
"""Seconds without a word of the process that works on a task: then another does."""
_KIND, _CANCEL, _INPUT = "task", "task cancel", "task input"
_LOOK_EVERY = 0.5
Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
_OPEN = ("working", "input_required")
_UNANSWERED: Params = {"action": "cancel"}


@dataclass(frozen=True, slots=True)
class ClientTask:
    """How a task stands, as the store keeps it. `params` are those of its call."""

    id: str
    node: str
    params: Params
    is_modern: bool
    created: str
    updated: str
    seen: float
    status: Status = "working"
    message: str | None = None
    departed: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: Any = None
    error: Any = None

    @property
    def is_open(self) -> bool:
        return self.status in _OPEN

    def shown(self) -> dict[str, Any]:
        """In the words of its era."""
        facts: dict[str, Any] = {"taskId": self.id, "status": self.status}
        facts |= {"statusMessage": self.message} if self.message else {}
        facts |= {"createdAt": self.created, "lastUpdatedAt": self.updated}
        ttl, poll = ("ttlMs", "pollIntervalMs") if self.is_modern else ("ttl", "pollInterval")
        return facts | {ttl: int(LASTS * 1000), poll: int(POLL * 1000)}

    def detailed(self) -> dict[str, Any]:
        more = {"completed": ("result", self.result), "failed": ("error", self.error)}
        more["input_required"] = ("inputRequests", self.asked)
        name, value = more.get(self.status, ("", None))
        return {**self.shown(), name: value} if name else self.shown()


def takes_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client of the 2026 era declares that it takes a task in place of a result."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


def check_declared(capabilities: Mapping[str, Any]) -> None:
    """Raises `RpcError` for a client of the 2026 era that asks about tasks and does not say that it can."""
    if not takes_tasks(capabilities):
        needed: Params = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise RpcError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"Declare the extension {EXTENSION}", needed)


class ClientTasks:
    def __init__(self, answers: McpMethods) -> None:
        self._answers = answers
        self._running: dict[str, _RunningTask] = {}
        self._work: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        for work in self._work:
            work.cancel()

    async def call(self, request: RpcRequest, context: RequestContext) -> bytes:
        """The result of a call where it is there at once, else the task that it has become."""
        running = self._begun(_new_task(request, context), context)
        try:
            if context.is_modern:
                await running.first_word(AT_ONCE)
                if running.work.done():
                    return running.outcome()
            if not await running.hand_out():
                await asyncio.wait(
                    [running.work]
                )  # there are too many: this one waits as calls without tasks
                return running.outcome()
        except asyncio.CancelledError:
            running.cancel()
            raise
        task = running.task.shown()
        return encode(stamped({**task, "resultType": "task"}) if context.is_modern else {"task": task})

    async def answer(self, request: RpcRequest, context: RequestContext) -> bytes:
        """What a client asks about a task: one of `METHODS`."""
        method = request.method
        if method in (("tasks/result", "tasks/list") if context.is_modern else ("tasks/update",)):
            raise RpcError(METHOD_NOT_FOUND, "Method not found", method)
        if context.is_modern:
            check_declared(context.channel.capabilities)
        if method == "tasks/list":
            return await self._list(request.params, context)
        task_id = request.params.get("taskId")
        if not isinstance(task_id, str):
            raise RpcError(INVALID_PARAMS, "Invalid params: taskId must be a string")
        if method == "tasks/update":
            return await self._update(task_id, request.params, context)
        if method == "tasks/cancel":
            return await self._cancel(task_id, context)
        task = await self._found(task_id, context)
        if method == "tasks/get":
            return encode(stamped(task.detailed()) if context.is_modern else task.shown())
        return encode(await self._result(task, context))

    async def _list(self, params: Params, context: RequestContext) -> bytes:
        """2025 era: those that the caller began at this address, the newest first."""
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "Invalid params: this list has one page and no cursor")
        values = await clients_of(context.hub).list(
            _KIND, context.caller, lambda value: _words(json.loads(value)["id"], context)
        )
        tasks = [ClientTask(**json.loads(value)) for value in values]
        tasks.sort(key=lambda task: task.created, reverse=True)
        return encode({"tasks": [task.shown() for task in tasks]})

    async def _found(self, task_id: str, context: RequestContext) -> ClientTask:
        """As it stands. One whose process has ended goes on in this one."""
        running = self._running.get(task_id)
        if running is not None and running.is_of(context):
            return running.task
        task = await _kept(task_id, context)
        if task is None:
            raise _unknown()
        clients = clients_of(context.hub)
        is_gone = clients.is_gone(task.node) or clients.now().timestamp() - task.seen > GONE_AFTER
        if task.is_open and is_gone and await clients.take(_KIND, _words(task_id, context)):
            return await self._taken_over(task, context)
        return task

    async def _taken_over(self, task: ClientTask, context: RequestContext) -> ClientTask:
        mine = replace(task, node=clients_of(context.hub).node, status="working", asked={})
        running = self._begun(mine, replace(context, headers=None))  # those are of another request
        await running.hand_out()
        return running.task

    async def _result(self, task: ClientTask, context: RequestContext) -> dict[str, Any]:
        """2025 era: once it has ended. What it asks meanwhile is asked over this request."""
        while task.is_open:
            for key, question in task.asked.items():
                await self._take(task.id, {key: await _answered(question, task.id, context.channel)}, context)
            running = self._running.get(task.id)
            if running is not None:
                await asyncio.wait([running.work], timeout=_LOOK_EVERY)
                task = running.task
            else:
                await asyncio.sleep(_LOOK_EVERY)
                task = await self._found(task.id, context)
        if task.status == "cancelled":
            raise RpcError(CANCELLED, "Task cancelled")
        if task.error is not None:
            raise RpcError(task.error["code"], task.error["message"], task.error.get("data"))
        result = cast("dict[str, Any]", task.result)
        return {**result, "_meta": {**result.get("_meta", {}), RELATED: {"taskId": task.id}}}

    async def _cancel(self, task_id: str, context: RequestContext) -> bytes:
        """In whichever process it is worked on. One that has ended stays as it is."""
        is_here = task_id in self._running
        task = await self._found(task_id, context)
        running = self._running.get(task_id)
        if running is not None:
            if task.departed and not is_here:  # until it is followed again, nobody can tell its server
                await asyncio.wait([running.work], timeout=AT_ONCE)
            running.cancel()
            await asyncio.wait([running.work])
        elif task.is_open:
            await clients_of(context.hub).send(_CANCEL, (task_id,), b"", context.caller)
        elif not context.is_modern:
            raise RpcError(INVALID_PARAMS, f"Cannot cancel task: it is {task.status} already")
        return encode(stamped({}) if context.is_modern else {**task.shown(), "status": "cancelled"})

    async def _update(self, task_id: str, params: Params, context: RequestContext) -> bytes:
        answers = params.get("inputResponses")
        if not isinstance(answers, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        await self._take(task_id, cast("dict[str, Any]", answers), context)
        return encode(stamped({}))

    async def _take(self, task_id: str, answers: dict[str, Any], context: RequestContext) -> None:
        """To whichever process works on it."""
        running = self._running.get(task_id)
        if running is not None and running.is_of(context):
            running.channel.take(answers)
        elif await _kept(task_id, context) is None:
            raise _unknown()
        else:
            await clients_of(context.hub).send(_INPUT, (task_id,), encode(answers), context.caller)

    # News of tasks, in the 2026 era

    async def known(self, task_ids: Sequence[str], context: RequestContext) -> list[str]:
        """Those of them that the caller began at this address."""
        if len(task_ids) > MOST_PER_USER:
            raise RpcError(INVALID_PARAMS, f"Invalid params: {MOST_PER_USER} tasks are followed at most")
        return [one for one in task_ids if await _kept(one, context) is not None]

    async def follow(self, task_ids: Sequence[str], context: RequestContext, tell: Tell) -> None:
        """Tells how each stands, now and whenever that changes. Never ends by itself.

        A process that works on one says when to look; that may be lost, so it is looked anyway.
        """
        clients, changed, told = clients_of(context.hub), asyncio.Event(), dict[str, Any]()
        async with AsyncExitStack() as stack:
            for task_id in task_ids:
                words = _words(task_id, context)
                await stack.enter_async_context(clients.watching(_KIND, words, changed.set))
            while True:
                changed.clear()
                for task_id in [one for one in task_ids if one not in told or told[one][2]]:
                    with suppress(RpcError, DragomanError):  # its time is over, or the store is away
                        task = await self._found(task_id, context)
                        stands = (task.status, set(task.asked), task.is_open)
                        if told.get(task_id) != stands:
                            told[task_id] = stands
                            await tell("notifications/tasks", task.detailed())
                with suppress(TimeoutError):
                    async with asyncio.timeout(RENEWED_EVERY):
                        await changed.wait()

    def _begun(self, task: ClientTask, context: RequestContext) -> "_RunningTask":
        running = _RunningTask(task, context)
        # Held here and ended by `stop`: it outlives the request that began it.
        running.work = asyncio.get_running_loop().create_task(self._run(running))
        self._running[task.id] = running
        self._work.add(running.work)
        running.work.add_done_callback(self._work.discard)
        return running

    async def _run(self, running: "_RunningTask") -> None:
        clients, task_id = running.clients, running.task.id
        forget = (
            clients.expect(_CANCEL, (task_id,), lambda _: running.cancel()),
            clients.expect(_INPUT, (task_id,), lambda said: running.channel.take(json.loads(said))),
        )
        request = RpcRequest(id=task_id, method="tools/call", params=running.task.params)
        try:
            async with running.renewed():
                result = await self._answers.answer(request, running.context)
                await running.ends(status="completed", result=json.loads(result))
        except asyncio.CancelledError:
            if not running.is_cancelled:
                raise  # the process ends, the task does not
            await running.ends(status="cancelled")
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours is the failure of one task and no more
            refusal = told(error, method="tools/call")
            facts = {"code": refusal.code, "message": refusal.message, "data": refusal.data}
            await running.ends(status="failed", error={k: v for k, v in facts.items() if v is not None})
        finally:
            self._running.pop(task_id, None)
            for one in forget:
                one()


class _RunningTask:
    """A task at work in this process. Fills `CallObserver` for its call."""

    work: asyncio.Task[None]

    def __init__(self, task: ClientTask, context: RequestContext) -> None:
        self.task = task
        self.clients = clients_of(context.hub)
        may_approve = context.hub.settings.client_approvals
        self.channel = TaskChannel(self, context.channel.capabilities, may_approve=may_approve)
        self.context = replace(context, channel=self.channel, observer=self)
        self.name = f"task {task.id}"
        self.has_departed = task.departed
        self.is_cancelled = False
        self._is_kept = False
        self._writing = asyncio.Lock()
        self._waits = asyncio.Event()

    def is_of(self, context: RequestContext) -> bool:
        return _words(self.task.id, context) == _words(self.task.id, self.context)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.work.cancel()

    async def first_word(self, seconds: float) -> None:
        """Until it has ended, waits for a person, or has taken so long."""
        waits = asyncio.get_running_loop().create_task(self._waits.wait())
        try:
            await asyncio.wait([self.work, waits], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()

    def outcome(self) -> bytes:
        """Of one that was never handed out."""
        task = self.task
        if task.error is not None:
            raise RpcError(task.error["code"], task.error["message"], task.error.get("data"))
        if task.status != "completed":
            raise RpcError(CANCELLED, "Request cancelled")
        return encode(task.result)

    async def hand_out(self) -> bool:
        """Keeps it, before its client hears of it; False when the caller has too many."""
        self._is_kept = True
        self._is_kept = await self._put(most=MOST_PER_USER)
        return self._is_kept

    async def ends(self, **facts: Any) -> None:
        await self.change(asked={}, message=None, **facts)

    async def change(self, **facts: Any) -> None:
        before, self.task = self.task, replace(self.task, updated=_moment(), **facts)
        if not self._is_kept:
            return
        await self._put()
        if (self.task.status, self.task.asked) == (before.status, before.asked):
            return
        self.clients.wake(_KIND, _words(self.task.id, self.context))
        if self.context.subscriptions is not None and self.task.status != before.status:
            await self.context.subscriptions.tell("notifications/tasks/status", self.task.shown())

    async def _put(self, most: int | None = None) -> bool:
        words, caller = _words(self.task.id, self.context), self.context.caller
        async with self._writing:  # what was changed last is written last
            self.task = replace(self.task, seen=self.clients.now().timestamp())
            value = encode(asdict(self.task))
            return await self.clients.put(_KIND, words, value, caller, lasts=LASTS, most=most)

    def renewed(self) -> "_Renewal":
        return _Renewal(self)

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWED_EVERY)
            if self._is_kept and self.task.is_open:
                await self._put()

    # What its call tells

    @property
    def is_over(self) -> bool:
        return self.is_cancelled

    def awaits(self, approval: str) -> None:
        link = self.context.approval_link
        where = f" at {link[1]}" if link and link[1] else ""
        self.task = replace(self.task, message=f"waits for a person to answer approval {approval}{where}")
        self._waits.set()

    def goes_on(self) -> None:
        self.task = replace(self.task, message=None)

    async def departs(self, repeatable: bool) -> None:
        if repeatable:
            return
        if self._is_kept:
            kept = await _kept(self.task.id, self.context)
            if kept is None or kept.node != self.task.node:
                raise asyncio.CancelledError  # another process works on it: nothing leaves here
        await self.change(departed=True)

    async def asks(self, key: str, question: Mapping[str, Any]) -> None:
        await self.change(status="input_required", asked={**self.task.asked, key: question})
        self._waits.set()

    async def was_answered(self, key: str) -> None:
        asked = {name: one for name, one in self.task.asked.items() if name != key}
        await self.change(status="input_required" if asked else "working", asked=asked)


class _Renewal:
    """While a task is worked on, its process says so."""

    def __init__(self, running: _RunningTask) -> None:
        self._running = running

    async def __aenter__(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._running.renew())

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class TaskChannel(NoChannel):
    """Fills `ClientChannel` for a call that has become a task. What it asks is answered by `tasks/update`; in
    the 2025 era it is asked over the request for the task's result.
    """

    wants_progress = True

    def __init__(self, running: _RunningTask, capabilities: Mapping[str, Any], *, may_approve: bool) -> None:
        super().__init__()
        self.capabilities = capabilities
        self.patience = self.approval_wait = LASTS
        self.approves = may_approve and has_forms(capabilities)
        self._running = running
        self._answers: dict[str, asyncio.Future[Params]] = {}

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if message:
            self._running.task = replace(self._running.task, message=message, updated=_moment())

    async def ask(self, method: str, params: Params, connector: str) -> Params:
        if not can_answer(self.capabilities, method, params):
            raise InputRequired(f"this client cannot be asked for {method}")
        key = token_urlsafe(9)
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        try:
            await self._running.asks(key, {"method": method, "params": signed(params, connector)})
            return await answer
        finally:
            del self._answers[key]
            await self._running.was_answered(key)

    def take(self, answers: Mapping[str, Any]) -> None:
        """What answers nothing that is asked is left alone."""
        for key, said in answers.items():
            answer = self._answers.get(key)
            if answer is not None and not answer.done() and isinstance(said, dict):
                answer.set_result(cast("Params", said))


async def _answered(question: Mapping[str, Any], task_id: str, channel: ClientChannel) -> Params:
    """What the client says to it. One that will not be asked has answered nothing."""
    params: Params = question["params"]
    params = {**params, "_meta": {**params.get("_meta", {}), RELATED: {"taskId": task_id}}}
    if not isinstance(channel, SessionChannel):
        return _UNANSWERED
    try:
        return await channel.ask_signed(question["method"], params)
    except InputRequired:
        return _UNANSWERED


def _new_task(request: RpcRequest, context: RequestContext) -> ClientTask:
    moment = _moment()
    params = {name: request.params[name] for name in ("name", "arguments") if name in request.params}
    clients = clients_of(context.hub)
    return ClientTask(
        id=token_urlsafe(24),
        node=clients.node,
        params=params,
        is_modern=context.is_modern,
        created=moment,
        updated=moment,
        seen=clients.now().timestamp(),
    )


async def _kept(task_id: str, context: RequestContext) -> ClientTask | None:
    clients: DoorClients = clients_of(context.hub)
    found = await clients.find(_KIND, _words(task_id, context))
    return ClientTask(**json.loads(found)) if found else None


def _unknown() -> RpcError:
    return RpcError(INVALID_PARAMS, "Failed to retrieve task: Task not found")


def _words(task_id: str, context: RequestContext) -> tuple[str, ...]:
    """A task is for one caller at one address, in one era."""
    return task_id, context.caller.fingerprint, str(context.target), str(context.is_modern)


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
