"""The road, the catalog and the sandbox as agents have them. Fills `Toolbox`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman.agents.model_errors import failure
from dragoman.agents.offers import OfferCall, ToolReply
from dragoman.agents.work_context import ConnectorCard, ConnectorState, FoundTools, PersonCard
from dragoman.catalog.footprints import Footprints
from dragoman.connections.missing_credentials import credential_hint
from dragoman.errors import Denied, DragomanError
from dragoman.hub.code import Code
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.tool_media import keep_media
from dragoman.hub.tools import Tools, callable_tools
from dragoman.sandbox import guide
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE, Caller
from dragoman.tool import Tool, ToolOutput

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

_STATES: dict[str, ConnectorState] = {"needs_auth": "needs_auth", "error": "error", "disabled": "disabled"}


class HubToolbox:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self.call = runtime.road.call
        self.loaded = runtime.loading.loaded_in
        self.tokens = Footprints().of
        self.is_open_to_code = runtime.sandbox.is_open

    async def present(self, caller: Caller) -> Caller:
        person = await self._runtime.directory.find(caller.workspace, caller.user)
        if person is None or caller.role == "operator":
            return caller
        user = person.user
        if not user.is_active:
            raise Denied("the person whom this was for is no longer active", hint="ask an admin")
        if user.role == "admin":
            return caller
        return replace(caller, role="member", grants=(*caller.grants, user.capabilities))

    async def keep_media(self, output: ToolOutput, caller: Caller) -> tuple[Mapping[str, Any], ...]:
        return await keep_media(output, caller, self._runtime.store.calls)

    async def keeps_task(self, call: str) -> bool:
        return await self._runtime.task_records.find(call) is not None

    async def person(self, caller: Caller) -> PersonCard:
        person = await self._runtime.directory.of(caller)
        name = person.user.name
        is_local = (caller.workspace, caller.user) == (LOCAL_WORKSPACE, LOCAL_USER)
        known = "the owner of this installation" if is_local and name == LOCAL_USER else name
        zone = person.user.preferences.time_zone
        return PersonCard(
            name=known, workspace=person.workspace.name, email=person.user.email, time_zone=zone
        )

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        return [info.shown_tool for info in await callable_tools(self._runtime, caller, "agent")]

    async def deferred(self, caller: Caller) -> frozenset[str]:
        return self._runtime.loading.deferred(await callable_tools(self._runtime, caller, "agent"), caller)

    async def search(self, query: str, caller: Caller, limit: int) -> FoundTools:
        here = await self._runtime.active.narrowed(caller)
        # Loads what it finds into the thread, where the user wants that.
        found = await Tools(self._runtime, here).resolve(query, max_tools=limit)
        tools = [info.shown_tool for info, _ in found.hits if info.tool.is_open_to("agent")]
        return FoundTools(tools=tools, total=found.total)

    async def run_code(self, code: str, caller: Caller, attempt: OfferCall) -> ToolReply:
        output = await Code(self._runtime, caller).run(code, observer=attempt.observer)
        if (error := output.error) is not None:
            printed = f"It printed:\n{output.printed}" if output.printed else ""
            place = (error.traceback or "").rstrip().removesuffix(error.message).rstrip()
            before = "\n".join(filter(None, [printed, place]))
            reply = failure(error.code, error.message, error.hint, before=before)
        else:
            printed = {"printed": output.printed} if output.printed else {}
            reply = ToolReply(content={"calls": output.calls, **printed, "result": output.result})
        return replace(reply, tokens_saved=output.tokens_outside, calls=output.calls, cost=output.cost)

    def code_guide(self) -> str:
        return guide(self._runtime.sandbox.limits, finds=False)

    def stub(self, tool: Tool, caller: Caller) -> str:
        return self._runtime.sandbox.stub(tool, caller)

    async def connectors(self, caller: Caller) -> Sequence[ConnectorCard]:
        views = await Connectors(self._runtime, await self._runtime.active.narrowed(caller)).list()
        return [_card(view) for view in views if view.connector.kind != "native"]

    async def connect(self, card: ConnectorCard, caller: Caller) -> ConnectorCard:
        connectors = Connectors(self._runtime, caller)
        with suppress(DragomanError):  # how it stands then says why
            view = await connectors.connect(card.slug)
            if not view.tools and view.status.state == "connected":
                await connectors.refresh(card.slug)
        return _card(await connectors.get(card.slug))

    def is_native(self, tool: Tool) -> bool:
        return self._runtime.catalog.connector_of(tool).kind == "native"


def _card(view: ConnectorView) -> ConnectorCard:
    connector = view.connector
    return ConnectorCard(
        id=connector.id,
        slug=connector.slug,
        description=connector.description,
        state="disabled" if not connector.enabled else _STATES.get(view.status.state, "ready"),
        cause=view.status.cause,
        command_hint=credential_hint(connector) if view.status.state == "needs_auth" else None,
        instructions=connector.instructions or "",
        tools=view.tools,
        aliases=tuple(connector.aliases),
    )
