"""A small catalog that a person can judge, and search over it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from catalog.listings import defined, listed, made_connector, open_catalog
from dragoman.catalog import Catalog
from dragoman.catalog.search import Search, SearchQuery, SearchResults
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.tool import ToolDefinition


def taking(**parameters: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in parameters.items()}
    return {"type": "object", "properties": properties}


TOOLS: dict[str, list[ToolDefinition]] = {
    "mail": [
        defined("send_message", "Send an email to one or more people.", input_schema=taking(to="addresses")),
        defined("list_messages", "List the newest emails of the inbox."),
        defined("delete_message", "Delete an email for ever."),
    ],
    "github": [
        defined("create_issue", "Open a new issue in a repository."),
        defined("list_issues", "List the open issues of a repository."),
        defined("create_pull_request", "Propose changes of a branch for review."),
    ],
    "weather": [
        defined("getForecast", "Tells how the coming days will be.", input_schema=taking(city="the town")),
        defined("search", "Finds a weather station by its name."),
    ],
    "files": [defined("search", "Finds files by a part of their text.", input_schema=taking(glob="which"))],
}


class Shop:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.search = Search(catalog)

    async def find(
        self, text: str, strategy: str = "hybrid", limit: int = 10, caller: Caller = LOCAL_CALLER
    ) -> SearchResults:
        return await self.search.find(SearchQuery.checked(text, strategy, limit), caller)

    async def names(self, text: str, strategy: str = "hybrid", **facts: Any) -> list[str]:
        return [hit.tool.name for hit in (await self.find(text, strategy, **facts)).hits]


@asynccontextmanager
async def open_shop(url: str, **facts: dict[str, Any]) -> AsyncGenerator[Shop]:
    """`facts` are those of a connector, by its name: its owner, its workspace, its aliases."""
    connectors = [made_connector(slug, **facts.get(slug, {})) for slug in TOOLS]
    async with open_catalog(url, *connectors) as catalog:
        for connector in connectors:
            await catalog.refresh(connector, listed(*TOOLS[connector.slug]))
        yield Shop(catalog)
