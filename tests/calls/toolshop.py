"""A small source of tools in this process: it fills `Source` and keeps what it was asked."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any

from cluster.nodes import alone
from dragoman.access import AccessRules, ActiveConnectors, ApprovalGate, Budgets, ConcurrencyLimits
from dragoman.background_tasks import Supervisor
from dragoman.calls import Auditor, Recorder, Road, open_auditor, open_recorder
from dragoman.catalog import Catalog
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.source import ConnectionStatus, Listing, SourceCall
from dragoman.connector import Configuration, Connector
from dragoman.events import Events
from dragoman.hooks import Hooks
from dragoman.identity.directory import Directory
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.store import open_store
from dragoman.store.protocols import Store
from dragoman.tool import Annotations, RawResult, ToolCall, ToolDefinition, ToolOutput
from dragoman.vault import Key, KeyRing, Vault

Work = Callable[[Mapping[str, Any]], Awaitable[RawResult]]


def text(*parts: str, is_error: bool = False) -> RawResult:
    return RawResult(content=tuple({"type": "text", "text": part} for part in parts), is_error=is_error)


def made_connector(slug: str = "shop", *, owner: str = "", **configuration: Any) -> Connector:
    return Connector(
        id=f"id-{slug}",
        workspace="local",
        owner=owner,
        slug=slug,
        configuration=Configuration(command="shop", **configuration),
    )


@dataclass
class Toolshop:
    """Tools are plain coroutines; every call that reaches the shop is in `calls`."""

    definitions: list[ToolDefinition] = field(default_factory=list)
    work: dict[str, Work] = field(default_factory=dict)
    calls: list[SourceCall] = field(default_factory=list)

    def sell(self, name: str, work: Work, **facts: Any) -> None:
        self.definitions.append(ToolDefinition(original_name=name, **facts))
        self.work[name] = work

    async def call(self, call: SourceCall) -> RawResult:
        self.calls.append(call)
        return await self.work[call.tool.original_name](call.arguments)

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        return Listing(tools=tuple(self.definitions), era="2026")

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        return Listing(tools=tuple(self.definitions), era="2026")

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return self.status(connector, caller)

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return self.status(connector, caller)

    async def retire(self, connector: Connector, *, is_removed: bool = False) -> None: ...

    async def close_for_user(self, workspace: str, user: str, connector_id: str | None = None) -> None: ...

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return ConnectionStatus(
            connector_id=connector.id, slug=connector.slug, identity="", state="connected"
        )


class World:
    """Store, catalog, recorder and road around one toolshop, as the hub builds them."""

    def __init__(self, url: str, connector: Connector | None = None, **parts: Any) -> None:
        self.url = url
        self.connector = connector or made_connector()
        self.shop = Toolshop()
        self.events = Events()
        self._parts = parts
        self._stack = AsyncExitStack()
        self.store: Store
        self.catalog: Catalog
        self.recorder: Recorder
        self.auditor: Auditor
        self.road: Road

    async def __aenter__(self) -> "World":
        self.store = await self._stack.enter_async_context(open_store(self.url))
        self.recorder = await self._stack.enter_async_context(open_recorder(self.store, Supervisor()))
        self.auditor = await self._stack.enter_async_context(open_auditor(self.store.audit, Supervisor()))
        self.catalog = await Catalog.load(self.store, self.events)
        directory = Directory(self.store.people)
        vault = Vault(self.store.connectors, KeyRing(Key(token_bytes(32))))
        approvals = ApprovalGate(self.store.approvals, vault, directory, self.events, alone(), wait=1.0)
        active = ActiveConnectors(self.store.threads, directory, lambda _: [self.connector], self.catalog)
        self.road = Road(
            catalog=self.catalog,
            access=AccessRules(active),
            approvals=approvals,
            limits=ConcurrencyLimits(),
            budgets=Budgets(self.store.usage, directory, self.store.people.find_key_by_id),
            sources={"mcp": self.shop},
            store=self.store,
            recorder=self.recorder,
            auditor=self.auditor,
            events=self.events,
            hooks=Hooks((), directory, HttpClients(), None, multi_user=False),
            **self._parts,
        )
        if not await self.store.connectors.list():
            await self.store.connectors.add(self.connector, [])
        self.catalog.adopt(self.connector)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def offer(self, name: str, work: Work, **facts: Any) -> None:
        self.shop.sell(name, work, **facts)
        await self.catalog.refresh(self.connector, await self.shop.list_tools(self.connector, LOCAL_CALLER))

    async def call(self, tool: str, /, caller: Caller = LOCAL_CALLER, **arguments: Any) -> ToolOutput:
        return await self.road.call(ToolCall(tool=tool, arguments=arguments), caller)


async def echo(arguments: Mapping[str, Any]) -> RawResult:
    return RawResult(structured=dict(arguments), has_structured=True)


class Doorstep:
    """Work that waits until it is let go, and tells when it has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.go = asyncio.Event()

    async def __call__(self, arguments: Mapping[str, Any]) -> RawResult:
        self.begun.release()
        await self.go.wait()
        return text("done")


READ_ONLY = Annotations(read_only=True)
