"""Tools as people handle them: list, search, load, look, switch, set, read the versions, accept a change."""

from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from dragoman.access.approvals import is_person
from dragoman.catalog import ToolInfo
from dragoman.catalog.search import SearchQuery, SearchResults
from dragoman.connector import Connector, Policy
from dragoman.errors import Denied, NotFound
from dragoman.hub.bound import BoundService
from dragoman.hub.deferred_tools import Footprint, ResolvedTools, in_thread
from dragoman.hub.tool_settings import checked_settings
from dragoman.scope import Caller, Way
from dragoman.store import ToolVersion
from dragoman.tool import Tool

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime


class Tools(BoundService):
    """What the caller may do with tools."""

    __slots__ = ()

    def list(self, connector: str | None = None) -> list[Tool]:
        """All tools of the caller, or those of one connector; from memory, whatever the servers do."""
        caller = self._caller
        if connector is None:
            return self._runtime.catalog.list(caller)
        return self._runtime.catalog.list(caller, self._runtime.registry.get(connector, caller).id)

    async def ready(self) -> Sequence[Tool]:
        """Those that the caller can call now, in their thread and by the way that they come.

        As a model should read them: one whose server cannot be reached now says so in its description.
        """
        return [
            info.shown_tool for info in await callable_tools(self._runtime, self._caller, self._caller.way)
        ]

    async def search(
        self,
        query: str,
        *,
        strategy: str = "hybrid",
        limit: int = 10,
        connector: str | None = None,
    ) -> SearchResults:
        """Finds tools by what they do: those that the caller may see and call, the best first."""
        caller = self._caller
        question = SearchQuery.checked(query, strategy, limit)
        chosen = self._runtime.registry.get(connector, caller).id if connector else None
        return await self._runtime.search.find(question, caller, chosen)

    async def resolve(
        self,
        prompt: str,
        *,
        thread: str | None = None,
        max_tools: int = 5,
        cost_limit: float | None = None,
        history: Sequence[str] = (),
    ) -> ResolvedTools:
        """Finds the tools for a prompt, and loads them into the thread if the user's `auto_load` is on.

        Where the prompt alone says too little, the last lines of `history` help. A tool that costs more than
        `cost_limit` dollars a call is left out. Without a thread the tools are for one call: none is loaded.
        """
        who = in_thread(self._caller, thread)
        return await self._runtime.loading.resolve(prompt, history, max_tools, cost_limit, who)

    async def load(self, names: Sequence[str], thread: str | None = None) -> tuple[str, ...]:
        """Takes tools into view in a thread, all or none of them; those that were not loaded there before."""
        return await self._runtime.loading.load(names, in_thread(self._caller, thread))

    async def unload(self, names: Sequence[str] | None = None, thread: str | None = None) -> tuple[str, ...]:
        """Takes tools out of view again, without names all of them; those that were loaded there."""
        return await self._runtime.loading.unload(names, in_thread(self._caller, thread))

    def loaded(self, thread: str | None = None) -> tuple[str, ...]:
        """Deferred tools that were loaded in this thread."""
        return self._runtime.loading.loaded_in(in_thread(self._caller, thread))

    def deferred(self, tools: Sequence[ToolInfo]) -> frozenset[str]:
        """Which of these tools of the caller a model gets only once they are loaded."""
        return self._runtime.loading.deferred(tools, self._caller)

    async def deferred_among(self, tools: Sequence[ToolInfo]) -> frozenset[str]:
        """Which of these few are, where all that the caller has decide whether any is."""
        return await self._runtime.loading.deferred_among(tools, self._caller)

    async def footprint(self, thread: str | None = None) -> Footprint:
        """What each tool that the caller can call costs in tokens, and which of them are in view."""
        return await self._runtime.loading.footprint(in_thread(self._caller, thread))

    def get(self, name: str) -> Tool:
        """One tool by its name. Raises `NotFound`."""
        return self._runtime.catalog.get(name, self._caller)

    async def listed(self, name: str) -> ToolInfo:
        """The same as `info`; a connector that was never listed is, if the name is of one of its tools."""
        if self._runtime.catalog.find(name, self._caller) is None:
            await self._runtime.lists.list_first(name, self._caller)
        return self.info(name)

    def info(self, name: str) -> ToolInfo:
        """The same with its state, version and size."""
        return self._runtime.catalog.info(name, self._caller)

    def is_mcp(self, name: str) -> bool:
        """Whether it comes from an MCP server."""
        return self._runtime.catalog.is_mcp(name, self._caller)

    async def enable(self, name: str) -> Tool:
        """It can be called again."""
        caller = self._who_may_change(name)
        tool = self._runtime.catalog.get(name, caller)
        if not tool.identity:  # a list of one's own is nobody else's to decide on
            connector = self._runtime.catalog.connector_of(tool)
            self._runtime.permissions.check_tool(caller, connector, tool, {"enabled": True})
        return await self._noted(await self._runtime.catalog.enable(name, caller), enabled=True)

    async def disable(self, name: str) -> Tool:
        """It stays known and cannot be called."""
        caller = self._who_may_change(name)
        return await self._noted(await self._runtime.catalog.disable(name, caller), enabled=False)

    async def configure(
        self,
        name: str,
        *,
        allowed_callers: Iterable[str] | None = None,
        approval: Policy | str | EllipsisType | None = ...,
        required_capabilities: Iterable[str] | None = None,
        cost: float | None = None,
        cache_ttl: float | None = None,
    ) -> Tool:
        """Sets what is given. `approval=None` leaves it to the connector and the workspace again.

        The settings hold for everybody who uses the tool, whatever the server lists from now on.
        """
        caller = self._who_may_set(name)
        settings = checked_settings(allowed_callers, approval, required_capabilities, cost, cache_ttl)
        tool = self._runtime.catalog.get(name, caller)
        connector = self._runtime.catalog.connector_of(tool)
        self._runtime.permissions.check_tool(caller, connector, tool, settings)
        changed = await self._runtime.catalog.configure(name, caller, **settings)
        return await self._noted(changed, **settings)

    async def versions(self, name: str) -> Sequence[ToolVersion]:
        """Every definition that it had, newest first."""
        return await self._runtime.catalog.versions(name, self._caller)

    async def accept(self, name: str) -> Tool:
        """Its changed definition becomes the one that is used."""
        caller = self._who_may_change(name)
        if not is_person(caller):
            raise Denied("only a person accepts a change of a tool", hint="use a key of your own")
        tool = self._runtime.catalog.get(name, caller)
        self._runtime.permissions.check_acceptance(caller, self._runtime.catalog.connector_of(tool), tool)
        tool = await self._runtime.catalog.accept(name, caller)
        return await self._noted(tool, accepted_version=tool.version)

    async def _noted(self, tool: Tool, **changes: Any) -> Tool:
        names = ("allowed_callers", "required_capabilities")
        plain = {name: sorted(value) if name in names else value for name, value in changes.items()}
        await self._runtime.auditor.done(self._caller, "tool.changed", tool.name, details=plain)
        return tool

    def _who_may_change(self, name: str) -> Caller:
        """The caller, if the tool's list is theirs to change: their own, or one of the tier that they run."""
        caller = self._caller
        tool = self._runtime.catalog.get(name, caller)
        connector = self._runtime.catalog.connector_of(tool)
        is_own = bool(connector.owner or tool.identity)
        if not (is_own or _is_run_by(caller, connector)):
            raise Denied(f"the tool {tool.name!r} belongs to everybody", hint="ask an admin to change it")
        return caller

    def _who_may_set(self, name: str) -> Caller:
        """As above; but what is decided about a connector of all is not for one of them to undo.

        And by a person only: else an agent could allow itself what it has to ask for.
        """
        caller = self._caller
        tool = self._runtime.catalog.get(name, caller)
        connector = self._runtime.catalog.connector_of(tool)
        if not (connector.owner or _is_run_by(caller, connector)):
            raise Denied(f"the tool {tool.name!r} belongs to everybody", hint="ask an admin to change it")
        if not is_person(caller):
            raise Denied("only a person changes the settings of a tool", hint="use a key of your own")
        return caller


async def callable_tools(runtime: "Runtime", caller: Caller, way: Way) -> Sequence[ToolInfo]:
    """What the caller can call now by this way: with what servers just said is new."""
    await runtime.watcher.read_announced(runtime.registry.list(caller))
    here = await runtime.active.narrowed(caller)
    found: list[ToolInfo] = []
    for tool in runtime.catalog.list(here):
        try:
            info = runtime.catalog.info(tool.name, here)
        except NotFound:
            continue
        if info.is_callable and tool.is_open_to(way):
            found.append(info)
    return found


def _is_run_by(caller: Caller, connector: Connector) -> bool:
    return caller.role == "operator" or (caller.is_admin and connector.workspace == caller.workspace)
