"""What a run's journal says: how far it came. Read once when the run is taken up, then kept up to date."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman.agents.offers import CitedContext, ToolReply
from dragoman.agents.prices import cost_of
from dragoman.run import RunUsage, Step
from dragoman.store.later_fields import known_to

SAVED = "tokens_saved"
"""In the metadata of an answer: what its request did not have to send."""
RESUMED = "resumed"
"""The key of the note that a run was taken up again."""
SUMMARY = "summary"
"""The key of the note of what a summary of the thread used, and of its facts in the message."""


GO_ON = "Your answer was cut because it is too long. Go on exactly where it stopped, and repeat nothing."
"""What a model is told whose answer was cut by its length."""


@dataclass(slots=True)
class JournalRecord:
    messages: list[ModelMessage] = field(default_factory=list[ModelMessage])
    finished: dict[str, ToolReply] = field(default_factory=dict[str, ToolReply])
    departed: set[str] = field(default_factory=set[str])
    plan: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    offered: list[str] = field(default_factory=list[str])
    resumed: int = 0
    beside: RunUsage = field(default_factory=RunUsage)  # used by requests that are no part of the exchange

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "JournalRecord":
        record = cls()
        turns: set[str] = set()
        for step in steps:
            record.resumed = record.resumed + 1 if step.key == RESUMED else record.resumed
            if step.kind in ("messages", "call.finished"):
                record.resumed = 0  # it came further
            match step.kind:
                case "messages":
                    # Written again by a store that did not say whether it had written it.
                    if not step.key or step.key not in turns:
                        record.messages += ModelMessagesTypeAdapter.validate_python(step.content)
                    turns.add(step.key)
                case "offered":
                    record.offered = [*step.content]
                case "call.departed":
                    record.departed.add(step.key)
                case "call.finished":
                    record.finished[step.key] = load_reply(step.content)
                case "plan":
                    record.plan = [*step.content]
                case "note" if step.key == SUMMARY:
                    record.beside = record.beside.plus(RunUsage(**step.content))
                case _:
                    pass
        return record

    @property
    def open_calls(self) -> Sequence[ToolCallPart]:
        """Those of the last answer of the model; it has not been told yet what came of them."""
        last = self.messages[-1] if self.messages else None
        return last.tool_calls if isinstance(last, ModelResponse) else ()

    @property
    def answered(self) -> ModelResponse | None:
        """The model's last word, where it said something and calls nothing more."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, ModelResponse) and last.text and not last.tool_calls else None

    @property
    def cut(self) -> str | None:
        """Why the answer ends in the middle; None where it does not."""
        why = self.answered.finish_reason if self.answered else None
        return why if why in ("length", "content_filter") else None

    @property
    def continued(self) -> str:
        """What the model had said of its last answer when it was told to go on."""
        if len(self.messages) < 3:
            return ""
        cut, request, _ = self.messages[-3:]
        is_continued = any(
            isinstance(part, UserPromptPart) and part.content == GO_ON for part in request.parts
        )
        return (cut.text or "") if is_continued and isinstance(cut, ModelResponse) else ""

    def exchange(self, ending: str) -> list[ModelMessage]:
        """All of it as a model can read it later, what calls brought that it was never told of included.

        `ending` stands where there is no answer. Empty where the model had not said anything.
        """
        last = self.messages[-1] if self.messages else None
        if not isinstance(last, ModelResponse):
            return []
        unanswered = ModelResponse(parts=[TextPart(ending)])
        if not last.tool_calls:
            return [*self.messages] if last.text else [*self.messages[:-1], unanswered]
        brought = ModelRequest(parts=[self._brought(call) for call in last.tool_calls])
        return [*self.messages, brought, unanswered]

    def brought(self) -> Iterator[tuple[ToolCallPart, ToolReply]]:
        """The calls that brought what others wrote, in the order in which they were asked for."""
        turn = 0
        for message in self.messages:
            if not isinstance(message, ModelResponse):
                continue
            turn += 1
            for call in message.tool_calls:
                keys = [f"{kind}{turn}:{call.tool_call_id}" for kind in "tf"]
                told = next((self.finished[key] for key in keys if key in self.finished), None)
                if told is not None and told.ok and not told.is_own_words:
                    yield call, told

    def _brought(self, call: ToolCallPart) -> ToolReturnPart:
        keys = [f"{kind}{self.turn}:{call.tool_call_id}" for kind in "tf"]
        told = next((self.finished[key] for key in keys if key in self.finished), None)
        unknown = "uncertain" if any(key in self.departed for key in keys) else "not carried out"
        return ToolReturnPart(call.tool_name, told.content if told else unknown, call.tool_call_id)

    @property
    def contexts(self) -> list[CitedContext]:
        """The sources that its calls brought."""
        return [one for told in self.finished.values() for one in told.contexts]

    @property
    def has_heard_others(self) -> bool:
        """Whether a call brought more than its person's own words; of an older journal, any call did."""
        return any(not told.is_own_words for told in self.finished.values())

    @property
    def turn(self) -> int:
        return sum(isinstance(message, ModelResponse) for message in self.messages)

    @property
    def calls(self) -> int:
        """Of tools; those that were refused were not made."""
        return sum(key.startswith("t") and not told.is_refused for key, told in self.finished.items())

    def used(self, model: str) -> RunUsage:
        """By this run alone, its child runs left out."""
        total = RunUsage(
            calls=self.calls + sum(told.calls for told in self.finished.values()),
            cost=sum(told.cost for told in self.finished.values()),
            tokens_saved=sum(told.tokens_saved for told in self.finished.values()),
        ).plus(self.beside)
        for message in self.messages:
            if isinstance(message, ModelResponse):
                total = total.plus(usage_of(message, model))
        return total


def written_messages(messages: list[ModelMessage]) -> Any:
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def dump_reply(told: ToolReply) -> dict[str, Any]:
    facts: dict[str, Any] = {"content": told.content, "ok": told.ok}
    if told.code:
        facts["code"] = told.code
    if told.message:
        facts["message"] = told.message
    if told.tool:
        facts["tool"] = told.tool
    if told.asked:
        facts["asked"] = told.asked
    if told.has_changed:
        facts["has_changed"] = True
    if told.digest:
        facts["digest"] = told.digest
    if told.is_own_words:
        facts["is_own_words"] = True
    if told.tokens_saved:
        facts["tokens_saved"] = told.tokens_saved
    if told.calls:
        facts["calls"] = told.calls
    if told.cost:
        facts["cost"] = told.cost
    if told.call_id:
        facts["call_id"] = told.call_id
    if told.warnings:
        facts["warnings"] = [*told.warnings]
    if told.media:
        facts["media"] = [dict(one) for one in told.media]
    if told.contexts:
        facts["contexts"] = [asdict(context) for context in told.contexts]
    return facts


def load_reply(content: Mapping[str, Any]) -> ToolReply:
    facts = dict(content)
    facts["contexts"] = tuple(known_to(CitedContext, one) for one in facts.get("contexts", ()))
    facts["media"] = tuple(facts.get("media", ()))
    facts["warnings"] = tuple(facts.get("warnings", ()))
    return known_to(ToolReply, facts)


def usage_of(response: ModelResponse, model: str) -> RunUsage:
    used, cost = response.usage, cost_of(answering(response, model), response.usage)
    return RunUsage(
        requests=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost=cost or 0.0,
        unpriced=cost is None,
        tokens_saved=(response.metadata or {}).get(SAVED, 0),
    )


def answering(response: ModelResponse, model: str) -> str:
    """Of a model and those that step in for it, the one that answered; providers add a date to its name."""
    names, said = model.split(","), response.model_name or ""
    return next((name for name in names if said.startswith(name.partition(":")[2] or name)), names[0])
