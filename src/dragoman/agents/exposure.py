"""By which way an agent reaches its tools in one run. Pure: a table read from top to bottom.

direct: every definition is sent. search: they are found on the way. delegate: each job goes to the agent of
a connector. code: the model writes code that calls them.
"""

from dataclasses import dataclass
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
    """The one way to a tool. `arm` is set for runs that a rollout counts."""

    exposure: Exposure
    arm: Arm | None = None


def choose(given: ExposureInputs) -> ExposureChoice:
    if given.kind == "connector":
        return ExposureChoice(exposure=_of_connector(given))
    match given.forced:
        case "direct" | "search":
            return ExposureChoice(exposure=given.forced)
        case "delegate" if given.can_delegate and not given.is_offline:
            return ExposureChoice(exposure="delegate")
        case "code" if given.has_code and not given.is_offline:
            return ExposureChoice(exposure="code")
        case _:
            pass
    if given.is_offline:
        return ExposureChoice(exposure="direct")  # nothing to save, and it reads definitions best
    by_budget: Exposure = "search" if given.is_deferred else "direct"
    if given.forced != "auto" or not given.can_delegate:
        return ExposureChoice(exposure=by_budget)
    if given.is_counted:
        exposure: Exposure = "delegate" if given.arm == "agents" else by_budget
        return ExposureChoice(exposure=exposure, arm=given.arm)
    is_few = not given.is_deferred and given.tools <= FEW_TOOLS and given.tokens <= FEW_TOKENS
    delegates = given.kind == "assistant" and given.arm == "agents" and not is_few
    return ExposureChoice(exposure="delegate" if delegates else by_budget)


def checked_exposure(wanted: Any) -> Exposure:
    """`InvalidArguments` names those there are."""
    for known in get_args(Exposure):
        if wanted == known:
            return known
    raise InvalidArguments(
        f"{str(wanted)[:40]!r} is no exposure", hint=f"there are: {', '.join(get_args(Exposure))}"
    )


def _of_connector(given: ExposureInputs) -> Exposure:
    """It knows its tools in full, unless they are too many even for that; nobody is below it."""
    if given.forced in ("direct", "search"):
        return given.forced
    is_too_much = given.is_deferred and given.tokens > ROOM * given.budget
    return "search" if is_too_much else "direct"
