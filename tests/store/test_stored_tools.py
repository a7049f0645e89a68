from dataclasses import replace

import pytest
from store_values import NOON, a_connector, a_tool, a_version

from dragoman.errors import NotFound
from dragoman.store import Store
from dragoman.tool import Annotations, ToolDefinition

pytestmark = pytest.mark.anyio


async def test_a_tool_comes_back_as_it_went_in(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    tool = a_tool(
        version=3,
        accepted_version=2,
        identity="user:local:ann",
        enabled=False,
        is_mcp=False,
        cache_ttl=1.5,
        allowed_callers=frozenset({"code", "agent"}),
        definition=ToolDefinition(
            original_name="now",
            output_schema={"type": "object"},
            annotations=Annotations(destructive=True, idempotent=False),
            meta={"a": [1, None]},
        ),
    )
    await store.connectors.save_tools([tool], [], [])
    assert await store.connectors.tools("local") == [tool]
    assert await store.connectors.tools("other") == []


async def test_what_only_a_server_would_write_is_kept_as_it_is(store: Store) -> None:
    await store.connectors.add(a_connector(instructions="nul \x00, half \ud800, whole 😀"), [])
    strange = ToolDefinition(
        original_name="now",
        description="nul \x00 and half a surrogate \ud800",
        input_schema={"maximum": 2**70, "": "empty"},
    )
    tool = a_tool(definition=strange)
    await store.connectors.save_tools([tool], [replace(a_version(tool), diff="+ \x00")], [])
    (found,) = await store.connectors.tools()
    assert found.definition == strange
    (connector,) = await store.connectors.list()
    assert connector.instructions == "nul \ufffd, half \ufffd, whole 😀"
    (version,) = await store.connectors.versions(tool)
    assert version.diff == "+ \ufffd"


async def test_five_hundred_tools_are_saved_changed_and_removed_together(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    tools = [a_tool(f"mcp_time_{n:03}") for n in range(500)]
    await store.connectors.save_tools(tools, [a_version(tool) for tool in tools], [])
    changed = [replace(tool, version=2, revision=1) for tool in tools[:400]]
    await store.connectors.save_tools(
        changed, [a_version(tool, 2, "changed") for tool in changed], tools[400:]
    )
    assert await store.connectors.tools() == changed
    assert [version.version for version in await store.connectors.versions(tools[0])] == [1, 2]
    assert await store.connectors.versions(tools[499]) == []


async def test_a_save_that_fails_changes_nothing(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    kept = a_tool("mcp_time_kept")
    await store.connectors.save_tools([kept], [], [])
    with pytest.raises(NotFound):
        await store.connectors.save_tools(
            [a_tool("mcp_time_new"), a_tool("bad", connector_id="con_gone")], [], [kept]
        )
    assert await store.connectors.tools() == [kept]


async def test_versions_come_oldest_first_and_know_their_diff(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    tool = a_tool(version=10)
    versions = [a_version(tool, n, f"diff {n}") for n in range(1, 11)]
    await store.connectors.save_tools([tool], list(reversed(versions)), [])
    assert await store.connectors.versions(tool) == versions
    assert versions[0].seen_at == NOON


async def test_the_same_tool_of_two_identities_and_workspaces_is_three_tools(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    await store.connectors.add(a_connector(id="con_other", workspace="other"), [])
    ann, bob = a_tool(identity="user:local:ann"), a_tool(identity="user:local:bob")
    other = a_tool(workspace="other", connector_id="con_other", identity="user:local:ann")
    for tool in (ann, bob, other):
        await store.connectors.save_tools(
            [tool], [a_version(tool, diff=f"{tool.workspace} {tool.identity}")], []
        )
    await store.connectors.save_tools([], [], [ann])
    assert await store.connectors.tools() == [bob, other]
    assert await store.connectors.versions(ann) == []
    (version,) = await store.connectors.versions(other)
    assert version.diff == "other user:local:ann"


async def test_versions_of_two_identities_in_one_save_are_refused(store: Store) -> None:
    ann, bob = a_tool(identity="ann"), a_tool(identity="bob")
    with pytest.raises(ValueError, match="one connector and identity"):
        await store.connectors.save_tools([ann, bob], [a_version(ann)], [])
    with pytest.raises(ValueError, match="without the tool"):
        await store.connectors.save_tools([], [a_version(ann)], [])


async def test_a_known_tool_keeps_the_time_it_was_first_seen(store: Store) -> None:
    await store.connectors.add(a_connector(), [])
    await store.connectors.save_tools([a_tool()], [], [])
    later = a_tool(first_seen=NOON.replace(year=2027), enabled=False, revision=1)
    await store.connectors.save_tools([later], [], [])
    assert await store.connectors.tools() == [a_tool(enabled=False)]
