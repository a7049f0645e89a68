"""Which of several connectors with one name a caller reaches."""

import pytest

from dragoman.catalog import Catalog
from dragoman.connections.source import Listing
from dragoman.connector import Configuration, Connector
from dragoman.events import Events
from dragoman.scope import APP, Caller
from dragoman.store import open_store
from dragoman.tool import ToolDefinition

pytestmark = pytest.mark.anyio


def _connector(tier: str, workspace: str, owner: str) -> Connector:
    return Connector(
        id=f"con_{tier}", workspace=workspace, owner=owner, slug="x", configuration=Configuration(command="x")
    )


def _listing(*names: str) -> Listing:
    return Listing(tools=tuple(ToolDefinition(original_name=name) for name in names))


async def test_a_nearer_connector_hides_one_of_its_name_also_where_it_lacks_the_tool(sqlite_url: str) -> None:
    async with open_store(sqlite_url) as store:
        catalog = await Catalog.load(store, Events())
        tiers = {
            "user": _connector("user", "acme", "ann"),
            "workspace": _connector("workspace", "acme", ""),
            "app": _connector("app", APP, ""),
        }
        for tier, connector in tiers.items():
            await store.connectors.add(connector, [])
            await catalog.refresh(connector, _listing("both", f"only_{tier}"))
        ann, bob, eve = Caller("acme", "ann"), Caller("acme", "bob"), Caller("other", "eve")
        for catalog_now in (catalog, await Catalog.load(store, Events())):
            for caller, tier in ((ann, "user"), (bob, "workspace"), (eve, "app")):
                tool = catalog_now.get("mcp_x_both", caller)
                assert tool.connector_id == tiers[tier].id
                seen = {one for one in tiers if catalog_now.find(f"mcp_x_only_{one}", caller)}
                assert seen == {tier}
                assert {one.original_name for one in catalog_now.list(caller)} == {"both", f"only_{tier}"}
        catalog.forget("con_user")
        assert catalog.get("mcp_x_only_workspace", ann).connector_id == "con_workspace"
