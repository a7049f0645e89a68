"""When a person must say yes: the policy in force, what the tool says of itself, and who asks. Pure rules."""

from dataclasses import dataclass

from dragoman.connector import Connector, Policy
from dragoman.scope import Caller
from dragoman.tool import Annotations, Tool


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """That a person is asked: why, and whether each call needs an answer of its own."""

    reason: str
    only_once: bool


_EVERY_TIME = ApprovalNeed("every call of this tool needs a yes of its own", only_once=True)
_DESTRUCTIVE = ApprovalNeed("the tool says that it can destroy something", only_once=True)
_WRITES = ApprovalNeed("the tool says that it changes something", only_once=False)
_UNKNOWN = ApprovalNeed("the tool does not say that it only reads", only_once=False)


def is_person(caller: Caller) -> bool:
    """Whether nobody stands between the person and us: no agent, no code, no client of theirs."""
    return caller.way == "direct" and caller.agent is None


def policy_of(tool: Tool, connector: Connector, workspace: Policy) -> Policy:
    """The nearest of the tool's, the connector's and the workspace's.

    What a user brought along does not get out of a workspace where everybody is asked each time.
    """
    is_users_own = bool(connector.owner) and connector.origin == "people"
    if workspace == "always" and is_users_own:
        return "always"
    return tool.approval or connector.configuration.approval or workspace


def need_of(policy: Policy, marks: Annotations, caller: Caller) -> ApprovalNeed | None:
    """None when the call may run as it is.

    As MCP means its annotations, what only reads runs; only what declares itself destructive is.
    Who calls directly has consented by calling, unless everybody is to be asked each time.
    """
    if policy == "always":
        return _EVERY_TIME
    if policy == "never" or marks.read_only is True or is_person(caller):
        return None
    if marks.destructive is True:
        return _DESTRUCTIVE
    return _UNKNOWN if marks.read_only is None else _WRITES
