"""Messages of threads: what people write, whom it goes to, and what was answered.

Routing is decided here once, when a message arrives: an answer never becomes a new request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dragoman import extras
from dragoman.access.approvals import is_person
from dragoman.agent import ASSISTANT
from dragoman.agents.exposure import checked_exposure
from dragoman.agents.mentions import Routing, route
from dragoman.errors import InvalidArguments
from dragoman.hub.agents import Agents
from dragoman.hub.attachments import Attachment, keep_attachments
from dragoman.hub.bound import BoundService
from dragoman.hub.models import WorkspaceModels
from dragoman.hub.runs import Runs
from dragoman.hub.threads import Threads, begun_by, tell_begun
from dragoman.run import (
    ATTACHMENTS,
    HEARD_OTHERS,
    KEY,
    MANAGES,
    UNREACHED,
    Message,
    Question,
    Run,
    RunLimits,
    new_run_id,
)
from dragoman.run_progress import table_in
from dragoman.scope import Caller
from dragoman.store.records import AcceptedRun

LONGEST_MESSAGE = 200_000
_TITLE = 60
_PAGE = 1000
_WITHOUT = "write without @ to talk to the assistant"


class Messages(BoundService):
    """What the caller writes, and reads of it."""

    __slots__ = ()

    @property
    def usual_limits(self) -> RunLimits:
        """What a run may use that is given no other limits."""
        return self._runtime.engine.limits

    async def list(self, thread: str, *, after: int = 0, limit: int = 200) -> Sequence[Message]:
        """The messages of a thread, oldest first, from a number on."""
        caller = self._caller
        await Threads(self._runtime, caller).get(thread)
        return await self._runtime.store.threads.messages(
            caller.workspace, caller.user, thread, after=after, limit=limit, last=after == 0
        )

    async def export(self, thread: str) -> str:
        """What was said in a thread, as Markdown."""
        title = (await Threads(self._runtime, self._caller).get(thread)).thread.title
        return as_markdown(title, await self.all(thread))

    async def all(self, thread: str) -> Sequence[Message]:
        """What people and agents said; not what sums it up for models."""
        caller, found = self._caller, list[Message]()
        await Threads(self._runtime, caller).get(thread)
        while page := await self._runtime.store.threads.messages(
            caller.workspace, caller.user, thread, after=found[-1].number if found else 0, limit=_PAGE
        ):
            found += page
        return [one for one in found if one.author != "system"]

    async def recipient(self, thread: str | None) -> str:
        """Whom a message goes to that mentions nobody."""
        return await self._current(None if thread is None else await self._last_run(thread))

    async def post(
        self,
        text: str,
        *,
        thread: str | None = None,
        agent: str | None = None,
        options: Mapping[str, Any] | None = None,
        limits: RunLimits | None = None,
        attachments: Sequence[Attachment] = (),
    ) -> AcceptedRun:
        """Writes a message and has whoever it is for work on it. On disk when this returns.

        Without a thread a new one is begun. `agent` sends it to one agent, whatever it mentions. While the
        thread's run waits for the answer to a question, a message that mentions nobody and has no file is
        that answer. Models read `attachments` (text, images) with the message, and later in the thread.
        """
        with self._runtime.engine.holding_starts():
            return await self._posted(text, thread, agent, options or {}, limits, attachments)

    async def _posted(
        self,
        text: str,
        thread: str | None,
        agent: str | None,
        options: Mapping[str, Any],
        limits: RunLimits | None,
        attachments: Sequence[Attachment],
    ) -> AcceptedRun:
        extras.require("agents")  # before a thread is begun for it
        caller = self._caller
        if thread is not None:
            await Threads(self._runtime, caller).get(thread)
        text = _checked(text)
        options = await self._checked_options(options)
        known = {one.name: one for one in await Agents(self._runtime, caller).list()}
        routing = route(text, known) if agent is None else Routing((agent,), text)
        last = None if thread is None or agent or routing.agents else await self._last_run(thread)
        question = await self._open_question(last)
        if question and not attachments and (answered := await self._as_answer(text, question)):
            return answered
        target, facts = await self._target(routing, last, agent)
        kept = await keep_attachments(attachments, caller, self._runtime.store.calls)
        begun = None
        if thread is None:
            begun = begun_by(caller, _title(text))
            thread = begun.thread.id
        run_id = new_run_id()
        # Whoever stands between the person and us may say other words than theirs; so does a file.
        heard: dict[str, Any] = {} if is_person(caller) and not attachments else {HEARD_OTHERS: True}
        if kept:
            heard[ATTACHMENTS] = [*kept]
        run = Run(
            id=run_id,
            root=run_id,
            workspace=caller.workspace,
            user=caller.user,
            thread=thread,
            agent=target,
            request=text,
            options={**options, **facts, **heard, MANAGES: caller.manages, KEY: caller.key},
            limits=limits or self.usual_limits,
            role=caller.role,
            grants=caller.grants,
        )
        message = replace(_written(text, thread, caller), run=run_id, details=heard)
        moment = self._runtime.active.moment()
        accepted = await self._runtime.engine.accept(run, message, begun)
        if begun is not None:
            tell_begun(self._runtime, begun.thread, moment)
        if accepted.message is not None:
            self._runtime.engine.tell_message(accepted.message)
        return accepted

    async def ask(self, text: str, **facts: Any) -> Run:
        """Posts and waits for the end: the finished run with its answer."""
        accepted = await self.post(text, **facts)
        return await self._runtime.engine.finished(accepted.run)

    async def _target(
        self, routing: Routing, last: Run | None, agent: str | None
    ) -> tuple[str, dict[str, Any]]:
        """The agent's name and what the run must know; "" for none or for several.

        Whom the message does not reach is told when the others have answered: it is a failed message.
        """
        caller = self._caller
        if routing.unknown is not None and not routing.agents:
            hint = routing.suggestion or _WITHOUT
            return "", {"agents": [], UNREACHED: [f"there is no agent {routing.unknown!r}", hint]}
        names = [*routing.agents]
        if agent is not None:
            names = [(await Agents(self._runtime, caller).get(agent)).name]
        if not names:
            names = [await self._current(last)]
        active = [
            name
            for name in names
            if (one := await Agents(self._runtime, caller).find(name)) and one.status == "active"
        ]
        if stopped := [name for name in names if name not in active]:
            verb = "is" if len(stopped) == 1 else "are"
            told = f"{', '.join('@' + name for name in stopped)} {verb} stopped"
            hint = f"dragoman agents start {stopped[0]}, or {_WITHOUT}"
            return "", {"agents": active, UNREACHED: [told, hint]}
        return (active[0], {}) if len(active) == 1 else ("", {"agents": active})

    async def _last_run(self, thread: str) -> Run | None:
        caller = self._caller
        found = await self._runtime.store.runs.list(
            caller.workspace, caller.user, thread=thread, roots_only=True, limit=1
        )
        return found[0] if found else None

    async def _current(self, last: Run | None) -> str:
        """Who spoke last with the person here, else the assistant."""
        agent = await Agents(self._runtime, self._caller).find(last.agent) if last and last.agent else None
        return agent.name if agent is not None and agent.status == "active" else ASSISTANT

    async def _checked_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """What would fail once the run begins is told to who asks for it."""
        await WorkspaceModels(self._runtime, self._caller).verify(options.get("model"))
        if options.get("exposure") is not None:
            checked_exposure(options["exposure"])
        return options

    async def _open_question(self, last: Run | None) -> Question | None:
        """The one that a person's text answers here; with several, nobody could say which is meant.

        Runs of a thread follow each other: after the end of the last one nobody waits.
        """
        caller = self._caller
        if last is None or last.is_finished or not is_person(caller):
            return None
        now, asked = datetime.now(UTC), await Runs(self._runtime, caller).questions(thread=last.thread)
        waiting = [one for one in asked if one.expires_at > now]
        return waiting[0] if len(waiting) == 1 and waiting[0].takes_text else None

    async def _as_answer(self, text: str, question: Question) -> AcceptedRun | None:
        """None when the question is over in this moment: then the text is a new request."""
        caller = self._caller
        message = replace(_written(text, question.thread, caller), details={"answers": question.id})
        return await Runs(self._runtime, caller).answer_by(message, question)


def _written(text: str, thread: str, caller: Caller) -> Message:
    return Message(workspace=caller.workspace, user=caller.user, thread=thread, author="person", text=text)


def _checked(text: str) -> str:
    if not text.strip():
        raise InvalidArguments("the message is empty", hint="write what you want")
    if len(text) > LONGEST_MESSAGE:
        raise InvalidArguments(
            f"the message has {len(text):,} characters, and may have at most {LONGEST_MESSAGE:,}",
            hint="give long material as a file or by a tool",
        )
    return text.encode("utf-8", "replace").decode()  # half of a character would break who reads it later


def as_markdown(title: str, messages: Sequence[Message]) -> str:
    """A conversation to read or to keep elsewhere."""
    parts = [f"# {' '.join(title.split()) or 'Untitled chat'}"]
    for one in messages:
        who = "You" if one.author == "person" else one.agent or "Dragoman"
        parts += [f"**{who}** · {one.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC", one.text.strip()]
        files = [str(table_in(each).get("name", "")) for each in one.details.get(ATTACHMENTS) or ()]
        if files:
            parts.append(f"Attached: {', '.join(files)}")
        sources = [table_in(each) for each in table_in(one.details.get("outcome")).get("contexts") or ()]
        if sources:
            lines = [f"- [{each.get('id')}] {each.get('tool')} {each.get('uri') or ''}" for each in sources]
            parts.append("\n".join(["Sources:", *(line.rstrip() for line in lines)]))
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"
