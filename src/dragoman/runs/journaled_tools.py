"""What an agent may call, as pydantic-ai sees it: each call found in the journal, or performed and journaled.

After a crash the same calls come again under the same keys: finished ones are told from the journal, one
that left and may not be repeated is `uncertain`, the others are performed.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Protocol

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from dragoman.agents.model_errors import failed, split_next
from dragoman.agents.offers import Offer, OfferCall, Offers, ToolReply, digest_of
from dragoman.agents.work_context import WorkContext
from dragoman.errors import (
    ClusterUnavailable,
    DragomanError,
    InputRequired,
    LimitReached,
    NotFound,
    StoreUnavailable,
    Uncertain,
)
from dragoman.run import Run, RunEventKind, RunUsage, Step
from dragoman.runs.journal import Journal
from dragoman.runs.journal_record import JournalRecord, dump_reply
from dragoman.runs.previews import Previews
from dragoman.runs.repeated_calls import Repetition, find_repetition
from dragoman.runs.run_family import RunFamily
from dragoman.runs.run_log import log_offered
from dragoman.tool import Elicitation, NoChannel

_ANYTHING = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
# Each try waits for what is away: for NATS, ten seconds.
_MAY_BE_AWAY = {StoreUnavailable.code: ("the store", 10), ClusterUnavailable.code: ("NATS", 5)}
_RETRIES = 3  # arguments that are no JSON may be sent again so often
_UNCERTAIN = "Dragoman was interrupted while the call was under way: it is not known whether it took effect"


class _Waiting(Protocol):
    """Who hears that a call waits for a person's yes."""

    def awaits_approval(self, approval: str, call: str) -> None: ...

    def has_approval(self, approval: str, call: str) -> None: ...


class JournaledTools(AbstractToolset["JournaledTools"]):
    def __init__(
        self,
        run: Run,
        work: WorkContext,
        sources: Sequence[Offers],
        record: JournalRecord,
        family: RunFamily,
        journal: Journal,
        previews: Previews,
        services: "_Waiting",
        why: str,
    ) -> None:
        """`why` says why it reaches tools as it does."""
        self._why = why
        self.services = services
        self._run = run
        self._work = work
        self._sources = sources
        self._record = record
        self._family = family
        self._journal = journal
        self._previews = previews
        self._offers: dict[str, Offer] = {}
        self._alike: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._most_tools: int | None = run.options.get("max_tools")
        self._tools_called = record.calls
        self.take_up()

    def take_up(self) -> None:
        """The loop begins, or begins again, where the journal ends."""
        self.turn = self._record.turn
        self._left_open = (self.turn, [call.tool_name for call in self._record.open_calls])

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: "RunContext[JournaledTools]") -> "dict[str, ToolsetTool[JournaledTools]]":
        offers: dict[str, Offer] = {}
        for source in self._sources:
            for offer in await source.list(self._work):
                offers.setdefault(offer.name, offer)
        if [*offers] != self._record.offered:
            self._record.offered = [*offers]
            self._journal.note(self._step("offered", content=[*offers]))
            log_offered(self._run, self._why, [*offers.values()])
        turn, called = self._left_open
        for name in called if turn == self.turn else ():
            # Called before the restart and gone since: what is known of the call is told all the same.
            offers.setdefault(name, _gone(name))
        self._offers = offers
        self._work.has_heard_others |= any(offer.is_described_by_others for offer in offers.values())
        return {name: self._tool(offer) for name, offer in offers.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: "RunContext[JournaledTools]",
        tool: "ToolsetTool[JournaledTools]",
    ) -> Any:
        offer = self._offers[name]
        key = f"{offer.kind[0]}{self.turn}:{ctx.tool_call_id}".replace("\0", "")  # no column takes it
        told = self._record.finished.get(key) or self._record.finished.get(f"t{self.turn}:{ctx.tool_call_id}")
        if told is None:
            asked = digest_of(tool_args)
            async with self._alike[name, asked]:  # the same at once: what the first brought decides
                told = await self._performed(offer, tool_args, key, asked)
        if told.ok:
            return told.content
        raise ToolFailed(told.content if isinstance(told.content, str) else json.dumps(told.content))

    async def _performed(self, offer: Offer, arguments: Mapping[str, Any], key: str, asked: str) -> ToolReply:
        repetition = find_repetition(offer.name, asked, self._record.finished)
        if repetition is not None and not self._may_be_made_again(offer, repetition):
            return await self._finished(offer, key, asked, repetition.reply(), None)
        if refused := self._refused(offer):
            return await self._finished(offer, key, asked, refused, None)
        began = monotonic()
        facts = {
            "call": key,
            "tool": offer.name,
            "title": offer.title or offer.name,
            "connector": offer.connector,
            "kind": offer.kind,
            "arguments": self._previews.arguments(arguments),
        }
        self._tell("call.started", facts)
        observer = _JournalObserver(self, f"{self._run.id} {key}", key)
        observer.has_departed = key in self._record.departed
        if observer.has_departed and not await self._is_followed(offer, observer):
            told = failed(Uncertain(_UNCERTAIN))
        else:
            told = await self._when_nothing_is_away(offer, arguments, key, observer)
        told = replace(told, digest=told.digest or digest_of(told.content))
        if repetition is not None and told.digest == repetition.result.digest:
            told = repetition.reply(told)
        return await self._finished(offer, key, asked, told, (monotonic() - began - observer.waited) * 1000)

    async def _is_followed(self, offer: Offer, observer: "_JournalObserver") -> bool:
        """Whether its server works on it as a task, which is followed and not begun again."""
        takes_the_road = offer.kind == "tool" and offer.departs_itself
        return takes_the_road and await self._work.toolbox.keeps_task(observer.name)

    async def _when_nothing_is_away(
        self, offer: Offer, arguments: Mapping[str, Any], key: str, observer: "_JournalObserver"
    ) -> ToolReply:
        """That the store or NATS was away is no result of a call: it is made when they are back.

        Unless it has left and may not be repeated: then its outcome is what the road says of it. A tool whose
        node could not be found out was not called, whatever the journal says of the way to it.
        """
        tries = 0
        while True:
            told = await self._tried(offer, arguments, key, observer)
            tries += 1
            what, most = _MAY_BE_AWAY.get(told.code or "", ("", 0))
            is_sure = told.code == ClusterUnavailable.code and offer.kind == "tool"
            if not what or (key in self._record.departed and not is_sure):
                return told
            if tries < most:
                facts = {"call": key, "message": f"{what} was away: it is tried again"}
                await self._journal.write(self._family.event(self._run, "call.progress", facts))
            elif told.code == StoreUnavailable.code:
                raise StoreUnavailable("the store does not answer", hint="the run goes on when it is back")
            else:
                return told

    async def _tried(
        self, offer: Offer, arguments: Mapping[str, Any], key: str, observer: "_JournalObserver"
    ) -> ToolReply:
        try:
            if not offer.repeatable and not offer.departs_itself:
                await observer.departs(False)
            attempt = OfferCall(key, observer)
            channel = _RunChannel(self, self._work, attempt, observer)
            return await offer.perform(arguments, replace(attempt, channel=channel))
        except DragomanError as error:
            return failed(error)

    def _may_be_made_again(self, offer: Offer, repetition: Repetition) -> bool:
        """Whether it took the road and is safe to repeat: then who polls sees when its result changes."""
        return offer.departs_itself and repetition.key not in self._record.departed

    def _refused(self, offer: Offer) -> ToolReply | None:
        if offer.kind == "tool":
            self._tools_called += 1
            if self._most_tools is not None and self._tools_called > self._most_tools:
                return failed(LimitReached(f"the {self._most_tools} tool calls of this request are made"))
        if not self._family.begin_call():
            made = f"the run has made its {self._family.limits.calls:,} calls"
            if not self._family.has_told_calls:
                self._family.has_told_calls = True
                text = f"{made} and answers with what it has: {self._family.more_hint}"
                self._tell("notice", {"text": text, "code": LimitReached.code})
            return failed(LimitReached(made))
        return None

    async def _finished(
        self, offer: Offer, key: str, asked: str, told: ToolReply, milliseconds: float | None
    ) -> ToolReply:
        told = replace(
            told,
            tool=offer.name,
            asked=asked,
            has_changed=not (offer.only_reads or told.is_refused),
            is_own_words=told.is_own_words or offer.is_own_words,
        )
        self._record.finished[key] = told
        self._work.has_heard_others |= not told.is_own_words
        if milliseconds is not None:
            calls = told.calls + (1 if offer.kind == "tool" else 0)
            self._family.add(RunUsage(calls=calls, cost=told.cost, tokens_saved=told.tokens_saved))
            self._family.begun += told.calls
        self._work.contexts.extend(told.contexts)
        step = self._step("call.finished", key, dump_reply(told))
        event = self._family.event(
            self._run,
            "call.finished",
            {
                "call": key,
                "tool": offer.name,
                "ok": told.ok,
                "code": told.code,
                "duration_ms": None if milliseconds is None else round(milliseconds, 1),
                "preview": self._previews.result(_for_people(told)),
                "call_id": told.call_id,
                **({"warnings": [*told.warnings]} if told.warnings else {}),
                **({"media": [dict(one) for one in told.media]} if told.media else {}),
            },
        )
        if key in self._record.departed:
            await self._journal.write(step, event)  # what is known must not become uncertain
            self._family.unrepeatable.discard(f"{self._run.id} {key}")
        else:
            self._journal.note(step, event)
        return told

    @property
    def is_over(self) -> bool:
        return self._family.cancelled

    async def departs(self, key: str) -> None:
        family, call = self._family, f"{self._run.id} {key}"
        if family.cancelled or (family.left and call not in family.unrepeatable):
            raise asyncio.CancelledError  # between the wish to stop and its arrival nothing more leaves
        family.unrepeatable.add(call)
        await self._journal.write(self._step("call.departed", key))
        self._record.departed.add(key)

    def tell_progress(self, key: str, facts: dict[str, Any]) -> None:
        self._tell("call.progress", {"call": key, **facts})

    def _tell(self, kind: RunEventKind, data: dict[str, Any]) -> None:
        self._journal.note(self._family.event(self._run, kind, data))

    def _step(self, kind: Any, key: str = "", content: Any = None) -> Step:
        return Step(workspace=self._run.workspace, run=self._run.id, kind=kind, key=key, content=content)

    def _tool(self, offer: Offer) -> "ToolsetTool[JournaledTools]":
        definition = ToolDefinition(
            name=offer.name,
            description=offer.description,
            parameters_json_schema=dict(offer.schema),
            metadata={"kind": offer.kind, "connector": offer.connector, **offer.metadata},
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=_ANYTHING)


def _gone(name: str) -> Offer:
    async def perform(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
        return failed(NotFound(f"{name} is not available any more"))

    return Offer(name=name, description="", schema={"type": "object"}, perform=perform)


def _for_people(told: ToolReply) -> Any:
    return told.content if told.ok or not isinstance(told.content, str) else split_next(told.content)[0]


class _JournalObserver:
    """Fills `CallObserver` for one call of a run. `waited` are the seconds that people took to answer."""

    def __init__(self, performance: JournaledTools, name: str, key: str) -> None:
        self.name = name
        self.has_departed = False
        self.waited = 0.0
        self._began_waiting = 0.0
        self._approval = ""
        self._performance = performance
        self._key = key

    @property
    def is_over(self) -> bool:
        return self._performance.is_over

    def awaits(self, approval: str) -> None:
        self._approval = approval
        self._began_waiting = monotonic()
        self._performance.services.awaits_approval(approval, self._key)

    def goes_on(self) -> None:
        self.waited += monotonic() - self._began_waiting
        self._performance.services.has_approval(self._approval, self._key)

    async def departs(self, repeatable: bool) -> None:
        if not repeatable:
            await self._performance.departs(self._key)


class _RunChannel(NoChannel):
    """Fills `ClientChannel` for one call of a run: followers hear of progress, a person answers."""

    wants_progress = True

    def __init__(
        self,
        performance: JournaledTools,
        work: WorkContext,
        attempt: OfferCall,
        observer: _JournalObserver,
    ) -> None:
        super().__init__()
        self.capabilities: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
        self._performance = performance
        self._work = work
        self._attempt = attempt
        self._observer = observer
        self._asked = 0

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        facts = {"progress": progress, "total": total, "message": message}
        self._performance.tell_progress(self._attempt.key, facts)

    async def ask(self, method: str, params: Mapping[str, Any], connector: str) -> Mapping[str, Any]:
        if method != "elicitation/create":
            raise InputRequired(f"the tool asks by {method}, which a run cannot answer")
        asked = Elicitation.of(params, connector)
        self._asked += 1
        attempt = replace(self._attempt, key=f"{self._attempt.key}:asked{self._asked}")
        began = monotonic()
        try:
            answer = await self._work.services.ask_person(
                asked.message, asked.fields, attempt, connector=connector, url=asked.url
            )
        finally:
            self._observer.waited += monotonic() - began
        return asked.accepted(answer)
