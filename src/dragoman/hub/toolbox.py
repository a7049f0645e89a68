"""The road, the catalog and the sandbox as agents have them. Fills `Toolbox`."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from dragoman.agents.offers import Told
from dragoman.agents.work import ConnectorCard, ConnectorState, FoundTools
from dragoman.catalog import Catalog
from dragoman.catalog.footprints import Footprints
from dragoman.errors import DragomanError, NotFound
from dragoman.hub.code import Code
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.tools import Tools
from dragoman.scope import Caller
from dragoman.tool import Tool, ToolCall, ToolOutput

_STATES: dict[str, ConnectorState] = {"needs_auth": "needs_auth", "error": "error", "disabled": "disabled"}


class HubToolbox:
    def __init__(
        self,
        *,
        catalog: Catalog,
        connectors: Connectors,
        tools: Tools,
        code: Code,
        call: Callable[[ToolCall, Caller], Awaitable[ToolOutput]],
        narrowed: Callable[[Caller], Awaitable[Caller]],
    ) -> None:
        self._catalog = catalog
        self._connectors = connectors
        self._tools = tools
        self._code = code
        self._call = call
        self._narrowed = narrowed
        self._footprints = Footprints()

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        here = await self._narrowed(caller)
        found: list[Tool] = []
        for tool in self._catalog.list(here):
            try:
                info = self._catalog.info(tool.name, here)
            except NotFound:
                continue
            if info.state == "ready" and tool.is_open_to("agent"):
                found.append(tool)
        return found

    async def search(self, query: str, caller: Caller, limit: int) -> FoundTools:
        here = await self._narrowed(caller)
        found = await self._tools.search(query, limit=limit, caller=here)
        tools = [hit.tool for hit in found.hits if hit.tool.is_open_to("agent")]
        return FoundTools(tools=tools, total=found.total)

    async def call(self, call: ToolCall, caller: Caller) -> ToolOutput:
        return await self._call(call, caller)

    async def run_code(self, code: str, caller: Caller) -> Told:
        output = await self._code.run(code, caller)
        facts: dict[str, Any] = {"calls": output.calls}
        if output.printed:
            facts["printed"] = output.printed
        if output.error is not None:
            facts |= {"error": output.error.code, "message": output.error.message, "hint": output.error.hint}
            return Told(content=facts, ok=False, code=output.error.code, tokens_saved=output.tokens_outside)
        return Told(content={**facts, "result": output.result}, tokens_saved=output.tokens_outside)

    def code_guide(self) -> str:
        return self._code.description()

    async def connectors(self, caller: Caller) -> Sequence[ConnectorCard]:
        views = await self._connectors.list(caller)
        return [_card(view) for view in views if view.connector.kind != "native"]

    async def connect(self, card: ConnectorCard, caller: Caller) -> ConnectorCard:
        with suppress(DragomanError):  # how it stands then says why
            await self._connectors.connect(card.slug, caller)
        return _card(await self._connectors.get(card.slug, caller))

    def tokens(self, tool: Tool) -> int:
        return self._footprints.of(tool)


def _card(view: ConnectorView) -> ConnectorCard:
    connector = view.connector
    return ConnectorCard(
        id=connector.id,
        slug=connector.slug,
        description=connector.description,
        state="disabled" if not connector.enabled else _STATES.get(view.status.state, "ready"),
        cause=view.status.cause,
        instructions=connector.instructions or "",
        tools=view.tools,
        aliases=tuple(connector.aliases),
    )
