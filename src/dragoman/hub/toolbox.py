"""The road, the catalog and the sandbox as agents have them. Fills `Toolbox`."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dragoman.agents.offers import OfferCall, ToolReply
from dragoman.agents.work_context import ConnectorCard, ConnectorState, FoundTools
from dragoman.catalog import Catalog, ToolInfo
from dragoman.catalog.footprints import Footprints
from dragoman.connections.missing_credentials import credential_hint
from dragoman.errors import Denied, DragomanError, NotFound
from dragoman.hub.code import Code
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.tools import Tools
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.tool import Tool, ToolCall, ToolOutput

_STATES: dict[str, ConnectorState] = {"needs_auth": "needs_auth", "error": "error", "disabled": "disabled"}


class HubToolbox:
    def __init__(
        self,
        *,
        catalog: Catalog,
        directory: Directory,
        connectors: Connectors,
        tools: Tools,
        code: Code,
        call: Callable[[ToolCall, Caller], Awaitable[ToolOutput]],
        narrowed: Callable[[Caller], Awaitable[Caller]],
        up_to_date: Callable[[Caller], Awaitable[None]],
    ) -> None:
        """`up_to_date` returns when what servers told of their lists is read."""
        self._catalog = catalog
        self._directory = directory
        self._connectors = connectors
        self._tools = tools
        self._code = code
        self._call = call
        self._narrowed = narrowed
        self._up_to_date = up_to_date
        self._footprints = Footprints()

    async def present(self, caller: Caller) -> Caller:
        person = await self._directory.find(caller.workspace, caller.user)
        if person is None or caller.role == "operator":
            return caller
        user = person.user
        if not user.is_active:
            raise Denied("the person whom this was for is no longer active", hint="ask an admin")
        if user.role == "admin":
            return caller
        return replace(caller, role="member", grants=(*caller.grants, user.capabilities))

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        return [info.tool for info in await self._infos(caller)]

    async def deferred(self, caller: Caller) -> frozenset[str]:
        return self._tools.deferred(await self._infos(caller), caller)

    def loaded(self, caller: Caller) -> Sequence[str]:
        return self._tools.loaded(caller=caller)

    async def search(self, query: str, caller: Caller, limit: int) -> FoundTools:
        # Loads what it finds into the thread, where the user wants that.
        found = await self._tools.resolve(query, max_tools=limit, caller=await self._narrowed(caller))
        tools = [info.tool for info, _ in found.hits if info.tool.is_open_to("agent")]
        return FoundTools(tools=tools, total=found.total)

    async def call(self, call: ToolCall, caller: Caller) -> ToolOutput:
        return await self._call(call, caller)

    async def run_code(self, code: str, caller: Caller, attempt: OfferCall) -> ToolReply:
        output = await self._code.run(code, caller, witness=attempt.witness)
        facts: dict[str, Any] = {"calls": output.calls}
        if output.printed:
            facts["printed"] = output.printed
        if output.error is not None:
            facts |= {"error": output.error.code, "message": output.error.message, "hint": output.error.hint}
            facts["traceback"] = output.error.traceback
        else:
            facts["result"] = output.result
        return ToolReply(
            content=facts,
            ok=output.ok,
            code=output.error.code if output.error else None,
            tokens_saved=output.tokens_outside,
            calls=output.calls,
        )

    def code_guide(self) -> str:
        return self._code.description()

    async def connectors(self, caller: Caller) -> Sequence[ConnectorCard]:
        views = await self._connectors.list(await self._narrowed(caller))
        return [_card(view) for view in views if view.connector.kind != "native"]

    async def connect(self, card: ConnectorCard, caller: Caller) -> ConnectorCard:
        with suppress(DragomanError):  # how it stands then says why
            view = await self._connectors.connect(card.slug, caller)
            if not view.tools and view.status.state == "connected":
                await self._connectors.refresh(card.slug, caller)
        return _card(await self._connectors.get(card.slug, caller))

    def tokens(self, tool: Tool) -> int:
        return self._footprints.of(tool)

    def is_open_to_code(self, tool: Tool) -> bool:
        return self._code.is_open(tool)

    def is_native(self, tool: Tool) -> bool:
        return self._catalog.connector_of(tool).kind == "native"

    async def _infos(self, caller: Caller) -> Sequence[ToolInfo]:
        await self._up_to_date(caller)
        here = await self._narrowed(caller)
        found: list[ToolInfo] = []
        for tool in self._catalog.list(here):
            try:
                info = self._catalog.info(tool.name, here)
            except NotFound:
                continue
            if info.state == "ready" and tool.is_open_to("agent"):
                found.append(info)
        return found


def _card(view: ConnectorView) -> ConnectorCard:
    connector = view.connector
    return ConnectorCard(
        id=connector.id,
        slug=connector.slug,
        description=connector.description,
        state="disabled" if not connector.enabled else _STATES.get(view.status.state, "ready"),
        cause=view.status.cause,
        hint=credential_hint(connector) if view.status.state == "needs_auth" else None,
        instructions=connector.instructions or "",
        tools=view.tools,
        aliases=tuple(connector.aliases),
    )
