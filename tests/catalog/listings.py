"""What a server might list, and a catalog on a real store that takes it in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from dragoman.catalog import Catalog
from dragoman.connections.source import Listing
from dragoman.connector import Configuration, Connector
from dragoman.events import Events
from dragoman.store import open_store
from dragoman.tool import ToolDefinition


def made_connector(slug: str = "time", **facts: Any) -> Connector:
    configuration = facts.pop("configuration", {})
    defaults: dict[str, Any] = {"id": f"id-{slug}", "workspace": "local", "owner": ""}
    return Connector(
        slug=slug,
        configuration=Configuration.model_validate({"command": "server", **configuration}),
        **{**defaults, **facts},
    )


def defined(name: str, description: str = "", **facts: Any) -> ToolDefinition:
    return ToolDefinition(original_name=name, description=description, **facts)


def listed(*tools: str | ToolDefinition) -> Listing:
    return Listing(tools=tuple(defined(tool) if isinstance(tool, str) else tool for tool in tools))


@asynccontextmanager
async def open_catalog(url: str, *connectors: Connector) -> AsyncGenerator[Catalog]:
    """With these connectors in the store; those that are there already stay."""
    async with open_store(url) as store:
        known = {connector.id for connector in await store.connectors.list()}
        for connector in connectors:
            if connector.id not in known:
                await store.connectors.add(connector, [])
        catalog = await Catalog.load(store, Events())
        yield catalog


def native_connector() -> Connector:
    connector = made_connector("native")
    return replace(connector, configuration=Configuration(kind="native"))
