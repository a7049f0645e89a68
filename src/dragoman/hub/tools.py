"""Tools as people handle them: list, search, look, switch, read the versions, accept a change."""

from collections.abc import Sequence

from dragoman.catalog import Catalog, ToolInfo
from dragoman.catalog.search import Found, Question, Search
from dragoman.errors import Denied
from dragoman.hub.registry import Registry
from dragoman.scope import Caller
from dragoman.store import ToolVersion
from dragoman.tool import Tool


class Tools:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(self, *, caller: Caller, catalog: Catalog, registry: Registry) -> None:
        self._caller = caller
        self._catalog = catalog
        self._registry = registry
        self._search = Search(catalog)

    def list(self, connector: str | None = None, caller: Caller | None = None) -> list[Tool]:
        """All tools of the caller, or those of one connector; from memory, whatever the servers do."""
        caller = caller or self._caller
        if connector is None:
            return self._catalog.list(caller)
        return self._catalog.list(caller, self._registry.get(connector, caller).id)

    async def search(
        self,
        query: str,
        *,
        strategy: str = "hybrid",
        limit: int = 10,
        connector: str | None = None,
        caller: Caller | None = None,
    ) -> Found:
        """Finds tools by what they do: those that the caller may see and call, the best first."""
        caller = caller or self._caller
        question = Question.checked(query, strategy, limit)
        chosen = self._registry.get(connector, caller).id if connector else None
        return await self._search.find(question, caller, chosen)

    def get(self, name: str, caller: Caller | None = None) -> Tool:
        return self._catalog.get(name, caller or self._caller)

    def info(self, name: str, caller: Caller | None = None) -> ToolInfo:
        return self._catalog.info(name, caller or self._caller)

    def is_mcp(self, name: str, caller: Caller | None = None) -> bool:
        return self._catalog.is_mcp(name, caller or self._caller)

    async def enable(self, name: str, caller: Caller | None = None) -> Tool:
        return await self._catalog.enable(name, self._who_may_change(name, caller))

    async def disable(self, name: str, caller: Caller | None = None) -> Tool:
        return await self._catalog.disable(name, self._who_may_change(name, caller))

    async def versions(self, name: str, caller: Caller | None = None) -> Sequence[ToolVersion]:
        return await self._catalog.versions(name, caller or self._caller)

    async def accept(self, name: str, caller: Caller | None = None) -> Tool:
        return await self._catalog.accept(name, self._who_may_change(name, caller))

    def _who_may_change(self, name: str, caller: Caller | None) -> Caller:
        """The caller, if the tool's list is theirs to change: their own, or one of the tier that they run."""
        caller = caller or self._caller
        tool = self._catalog.get(name, caller)
        connector = self._catalog.connector_of(tool)
        is_own = bool(connector.owner or tool.identity)
        is_run = caller.role == "operator" or (caller.is_admin and connector.workspace == caller.workspace)
        if not (is_own or is_run):
            raise Denied(f"the tool {tool.name!r} belongs to everybody", hint="ask an admin to change it")
        return caller
