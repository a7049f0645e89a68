"""One run from wherever its journal is to its end. Entered again after a crash, it goes on from there.

A run ends done, failed or cancelled, and says so in its thread. Cancelled from outside without anybody's wish
(the process stops), it is left as it is: whoever takes it up next resumes it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelResponse
from structlog.contextvars import bound_contextvars

from dragoman.agent import Agent
from dragoman.agents.citations import cited_in, outcome_of, with_known_citations
from dragoman.agents.composition import Composer
from dragoman.agents.offers import OfferCall, ToolReply
from dragoman.agents.provider_errors import explained
from dragoman.agents.rollout import RolloutRecorder
from dragoman.agents.work_context import AgentsOf, DelegationResult, Toolbox, WorkContext, caller_of
from dragoman.calls import Recorder
from dragoman.cluster import Cluster
from dragoman.errors import AnswerCut, DragomanError, LimitReached, NotFound, ShuttingDown, StoreUnavailable
from dragoman.events import Event, Events
from dragoman.hints import speaking
from dragoman.run import (
    HEARD_OTHERS,
    KEY,
    OTHERS,
    TIME_ZONE,
    TRACE,
    UNREACHED,
    Message,
    Run,
    RunError,
    RunEventKind,
    RunStatus,
    RunUsage,
    Step,
    new_run_id,
)
from dragoman.runs.attachments import FindKept
from dragoman.runs.journal import Journal
from dragoman.runs.journal_record import RESUMED, JournalRecord, answering, usage_of
from dragoman.runs.loop import AgentLoop
from dragoman.runs.previews import Previews
from dragoman.runs.questions import RunQuestions
from dragoman.runs.run_endings import finished_facts, last_message, numbers_of, said
from dragoman.runs.run_family import RunFamily
from dragoman.runs.streams import RunStreams
from dragoman.runs.thread_history import earlier_result
from dragoman.store.clock import Clock
from dragoman.store.protocols import RunStore, ThreadStore
from dragoman.store.records import AgentWorked, NewRun
from dragoman.telemetry.metrics import ReadiedAgents
from dragoman.telemetry.spans import Spans, continued_trace

_MOST_RESUMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDependencies:
    """What every execution needs. Made once by the hub, changed by nobody.

    `first_token` and `stall` are the seconds that a model may keep silent: at first, and in between.
    """

    runs: RunStore
    clock: Clock
    cluster: Cluster
    threads: ThreadStore
    journal: Journal
    streams: RunStreams
    questions: RunQuestions
    recorder: Recorder
    agents_of: AgentsOf
    toolbox: Toolbox
    composer: Composer
    previews: Previews
    events: Events
    spans: Spans
    readied: ReadiedAgents
    find_kept: FindKept
    tally: RolloutRecorder | None = None
    history_budget: int = 60_000
    first_token: float = 45.0
    stall: float = 30.0


class RunExecution:
    """Fills `RunServices` for its agent. Belongs to the task that executes it."""

    def __init__(self, run: Run, family: RunFamily, parts: RunDependencies) -> None:
        self.run = run
        self.family = family
        self.parts = parts
        self.record = JournalRecord()
        self.is_resumed = False
        self._began = 0.0
        self._waits = 0
        self._began_waiting = 0.0
        self._waited = 0.0
        family.members.add(run.id)
        self._outcome: Mapping[str, Any] = {}
        self._work: WorkContext | None = None
        self._grants = run.grants

    async def execute(self) -> Run:
        """The finished run. Raises only what stops this process's work on it."""
        if self.run.is_finished:
            return self.run
        self._began = asyncio.get_running_loop().time()
        with speaking("plain"):  # whatever a model reads
            return await self._traced()

    async def _traced(self) -> Run:
        facts = {"dragoman__run": self.run.id, "dragoman__root_run": self.run.root}
        name = self.run.agent or "several"
        # Who asked for a root run may be gone when it begins; a child run is a part of its parent's call.
        carried: Mapping[str, str] = (self.run.options.get(TRACE) or {}) if self.run.is_root else {}
        with (
            bound_contextvars(run=self.run.id, root=self.run.root),
            continued_trace(carried),
            self.parts.spans.within("invoke_agent", name, gen_ai__agent__name=name, **facts) as span,
        ):
            run = await self._executed()
            used = run.usage
            span.note(
                gen_ai__usage__input_tokens=used.input_tokens, gen_ai__usage__output_tokens=used.output_tokens
            )
            if run.status != "done":
                span.failed(run.error.code if run.error else run.status)
        return run

    async def _executed(self) -> Run:
        try:
            if self.run.started_at is not None:
                self.record = JournalRecord.of(await self.parts.runs.steps(self.run.workspace, self.run.id))
            if self.family.cancelled:
                raise asyncio.CancelledError
            await self._begin()
            answer = await self._within_limit()
        except asyncio.CancelledError:
            if not self.family.cancelled or self.family.lost:
                raise
            return await self._end(
                "cancelled", error=RunError(code="cancelled", message="stopped by a person")
            )
        except (StoreUnavailable, ShuttingDown):
            raise  # not the run's fault: it goes on when the store is back
        except AnswerCut as error:
            return await self._end("failed", answer=error.answer, error=RunError.of(error))
        except DragomanError as error:
            return await self._end("failed", error=RunError.of(error))
        except Exception as error:  # noqa: BLE001
            # boundary: whatever a model, its provider or pydantic-ai does wrong is the end of this run only
            return await self._end(
                "failed", error=RunError.of(explained(error, self.run.model or "the model"))
            )
        return await self._end("done", answer=answer)

    # What a run does for its agent

    async def ask_person(
        self,
        text: str,
        fields: Mapping[str, Any] | None,
        attempt: OfferCall,
        *,
        connector: str = "",
        url: str | None = None,
    ) -> Any:
        self.family.has_asked = True
        question = await self.parts.questions.ask(
            self.run, attempt.key, text, fields, connector=connector, url=url
        )
        if question.status == "pending":
            facts = {"question": question.id, "text": text, "fields": fields}
            self.tell("question.asked", {**facts, "expires_at": question.expires_at.isoformat()})
            self._publish("question.asked", {"id": question.id, "text": text})
        self.wait(True)
        try:
            answer = await self.parts.questions.answered(question)
        finally:
            self.wait(False)
        self.tell("question.answered", {"question": question.id})
        return answer

    async def delegate(
        self, agent: Agent, request: str, options: Mapping[str, Any], attempt: OfferCall
    ) -> DelegationResult:
        child = await self.parts.runs.child(self.run.workspace, self.run.id, attempt.key)
        if child is None:
            chain = [*self.run.options.get("chain", ()), self.run.agent]
            new = replace(
                self.run,
                id=new_run_id(),
                parent=self.run.id,
                parent_call=attempt.key,
                agent=agent.name,
                # A connector's agent has no tools of its own choice: it gets no more than who asks it.
                grants=self._grants if agent.kind == "connector" else self.run.grants,
                request=request,
                message=None,
                status="queued",
                answer=None,
                error=None,
                model=None,
                exposure=None,
                options={**self._carried, **options, "chain": chain, **self._heard_by_child(attempt)},
                usage=RunUsage(),
                worker=None,
                lease_until=None,
                created_at=datetime.now(UTC),
                started_at=None,
            )
            message = self._mention(agent, request) if options.get("visible") else None
            (accepted,) = await self.parts.runs.accept([NewRun(new, message)])
            child = accepted.run
            if message is not None:
                facts = {"author": "agent", "agent": self.run.agent, "text": message.text}
                self.tell("message.added", facts)
        execution = RunExecution(child, self.family, self.parts)
        finished = await execution.execute()
        return DelegationResult(run=finished, told=finished.options.get("outcome") or {})

    async def earlier_result(self, handle: str) -> ToolReply | None:
        return await earlier_result(self, handle)

    def state_plan(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self.record.plan = [*steps]
        self.parts.journal.note(self.step("plan", content=[*steps]))
        self.tell("plan.stated", {"steps": [*steps]})

    def tell_notice(self, text: str) -> None:
        self.tell("notice", {"text": text, "code": None})

    def note(self, kind: str, facts: Mapping[str, Any]) -> None:
        self.parts.journal.note(self.step("note", kind, dict(facts)))

    # For the loop

    def step(self, kind: Any, key: str = "", content: Any = None) -> Step:
        return Step(workspace=self.run.workspace, run=self.run.id, kind=kind, key=key, content=content)

    def wait(self, begins: bool) -> None:
        """A person is waited for, or no longer. The clock stands still meanwhile."""
        self._waits += 1 if begins else -1
        now = asyncio.get_running_loop().time()
        if begins and self._waits == 1:
            self._began_waiting = now
        elif self._waits == 0:
            self._waited += now - self._began_waiting
        if begins:
            self.family.clock.pause()
        else:
            self.family.clock.go_on()
        if self._waits == (1 if begins else 0) and not self.family.left:  # else it waits still, for the next
            self._set(status="waiting" if begins else "running")
            self.tell("run.waiting" if begins else "run.continued", {})

    def awaits_approval(self, approval: str, call: str) -> None:
        self.tell("approval.requested", {"approval": approval, "call": call})
        self.wait(True)

    def has_approval(self, approval: str, call: str) -> None:
        if not self.family.left:
            self.tell("approval.answered", {"approval": approval, "call": call})
        self.wait(False)

    async def look_again(self, work: WorkContext) -> None:
        """What the agent was given or deprived of meanwhile counts for its next step, and for its calls."""
        caller = await self.parts.toolbox.present(self.run.caller)
        agent = await self.parts.agents_of(caller).find(self.run.agent)
        if agent is not None and agent.id == work.agent.id:
            work.agent, work.caller = agent, caller_of(agent, caller)
            self._grants = work.caller.grants

    def learned(self, **facts: Any) -> None:
        """What became known of the run on its way: model, exposure, arm."""
        self._set(**facts)

    # Parts

    async def _begin(self) -> None:
        self.is_resumed = is_resumed = self.run.started_at is not None
        if is_resumed:
            self.family.resume_with(self.record.used(self.run.model or ""))
            await self._skip_sources()
            await self._count_resumption()
        self._set(status="running", started_at=self.run.started_at or datetime.now(UTC))
        facts: dict[str, Any] = {"agent": self.run.agent, "request": self.run.request[:500]}
        if self.run.parent:
            facts |= {"parent": self.run.parent, "call": self.run.parent_call}
        begun = self.family.event(self.run, "run.resumed" if is_resumed else "run.started", facts)
        await self.parts.journal.begin(begun)

    async def _skip_sources(self) -> None:
        """What the family has cited before keeps its ids, whichever of its runs goes on first."""
        if self.run.is_root:
            self.family.numbers.skip(self.record.contexts)
            for member in self.family.earlier:
                steps = await self.parts.runs.steps(member.workspace, member.id)
                self.family.numbers.skip(JournalRecord.of(steps).contexts)

    async def _count_resumption(self) -> None:
        """A run that takes its process down each time it is resumed must come to an end."""
        if self.record.resumed >= _MOST_RESUMED:
            raise LimitReached(
                f"the run was interrupted {self.record.resumed} times at the same place",
                hint="see the log of Dragoman for why it stopped; then ask again",
            )
        if self.run.status == "running":  # one that waited for a person took nobody down
            await self.parts.journal.write(self.step("note", RESUMED))

    async def _within_limit(self) -> str:
        seconds = self.family.limits.seconds if self.run.is_root else None
        timeout = asyncio.timeout(None if seconds is None else max(0.0, seconds - self.family.clock.before))
        try:
            async with timeout:
                if self.run.is_root:
                    self.family.clock.start(timeout)
                return await self._worked()
        except TimeoutError:
            if seconds is None or not timeout.expired():
                raise
            time = f"{seconds:g} seconds" if seconds < 120 else f"{seconds / 60:g} minutes"
            raise LimitReached(f"the run has worked its {time}", hint=self.family.more_hint) from None

    async def _worked(self) -> str:
        if not self.run.agent:
            await self._hand_out()
            if unreached := self.run.options.get(UNREACHED):
                raise NotFound(unreached[0], hint=unreached[1])
            return ""
        caller = await self.parts.toolbox.present(self.run.caller)
        agent = await self.parts.agents_of(caller).find(self.run.agent)
        if agent is None or agent.status == "stopped":
            raise NotFound(
                f"there is no agent {self.run.agent!r} at work", hint="dragoman agents list shows who is"
            )
        self._work = work = WorkContext(
            run=self.run,
            agent=agent,
            caller=caller_of(agent, caller),
            toolbox=self.parts.toolbox,
            services=self,
            chain=tuple(self.run.options.get("chain", ())),
            has_heard_others=self._has_heard_others,
            contexts=self.record.contexts,
            numbers=self.family.numbers,
        )
        self._grants = work.caller.grants
        try:
            return self._cited(await AgentLoop(self, work).answer(), work)
        except AnswerCut as cut:
            cut.answer = self._cited(cut.answer, work)
            raise
        finally:
            if agent.kind == "connector":
                outcome = outcome_of(self.record.plan, self.record.finished, work.contexts)
                self._outcome = {**outcome, **self._outcome}

    def _cited(self, answer: str, work: WorkContext) -> str:
        """The answer with those citations that lead to a source, which is kept with the run."""
        known = {context.id: context for context in (*work.earlier_contexts, *work.contexts)}
        answer = with_known_citations(answer, known)
        # Of others' sources it keeps those that it cites; what a connector's agent found is its own.
        kept = [*(one.id for one in work.contexts if work.agent.kind == "connector"), *cited_in(answer)]
        if kept:
            self._outcome = {"contexts": [asdict(known[one]) for one in dict.fromkeys(kept)]}
        return answer

    async def _hand_out(self) -> None:
        """Several agents were mentioned: each works on the message, all at once."""
        caller = self.run.caller
        names: Sequence[str] = self.run.options.get("agents", ())
        found = [agent for name in names if (agent := await self.parts.agents_of(caller).find(name))]
        wishes = {
            name: value for name, value in self.run.options.items() if name not in ("agents", UNREACHED)
        }
        async with asyncio.TaskGroup() as tasks:
            for agent in found:
                attempt = OfferCall(f"mention:{agent.name}", _NOBODY)
                others = [other.name for other in found if other is not agent]
                options = {**wishes, "visible": True, OTHERS: others}
                tasks.create_task(self.delegate(agent, self.run.request, options, attempt))

    async def _end(self, status: RunStatus, answer: str | None = None, error: RunError | None = None) -> Run:
        now = datetime.now(UTC)
        own = self.record.used(self.run.model or "")
        usage = self.family.usage if self.run.is_root else own
        options = {**self.run.options, **({"outcome": self._outcome} if self._outcome else {})}
        if self._has_heard_others:
            options[HEARD_OTHERS] = True
        self.run = replace(
            self.run,
            status=status,
            answer=answer,
            error=error,
            usage=usage,
            options=options,
            finished_at=now,
            started_at=self.run.started_at or now,
        )
        left = await self._end_family(status) if self.run.is_root else []
        worked = await self._worked_as(own)
        if self.run.agent:
            self.parts.recorder.ran(self.run)
        if self.run.is_root and self.run.arm and self.parts.tally is not None:
            # Before the end is told: whoever hears of it finds it counted. Counted twice it counts once.
            await self.parts.tally.finished(self.run, self.family.clock.worked * 1000)
        # From here on nothing waits: events go into the journal in the order of their numbers.
        entries: list[Any] = [self.run, *worked]
        if message := last_message(self.run):
            entries.append(message)
            facts = {"author": message.author, "agent": message.agent, "text": message.text}
            entries.append(self.family.event(self.run, "message.added", facts))
        for child in left:
            entries += [child, self.family.event(child, "run.finished", finished_facts(child))]
        entries.append(self.family.event(self.run, "run.finished", finished_facts(self.run)))
        # Not to be interrupted: what was done must be told.
        await asyncio.shield(self.parts.journal.put(*entries))
        self._publish("run.changed", {"id": self.run.id, "status": status})
        return self.run

    async def _end_family(self, status: RunStatus) -> list[Run]:
        """Nobody waits any more for child runs and questions that are still open: those runs, ended."""
        root = self.run
        if self.family.has_asked or status != "done":
            await self.parts.questions.close(root)
        if len(self.family.members) == 1 and status == "done":  # the usual end costs no query
            return []
        error = RunError(code="cancelled", message="the run that it belongs to has ended")
        return [
            replace(child, status="cancelled", error=error, finished_at=root.finished_at)
            for child in await self.parts.runs.family(root.workspace, root.id)
            if not child.is_root and not child.is_finished
        ]

    @property
    def _has_heard_others(self) -> bool:
        if self._work is not None:
            return self._work.has_heard_others
        options = self.run.options
        return bool(options.get(HEARD_OTHERS) or options.get("context")) or self.record.has_heard_others

    @property
    def _carried(self) -> dict[str, Any]:
        """What child runs know of the person and of how they came, too."""
        return {name: value for name, value in self.run.options.items() if name in (KEY, TIME_ZONE)}

    def _heard_by_child(self, attempt: OfferCall) -> dict[str, Any]:
        """What an agent asks of another are its own words; a person's message to several is the person's."""
        is_of_person = attempt.key.startswith("mention:") and not self._has_heard_others
        return {} if is_of_person else {HEARD_OTHERS: True}

    def _mention(self, agent: Agent, request: str) -> Message | None:
        """A delegation as people see it in the thread; what a person wrote to several is there already."""
        if not self.run.agent or not self.run.thread:
            return None
        return said(self.run, "agent", f"@{agent.name} {request}", {"delegates_to": agent.name})

    def count(self, response: ModelResponse) -> RunUsage:
        """What one answer of a model used: of the run's limits, and in the numbers over time."""
        model = self.run.model or ""
        used = usage_of(response, model)
        self.family.add(used)
        self.parts.recorder.asked_model(self.run, answering(response, model), used)
        return used

    async def _worked_as(self, own: RunUsage) -> list[AgentWorked]:
        """What it adds to the numbers of its agent."""
        agent = await self.parts.agents_of(self.run.caller).find(self.run.agent) if self.run.agent else None
        # Of a run that was resumed, the work of this process: how long nobody worked on it is not known.
        seconds = asyncio.get_running_loop().time() - self._began - self._waited
        numbers = numbers_of(self.run, own, self._outcome, seconds)
        if agent is None or numbers is None:
            return []
        return [AgentWorked(workspace=self.run.workspace, run=self.run.id, agent=agent.id, numbers=numbers)]

    def _set(self, **facts: Any) -> None:
        self.run = replace(self.run, **facts)
        if self.run.is_root:
            self.family.root = self.run
        self.parts.journal.note(self.run)
        if "status" in facts:
            self._publish("run.changed", {"id": self.run.id, "status": self.run.status})

    def tell(self, kind: RunEventKind, data: dict[str, Any]) -> None:
        self.parts.journal.note(self.family.event(self.run, kind, data))

    def _publish(self, kind: Any, data: Mapping[str, Any]) -> None:
        if self.parts.events.has_listeners:
            run = self.run
            facts = {"thread": run.thread, "agent": run.agent, "root": run.root, **data}
            self.parts.events.publish(Event(kind=kind, workspace=run.workspace, user=run.user, data=facts))


class _Nobody:
    """Fills `CallObserver` where there is nothing to observe."""

    name = ""
    has_departed = False
    is_over = False

    def awaits(self, approval: str) -> None: ...

    def goes_on(self) -> None: ...

    async def departs(self, repeatable: bool) -> None: ...


_NOBODY = _Nobody()
