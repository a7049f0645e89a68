"""Runs as people handle them: look, follow, stop; and the questions that runs ask."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman.access.approvals import is_person
from dragoman.agents import preload
from dragoman.catalog.schemas import TooMuchWork, compiled
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.events import Event
from dragoman.hints import told
from dragoman.hub.bound import BoundService
from dragoman.run import Message, Question, Run, RunEvent, RunSort, RunStatus, Step
from dragoman.run_progress import table_in
from dragoman.runs.run_endings import never_began
from dragoman.scope import Caller
from dragoman.store.records import AcceptedRun, JournalBatch

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime
    from dragoman.runs.sent_prompts import SentPrompt
    from dragoman.runs.timeline import Timeline

_MOST_EVENTS = 100_000
EVERYBODY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run with everything under it: for a timeline. Steps are those of `run` alone."""

    run: Run
    family: Sequence[Run]
    steps: Sequence[Step]
    events: Sequence[RunEvent]


class Runs(BoundService):
    """A run is its user's alone."""

    __slots__ = ()

    async def finished(self, run: Run) -> Run:
        """Waits for its end."""
        await self.get(run.id)
        return await self._runtime.engine.finished(run)

    async def list(
        self,
        *,
        thread: str | None = None,
        agent: str | None = None,
        status: RunStatus | None = None,
        roots_only: bool = True,
        before: datetime | None = None,
        query: str = "",
        user: str | None = None,
        among: int | None = None,
        sort: RunSort = "newest",
        after: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """The caller's own; `query` are words of the request.

        `among`: these words are looked for in no more than so many, the first ones. Admins may name a `user`
        of their workspace by id or name, or "*" for everybody. `after`: those that follow this run in the
        same list. Sorted by what they took, those that have not ended come last.
        """
        caller, whose = self._caller, await self._whose(user)
        if after is not None:
            last = await self._runtime.store.runs.find(caller.workspace, after)
            if last is None or whose not in (None, last.user):
                raise InvalidArguments("after is the last run of a page", hint="begin again without it")
        return await self._runtime.store.runs.list(
            caller.workspace,
            whose,
            thread=thread,
            agent=agent,
            status=status,
            roots_only=roots_only,
            before=before,
            words=" ".join(query.split()),
            among=among,
            sort=sort,
            after=after,
            limit=limit,
        )

    async def _whose(self, user: str | None) -> str | None:
        """The id of whose runs are meant; None is everybody."""
        caller = self._caller
        if user in (None, caller.user):
            return caller.user
        if _oversees(caller):
            if user == EVERYBODY:
                return None
            for one in await self._runtime.store.people.users(caller.workspace):
                if user in (one.id, one.name):
                    return one.id
        raise unknown_user(user)

    async def oversee(self, run: str) -> "Timeline":
        """The same as `timeline`, also of a run of somebody else for an admin: to read, and no more.

        That an admin looked is written into the audit trail.
        """
        caller = self._caller
        found = await self._runtime.store.runs.find(caller.workspace, run)
        if found is None or found.user == caller.user or not _oversees(caller):
            return await self.timeline(run)
        await self._runtime.auditor.done(caller, "run.overseen", found.id, details={"user": found.user})
        return await read_timeline(self._runtime, found)

    async def get(self, run: str) -> Run:
        """One run by its id. Raises `NotFound`."""
        return self._own(await self._runtime.store.runs.find(self._caller.workspace, run), run)

    def _own(self, found: Run | None, run: str) -> Run:
        caller = self._caller
        if found is None or (found.workspace, found.user) != (caller.workspace, caller.user):
            raise NotFound(f"there is no run {run[:80]!r}", hint="dragoman runs list shows those there are")
        return found

    async def view(self, run: str) -> RunView:
        """One run with its steps and those that it began."""
        found = await self.get(run)
        rows = self._runtime.store.runs
        return RunView(
            run=found,
            family=await rows.family(found.workspace, found.root),
            steps=await rows.steps(found.workspace, found.id),
            events=[_told(one) for one in await rows.events(found.workspace, found.root, limit=10_000)],
        )

    async def with_family(self, run: str) -> tuple[Run, Sequence[Run]]:
        """A run, and all of those that belong together with it: the root first."""
        found = await self.get(run)
        return found, await self._runtime.store.runs.family(found.workspace, found.root)

    async def timeline(self, run: str) -> "Timeline":
        """What happened in it and in the runs under it, for a person to follow."""
        return await read_timeline(self._runtime, await self.get(run))

    async def journals(self, run: str) -> Sequence[tuple[Run, Sequence[Step]]]:
        """A run and all that it started, each with its journal."""
        found, family = await self.with_family(run)
        rows = self._runtime.store.runs
        return [(one, await rows.steps(one.workspace, one.id)) for one in _under(found, family)]

    async def prompts(self, run: str) -> "Sequence[SentPrompt]":
        """What the models were sent in it and in the runs under it, without secrets."""
        journals = await self.journals(run)

        def read() -> "Sequence[SentPrompt]":
            preload.load()
            from dragoman.runs.sent_prompts import prompts_of

            runs, steps = [one for one, _ in journals], {one.id: steps for one, steps in journals}
            return prompts_of(runs, steps, self._runtime.engine.previews.text)

        return await asyncio.to_thread(read)

    async def thumb(self, run: str, thumb: int) -> Run:
        """What a person thinks of an answer: 1, -1, or 0 for nothing any more."""
        found = await self.get(run)
        if thumb not in (-1, 0, 1):
            raise InvalidArguments("a thumb is 1, -1 or 0", hint="1 is up, -1 is down, 0 takes it back")
        if not found.is_finished:
            raise Conflict(f"the run {found.id} has not ended yet", hint="wait for its answer")
        await self._runtime.store.rollout.thumb(found.workspace, found.root, thumb)
        if (number := await self._answer_of(found)) is not None:
            place = (found.workspace, found.user, found.thread)
            await self._runtime.store.threads.note(*place, number, {"thumb": thumb})
        return found

    async def is_disliked(self, run: Run) -> bool:
        """Whether its answer, or the one that it was a part of, has a thumb down."""
        said = await self._said(run)
        return any(one.details.get("thumb") == -1 for one in said if one.run in (run.id, run.root))

    async def _answer_of(self, run: Run) -> int | None:
        """The number of the message that the run ended with."""
        own = [one.number for one in await self._said(run) if one.run == run.id and one.author != "person"]
        return own[-1] if own else None

    async def _said(self, run: Run) -> Sequence[Message]:
        """What was said in its thread since it was asked."""
        root = run if run.is_root else await self._runtime.store.runs.find(run.workspace, run.root)
        if not run.thread or root is None:
            return []
        return await self._runtime.store.threads.messages(
            run.workspace, run.user, run.thread, after=root.message or 0
        )

    async def cancel(self, run: str) -> Run:
        """Stops it with all that is under it; calls under way are cancelled at their servers."""
        found = await self.get(run)
        if not found.is_root:
            found = await self.get(found.root)
        if not await self._runtime.store.runs.ask_cancel(found.workspace, found.id):
            raise Conflict(f"the run {found.id} has ended already", hint="there is nothing to stop")
        self._runtime.cluster.tell("cancelled", found.id)
        after = await self.get(found.id)
        if after.status == "cancelled" and after.started_at is None:  # nobody has begun it: nobody else tells
            number = await self._runtime.store.runs.last_event(after.workspace, after.id) + 1
            ending = never_began(after, number)
            await self._runtime.store.runs.write(JournalBatch(events=[ending]))
            self._runtime.engine.streams.publish([ending])
            self._runtime.engine.streams.end(after)
        await self._runtime.auditor.done(self._caller, "run.cancelled", found.id)
        return await self.get(found.id)

    async def has_told(self, run: str, after: int) -> bool:
        """Whether it has ended and nothing is left to tell after that number."""
        found = await self.get(run)
        root = found if found.is_root else await self.get(found.root)
        return (
            root.is_finished and await self._runtime.store.runs.last_event(root.workspace, root.id) <= after
        )

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[RunEvent]:
        """What happens in a run and under it, from a number on, until its end."""
        # Whoever writes to a crowd and follows hears of it at once: one that works here is not read first.
        live = self._runtime.engine.streams.find_live(run)
        found = await self.get(run) if live is None else self._own(live, run)
        async for event in self._runtime.engine.streams.follow(found, after):
            yield _told(event)

    async def follow_thread(
        self, thread: str, after: tuple[str, int] | None = None
    ) -> AsyncIterator[RunEvent]:
        """What happens in a thread, one run after the other, without end."""
        caller = self._caller
        async for event in self._runtime.engine.streams.follow_thread(
            caller.workspace, caller.user, thread, after
        ):
            yield _told(event)

    # Questions

    async def questions(
        self,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        """What runs ask persons: those without an answer unless said otherwise."""
        caller = self._caller
        return await self._runtime.store.runs.questions(
            caller.workspace, caller.user, thread=thread, status=status, limit=limit
        )

    async def question(self, question: str) -> Question:
        """One question of a run to a person. Raises `NotFound`."""
        caller = self._caller
        found = await self._runtime.store.runs.find_question(caller.workspace, caller.user, question)
        if found is None:
            raise NotFound(
                f"there is no question {question[:80]!r}",
                hint="dragoman questions list shows those there are",
            )
        return found

    async def answer(self, question: str, answer: Any) -> Question:
        """The run that asked goes on with it. Only a person answers."""
        self._check_person()
        found = await self.question(question)
        if found.url is not None:
            answer = {}  # that the person went there is all that is said
        if answer in (None, ""):
            raise InvalidArguments("an answer cannot be empty", hint="write what the agent should go on with")
        _check_fields(answer, found)
        now = datetime.now(UTC)
        if not await self._runtime.store.runs.answer(found.workspace, found.user, found.id, answer, now):
            raise _is_over(found)
        await self._answered(found)
        return await self.question(question)

    async def decline(self, question: str) -> Question:
        """The person will not answer; who asked goes on without. Only a person declines."""
        self._check_person()
        found = await self.question(question)
        if not await self._runtime.store.runs.decline(
            found.workspace, found.user, found.id, datetime.now(UTC)
        ):
            raise _is_over(found)
        await self._answered(found)
        return await self.question(question)

    async def answer_by(self, message: Message, question: Question) -> AcceptedRun | None:
        """The same with a message of the person; None, and nothing is written, when the question is over."""
        written = await self._runtime.store.runs.answer_by(message, question.id, datetime.now(UTC))
        if written is None:
            return None
        await self._answered(question)
        self._runtime.engine.tell_message(written)
        return AcceptedRun(run=await self.get(question.root), message=written)

    def _check_person(self) -> None:
        if not is_person(self._caller):
            raise Denied(
                "only a person answers", hint="a person answers, in the console or with a key of their own"
            )

    async def _answered(self, found: Question) -> None:
        self._runtime.engine.questions.tell_answered(found.id)
        await self._runtime.auditor.done(
            self._caller, "question.answered", found.id, details={"run": found.run}
        )
        self._runtime.events.publish(
            Event(
                kind="question.answered",
                workspace=found.workspace,
                user=found.user,
                data={"id": found.id, "thread": found.thread},
            )
        )


async def read_timeline(runtime: "Runtime", found: Run) -> "Timeline":
    """Whoever may see it: for services that have looked."""
    rows = runtime.store.runs
    family = await rows.family(found.workspace, found.root)
    steps = {one.id: await rows.steps(one.workspace, one.id) for one in _under(found, family)}
    events: list[RunEvent] = []
    last = 0
    while last < _MOST_EVENTS and (page := await rows.events(found.workspace, found.root, after=last)):
        events += [_told(event) for event in page if event.kind != "text"]
        last = page[-1].number

    def read() -> "Timeline":
        preload.load()
        from dragoman.runs.timeline import timeline_of

        return timeline_of(found, family, steps, events, runtime.engine.previews.text)

    # In a thread: it may be the first that needs pydantic-ai, and a journal may be long.
    return await asyncio.to_thread(read)


def unknown_user(user: str | None) -> NotFound:
    """For who does not look after others, and for keys that were not made for it."""
    hint = "admins see the users of their workspace, with a key that has the scope admin"
    return NotFound(f"there is no user {str(user)[:80]!r}", hint=hint)


def _oversees(caller: Caller) -> bool:
    """An admin's agent has no more to see than any other agent of theirs."""
    return caller.is_admin and is_person(caller)


def _told(event: RunEvent) -> RunEvent:
    """The event with its hint in the words of who listens; it is kept as a command."""
    error = table_in(event.data.get("error"))
    if not error.get("hint"):
        return event
    return replace(event, data={**event.data, "error": {**error, "hint": told(error["hint"])}})


def _under(run: Run, family: Sequence[Run]) -> list[Run]:
    """A run and all that it started, whoever did so in between."""
    found = {run.id: run}
    for one in family:  # oldest first: a parent comes before its children
        if one.parent in found:
            found[one.id] = one
    return [*found.values()]


def _is_over(question: Question) -> Conflict:
    state = "over" if question.status == "pending" else question.status
    return Conflict(f"the question {question.id} is {state}", hint="have it asked again")


def _check_fields(answer: Any, question: Question) -> None:
    """Where values of certain types are wanted, others would fail where they are used."""
    if question.fields is None:
        return
    if not isinstance(answer, Mapping) and not question.takes_text:
        names = ", ".join(question.fields.get("properties", {}))
        raise InvalidArguments("the answer must be an object", hint=f"with the fields: {names}")
    validator = compiled(question.fields).validator
    hint = "answer with what the question's fields describe"
    try:
        if validator is None or validator.is_valid(answer):
            return
    except TooMuchWork as why:
        raise InvalidArguments(f"the answer cannot be checked: {why}", hint=hint) from None
    flaws = [error.message[:300] for error in validator.errors(answer)]
    raise InvalidArguments("; ".join(flaws[:5]) or "the answer does not fit", hint=hint)
