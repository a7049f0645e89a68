"""What an agent is offered in one step, and what a model is told of a call. Values; knows no journal.

An offer is a name, a schema and a way to perform it; whether it is a tool of a connector or a function
of Dragoman makes no difference to the loop. Who performs it (`runs`) journals it.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dragoman.errors import LimitReached
from dragoman.tool import CallObserver, ClientChannel

if TYPE_CHECKING:
    from dragoman.agents.work_context import WorkContext

OVER_LIMIT = LimitReached.code
REPEATED = "repeated"
"""The code of a call whose result the model has already: it was told so in place of the result."""
OfferKind = Literal["tool", "function"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedContext:
    """A source of an answer: what a call brought. `id` is how an answer cites it: `[c1]`."""

    id: str
    call: str
    tool: str
    uri: str | None = None
    excerpt: str = ""


@dataclass(slots=True)
class SourceNumbers:
    """Numbers the sources of a root run and of all under it: each id once, whoever cites it."""

    last: int = 0

    def next_id(self) -> str:
        self.last += 1
        return f"c{self.last}"

    def skip(self, contexts: Iterable[CitedContext]) -> None:
        """Those have their ids already."""
        self.last = max([self.last, *(int(one.id[1:]) for one in contexts)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReply:
    """What a model is told of a call: plain JSON, or the text of `model_errors` for one that failed.

    The rest is for people and programs, and never reaches the model: `message` is why it failed.
    """

    content: Any
    ok: bool = True
    code: str | None = None
    message: str | None = None
    tool: str | None = None  # this and the next two are set by who performs
    asked: str | None = None  # digest of the arguments
    has_changed: bool = False  # perhaps: all that is not known to only read
    digest: str | None = None  # of what it brought; set where `content` also says what is new each time
    tokens_saved: int = 0
    calls: int = 0  # of tools, made inside it by code
    cost: float = 0.0  # in dollars, of the tools that it called
    call_id: str | None = None  # of the road, where the call took it
    warnings: tuple[str, ...] = ()  # of the call: what hooks decided, what was read otherwise than written
    contexts: tuple[CitedContext, ...] = ()
    media: tuple[Mapping[str, Any], ...] = ()  # pictures and sounds, kept for people: handle, type and size
    is_own_words: bool = (
        False  # of its person, or names that Dragoman itself knows; nothing that others wrote
    )

    @property
    def is_refused(self) -> bool:
        """Whether the run kept the call from being made at all."""
        return self.code in (OVER_LIMIT, REPEATED) and self.call_id is None


def digest_of(value: Any) -> str:
    """Equal values have equal ones, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class OfferCall:
    """One call of one offer. `key` is its place in the journal: turn and tool call id."""

    key: str
    observer: CallObserver
    channel: ClientChannel | None = None


Perform = Callable[[Mapping[str, Any], OfferCall], Awaitable[ToolReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One thing that a model may call now.

    `departs_itself`: the call takes the road, which tells the observer when it leaves. Otherwise one that is
    not `repeatable` is written down before it is performed. `only_reads`: it changes nothing, neither out
    there nor for the agents that it asks. `is_own_words`: what it brings are words of the
    person or names that Dragoman itself knows, nothing that others wrote. `is_described_by_others`: its
    description and schema are what a server says of itself. `metadata` is for the offline model: the `tool`
    or the `actions` that it ranks, names of things that are `known`.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    perform: Perform
    kind: OfferKind = "function"
    title: str | None = None
    connector: str | None = None
    repeatable: bool = True
    departs_itself: bool = False
    only_reads: bool = False
    is_own_words: bool = False
    is_described_by_others: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Offers(Protocol):
    """A source of offers, asked before every request to the model: what changed meanwhile counts at once."""

    async def list(self, work: "WorkContext") -> Sequence[Offer]: ...

    async def instructions(self, work: "WorkContext") -> str:
        """What a model must know to use them; empty for nothing."""
        ...
