"""By which way an agent reaches its tools in one run. Pure: a table read from top to bottom.

direct: every definition is sent. search: they are found on the way. delegate: each job goes to the agent of
a connector. code: the model writes code that calls them.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from dragoman.agent import AgentKind, Exposure
from dragoman.errors import InvalidArguments

Arm = Literal["agents", "direct"]
ROOM = 8  # so many budgets a connector's own agent may fill with the definitions of its tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureInputs:
    """What the choice depends on. `forced` is "auto" where neither the request nor the agent says.

    `is_deferred`: not all definitions are sent, by the settings or because they exceed the budget.
    `has_code`: some tool is open to code. `can_delegate`: there is a connector, and the chain of agents may
    go on. `arm` is the user's in a rollout, None without one.
    """

    forced: Exposure = "auto"
    kind: AgentKind = "assistant"
    is_offline: bool = False
    is_deferred: bool = False
    tokens: int = 0
    budget: int = 10_000
    has_code: bool = False
    can_delegate: bool = True
    arm: Arm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureChoice:
    """`with_code`: run_code is offered beside the tools. `arm` is set for runs that a rollout counts."""

    exposure: Exposure
    with_code: bool = False
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
        return ExposureChoice(
            exposure="direct"
        )  # nothing to save, and it reads definitions better than hints
    by_budget: Exposure = "search" if given.is_deferred else "direct"
    if given.forced != "auto" or not given.can_delegate:
        return ExposureChoice(exposure=by_budget, with_code=given.has_code)
    if given.arm == "agents":
        return ExposureChoice(exposure="delegate", arm="agents")
    return ExposureChoice(exposure=by_budget, with_code=given.has_code, arm=given.arm)


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
