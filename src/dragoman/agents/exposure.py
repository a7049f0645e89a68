"""By which way an agent reaches its tools in one run. Pure: a table read from top to bottom.

direct: every definition is sent. search: they are found on the way. delegate: each job goes to the agent of
a connector. code: the model writes code that calls them.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from dragoman.agent import AgentKind, Exposure
from dragoman.errors import InvalidArguments

Arm = Literal["agents", "direct"]
FEW_TOOLS, FEW_TOKENS = 12, 2_000  # so much an assistant is shown directly: handing it on would cost more
ROOM = 8  # so many budgets a connector's own agent may fill with the definitions of its tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureInputs:
    """What the choice depends on. `forced` is "auto" where neither the request nor the agent says.

    `is_deferred`: not all definitions are sent, by the settings or because they exceed the budget.
    `has_code`: some tool is open to code. `can_delegate`: there is a connector, and the chain of agents may
    go on. `tools` and `tokens` are of all that it may call. `arm` is the user's way, and `is_counted` in a
    rollout that compares.
    """

    forced: Exposure = "auto"
    kind: AgentKind = "assistant"
    is_offline: bool = False
    is_deferred: bool = False
    tools: int = 0
    tokens: int = 0
    budget: int = 10_000
    has_code: bool = False
    can_delegate: bool = True
    arm: Arm = "agents"
    is_counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureChoice:
    """The one way to a tool, and why. `arm` is set for runs that a rollout counts."""

    exposure: Exposure
    why: str = field(default="", compare=False)
    arm: Arm | None = None


def choose(given: ExposureInputs) -> ExposureChoice:
    if given.kind == "connector":
        return _of_connector(given)
    match given.forced:
        case "direct" | "search":
            return ExposureChoice(exposure=given.forced, why=_ASKED)
        case "delegate" if given.can_delegate and not given.is_offline:
            return ExposureChoice(exposure="delegate", why=_ASKED)
        case "code" if given.has_code and not given.is_offline:
            return ExposureChoice(exposure="code", why=_ASKED)
        case _:
            pass
    if given.is_offline:  # nothing to save, and it reads definitions best
        return ExposureChoice(exposure="direct", why="the offline model")
    by_budget = ExposureChoice(exposure="search", why=_DEFERRED) if given.is_deferred else _WITHIN_BUDGET
    if given.forced != "auto":
        return replace(by_budget, why=f"{given.forced} is not possible; {by_budget.why}")
    if not given.can_delegate:
        return replace(by_budget, why=f"nobody to delegate to; {by_budget.why}")
    if given.is_counted:
        way = ExposureChoice(exposure="delegate", why="") if given.arm == "agents" else by_budget
        return replace(way, why=f"the rollout has it so: {given.arm}", arm=given.arm)
    is_few = not given.is_deferred and given.tools <= FEW_TOOLS and given.tokens <= FEW_TOKENS
    if given.kind == "assistant" and given.arm == "agents" and not is_few:
        return ExposureChoice(exposure="delegate", why=f"{given.tools} tools are too many to hold at once")
    return by_budget


_ASKED = "the request or the agent says so"
_DEFERRED = "definitions are deferred"
_WITHIN_BUDGET = ExposureChoice(exposure="direct", why="all definitions are within the budget")


def checked_exposure(wanted: Any) -> Exposure:
    """`InvalidArguments` names those there are."""
    for known in get_args(Exposure):
        if wanted == known:
            return known
    raise InvalidArguments(
        f"{str(wanted)[:40]!r} is no exposure", hint=f"there are: {', '.join(get_args(Exposure))}"
    )


def _of_connector(given: ExposureInputs) -> ExposureChoice:
    """It knows its tools in full, unless they are too many even for that; nobody is below it."""
    if given.forced in ("direct", "search"):
        return ExposureChoice(exposure=given.forced, why=_ASKED)
    is_too_much = given.is_deferred and given.tokens > ROOM * given.budget
    if is_too_much:
        return ExposureChoice(exposure="search", why=f"{given.tokens:,} tokens of definitions are too many")
    return ExposureChoice(exposure="direct", why="the tools of its own connector")
