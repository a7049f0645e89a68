"""Runs as people handle them: look, follow, stop; and the questions that runs ask."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman.access.policies import is_person
from dragoman.calls.audit import Auditor
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.events import Event, Events
from dragoman.hub.engine import Workshop, open_engine
from dragoman.run import Message, Question, Run, RunEvent, RunStatus, Step
from dragoman.runs.questions import Questions
from dragoman.runs.streams import Streams
from dragoman.scope import Caller
from dragoman.store import Store
from dragoman.store.run_protocols import Accepted

if TYPE_CHECKING:
    from dragoman.runs.dispatch import Dispatch


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run with everything under it: for a timeline. Steps are those of `run` alone."""

    run: Run
    family: Sequence[Run]
    steps: Sequence[Step]
    events: Sequence[RunEvent]


class Runs:
    """Every method acts for `caller`, by default the hub's own. A run is its user's alone."""

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        streams: Streams,
        questions: Questions,
        auditor: Auditor,
        events: Events,
        workshop: Workshop,
    ) -> None:
        self._caller = caller
        self._store = store
        self._streams = streams
        self._questions = questions
        self._auditor = auditor
        self._events = events
        self._workshop = workshop
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._dispatch: Dispatch | None = None

    async def __aenter__(self) -> "Runs":
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._streams.close()
        await self._stack.aclose()

    async def open(self) -> "Dispatch":
        """What executes; opened by the first who needs it."""
        if self._dispatch is None:
            async with self._opening:
                if self._dispatch is None:
                    self._dispatch = await self._stack.enter_async_context(open_engine(self._workshop))
        return self._dispatch

    async def accept(self, run: Run, message: Message | None) -> Accepted:
        """Once this returns the run is on disk and will be executed, whatever happens."""
        accepted = await self._store.runs.accept(run, message)
        if accepted.message is not None:
            self._tell_message(accepted.message)
        await (await self.open()).take(accepted.run)
        return accepted

    async def finished(self, run: Run) -> Run:
        """Waits for its end."""
        async for _ in self._streams.follow(run):
            pass
        return await self.get(run.id, _owner(run))

    async def list(
        self,
        caller: Caller | None = None,
        *,
        thread: str | None = None,
        agent: str | None = None,
        status: RunStatus | None = None,
        roots_only: bool = True,
        before: datetime | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """The caller's own, newest first."""
        caller = caller or self._caller
        return await self._store.runs.list(
            caller.workspace,
            caller.user,
            thread=thread,
            agent=agent,
            status=status,
            roots_only=roots_only,
            before=before,
            limit=limit,
        )

    async def get(self, run: str, caller: Caller | None = None) -> Run:
        caller = caller or self._caller
        found = await self._store.runs.find(caller.workspace, run)
        if found is None or found.user != caller.user:
            raise NotFound(f"there is no run {run[:80]!r}", hint="dragoman runs list shows those there are")
        return found

    async def view(self, run: str, caller: Caller | None = None) -> RunView:
        found = await self.get(run, caller)
        rows = self._store.runs
        return RunView(
            run=found,
            family=await rows.family(found.workspace, found.root),
            steps=await rows.steps(found.workspace, found.id),
            events=await rows.events(found.workspace, found.root, limit=10_000),
        )

    async def cancel(self, run: str, caller: Caller | None = None) -> Run:
        """Stops it with all that is under it; calls under way are cancelled at their servers."""
        caller = caller or self._caller
        found = await self.get(run, caller)
        if not found.is_root:
            found = await self.get(found.root, caller)
        if not await self._store.runs.ask_cancel(found.workspace, found.id):
            raise Conflict(f"the run {found.id} has ended already", hint="there is nothing to stop")
        if self._dispatch is not None:
            self._dispatch.cancel(found.id)
            self._dispatch.wake()
        await self._auditor.done(caller, "run.cancelled", found.id)
        return await self.get(found.id, caller)

    async def follow(self, run: str, after: int = 0, caller: Caller | None = None) -> AsyncIterator[RunEvent]:
        """What happens in a run and under it, from a number on, until its end."""
        found = await self.get(run, caller)
        async for event in self._streams.follow(found, after):
            yield event

    async def follow_thread(
        self, thread: str, after: tuple[str, int] | None = None, caller: Caller | None = None
    ) -> AsyncIterator[RunEvent]:
        """What happens in a thread, one run after the other, without end."""
        caller = caller or self._caller
        async for event in self._streams.follow_thread(caller.workspace, caller.user, thread, after):
            yield event

    # Questions

    async def questions(
        self,
        caller: Caller | None = None,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        caller = caller or self._caller
        return await self._store.questions.list(
            caller.workspace, caller.user, thread=thread, status=status, limit=limit
        )

    async def question(self, question: str, caller: Caller | None = None) -> Question:
        caller = caller or self._caller
        found = await self._store.questions.find(caller.workspace, caller.user, question)
        if found is None:
            raise NotFound(
                f"there is no question {question[:80]!r}",
                hint="dragoman questions list shows those there are",
            )
        return found

    async def answer(self, question: str, answer: Any, caller: Caller | None = None) -> Question:
        """The run that asked goes on with it. Only a person answers."""
        caller = caller or self._caller
        if not is_person(caller):
            raise Denied("only a person answers", hint="answer by the console, by REST or by the command")
        found = await self.question(question, caller)
        if answer in (None, ""):
            raise InvalidArguments("an answer cannot be empty", hint="write what the agent should go on with")
        now = datetime.now(UTC)
        if not await self._store.questions.answer(found.workspace, found.user, found.id, answer, now):
            raise Conflict(
                f"the question {found.id} is {found.status if found.status != 'pending' else 'over'}",
                hint="ask the agent again",
            )
        self._questions.tell_answered(found.id)
        await self._auditor.done(caller, "question.answered", found.id, details={"run": found.run})
        self._events.publish(
            Event(
                kind="question.answered",
                workspace=found.workspace,
                user=found.user,
                data={"id": found.id, "thread": found.thread},
            )
        )
        return await self.question(question, caller)

    async def resume_left(self) -> None:
        """At a start: whatever was under way when the last process ended goes on."""
        if await self._store.runs.has_open():
            await self.open()

    def _tell_message(self, message: Message) -> None:
        facts = {"thread": message.thread, "number": message.number, "author": message.author}
        self._events.publish(
            Event(kind="message.added", workspace=message.workspace, user=message.user, data=facts)
        )


def _owner(run: Run) -> Caller:
    return Caller(workspace=run.workspace, user=run.user)
