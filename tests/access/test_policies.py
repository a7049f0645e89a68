"""Every row of policy, annotations and way: who is asked, and how wide a yes can be."""

from itertools import product

import pytest

from dragoman.access.approvals import need_of, policy_of
from dragoman.connector import Configuration, Connector, Origin, Policy
from dragoman.scope import Caller, Way
from dragoman.tool import Annotations, Tool, ToolDefinition

READS = Annotations(read_only=True)
SAYS_NOTHING = Annotations()
WRITES = Annotations(read_only=False, destructive=False)
DESTROYS = Annotations(read_only=False, destructive=True)
DESTROYS_ONLY = Annotations(destructive=True)
MARKS = (READS, SAYS_NOTHING, WRITES, DESTROYS, DESTROYS_ONLY)
WAYS: tuple[Way, ...] = ("direct", "agent", "code", "mcp")
RUNS, ASKS, ASKS_EACH_TIME = None, False, True


def expected(policy: Policy, marks: Annotations, way: Way) -> bool | None:
    if policy == "always":
        return ASKS_EACH_TIME
    by_default = {
        READS: RUNS,
        SAYS_NOTHING: ASKS,
        WRITES: ASKS,
        DESTROYS: ASKS_EACH_TIME,
        DESTROYS_ONLY: ASKS_EACH_TIME,
    }
    return RUNS if policy == "never" or way == "direct" else by_default[marks]


@pytest.mark.parametrize(("policy", "marks", "way"), [*product(("never", "default", "always"), MARKS, WAYS)])
def test_who_is_asked(policy: Policy, marks: Annotations, way: Way) -> None:
    need = need_of(policy, marks, Caller(way=way))
    assert (None if need is None else need.only_once) is expected(policy, marks, way)


def test_an_agent_is_no_person_whatever_way_it_names() -> None:
    assert need_of("default", WRITES, Caller(way="direct", agent="mailer")) is not None


POLICIES: tuple[Policy | None, ...] = (None, "never", "default", "always")


@pytest.mark.parametrize(("tool", "connector", "workspace"), [*product(POLICIES, POLICIES, POLICIES[1:])])
def test_the_nearest_policy_wins(tool: Policy | None, connector: Policy | None, workspace: Policy) -> None:
    assert policy_of(*made(tool, connector), workspace) == (tool or connector or workspace)


@pytest.mark.parametrize("policy", ["never", "default"])
def test_what_a_user_brought_does_not_get_out_of_being_asked_each_time(policy: Policy) -> None:
    theirs = made(policy, None, owner="anna", origin="people")
    assert policy_of(*theirs, "always") == "always"
    assert policy_of(*theirs, "default") == policy
    assert policy_of(*made(policy, None, owner="owner", origin="operator"), "always") == policy


def made(
    tool: Policy | None, connector: Policy | None, owner: str = "", origin: Origin = "people"
) -> tuple[Tool, Connector]:
    configuration = Configuration(command="x", approval=connector)
    return (
        Tool(
            name="mcp_a_b",
            workspace="w",
            connector_id="c",
            slug="a",
            definition=ToolDefinition(original_name="b"),
            approval=tool,
        ),
        Connector(id="c", workspace="w", owner=owner, slug="a", configuration=configuration, origin=origin),
    )
