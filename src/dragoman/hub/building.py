"""How a hub is built: the parts in the order of their dependence, closed in the other."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from dragoman.access import ApprovalGate, Budgets, ConcurrencyLimits
from dragoman.agents.models import Models
from dragoman.calls import Road, open_auditor, open_recorder
from dragoman.calls.call_state import CallState
from dragoman.catalog import Catalog
from dragoman.catalog.search import Search
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.native import NativeTools
from dragoman.connections.oauth import Authorizations
from dragoman.connections.openapi.source import OpenApiServices
from dragoman.connections.pool import Connections
from dragoman.connections.source import ConnectionObserver, Secrets
from dragoman.connections.source_router import SourceRouter
from dragoman.discovery import McpRegistry
from dragoman.errors import DragomanError
from dragoman.events import Events
from dragoman.hub.agents import Agents
from dragoman.hub.approvals import Approvals
from dragoman.hub.audit import Audit
from dragoman.hub.background_tasks import BackgroundTasks
from dragoman.hub.code import Code, open_code
from dragoman.hub.configuration_files import AppFiles, ConfigurationFiles
from dragoman.hub.connection_watcher import ConnectionWatcher
from dragoman.hub.connector_queries import ConnectorQueries
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.connectors import Connectors
from dragoman.hub.credentials import Credentials
from dragoman.hub.deferred_tools import DeferredTools
from dragoman.hub.discovery import Discovery
from dragoman.hub.embedding import open_embeddings
from dragoman.hub.exports import Exports
from dragoman.hub.imported_agents import ImportedAgents
from dragoman.hub.imports import Imports
from dragoman.hub.loaded_tools import LoadedTools
from dragoman.hub.messages import Messages
from dragoman.hub.native_tools import add_shipped_tools, native_connector
from dragoman.hub.people import People, issuer_of
from dragoman.hub.permissions import Permissions
from dragoman.hub.preferences import UserPreferences
from dragoman.hub.redacted_secrets import RedactedSecrets
from dragoman.hub.rollout import Rollout
from dragoman.hub.runs import Runs
from dragoman.hub.server_requests import ServerRequests
from dragoman.hub.startup_listing import StartupListing
from dragoman.hub.threads import ThreadAccess, Threads
from dragoman.hub.tools import Tools
from dragoman.hub.usage import Usage
from dragoman.hub.workplace import Ground, open_workplace
from dragoman.identity.authenticator import Authenticator, open_authenticator
from dragoman.identity.directory import Directory, make_local
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.settings import Settings
from dragoman.store import KeptResult, Store, open_store
from dragoman.telemetry.redaction import Redactor
from dragoman.tool import CallObserver, ClientChannel, ToolCall, ToolOutput
from dragoman.vault import KeySupply, Vault

_TIDY_EVERY = 600.0


class Building(ABC):
    """Everything that one installation consists of. `Hub` is what a library sees of it."""

    connectors: Connectors
    tools: Tools
    imports: Imports
    exports: Exports
    folders: ConfigurationFiles
    discovery: Discovery
    people: People
    authenticator: Authenticator
    threads: Threads
    preferences: UserPreferences
    approvals: Approvals
    credentials: Credentials
    usage: Usage
    audit: Audit
    code: Code
    passthrough: ServerRequests
    agents: Agents
    runs: Runs
    messages: Messages
    queries: ConnectorQueries
    rollout: Rollout
    models: Models

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        caller: Caller = LOCAL_CALLER,
        redactor: Redactor | None = None,
        store: Store | None = None,
    ) -> None:
        """`store` is used instead of the database that the settings name; whoever opened it closes it."""
        self.settings = settings or Settings.load()
        self.caller = caller
        self._native = NativeTools()
        self._native_connector = native_connector()
        self._events = Events()
        self._redactor = redactor or Redactor()  # the one of the log, where there is one
        self._given_store = store
        self._catalog: Catalog | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._catalog = None
        await self._stack.aclose()

    @abstractmethod
    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cost_limit: float | None = None,
        caller: Caller | None = None,
        channel: ClientChannel | None = None,
        witness: CallObserver | None = None,
    ) -> ToolOutput: ...

    @abstractmethod
    async def result(self, handle: str, *, caller: Caller | None = None) -> KeptResult: ...

    async def _call_in_thread(self, call: ToolCall, caller: Caller) -> ToolOutput:
        if caller.thread is not None:
            try:
                caller = await self.threads.entered(caller)
            except DragomanError as error:  # the store does not say what is active there
                return CallState(call, caller).failed(error, self._redactor)
        return await self._road.call(call, caller)

    async def _open(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        self._store: Store = self._given_store or await stack.enter_async_context(
            open_store(settings.store_url)
        )
        supply = KeySupply(settings.key_file, settings.key, settings.key_command)
        vault = self._vault = Vault(
            self._store.connectors, await supply.ring(await self._store.connectors.key_ids()), supply
        )
        await vault.check()
        await make_local(self._store.people)
        self._directory = Directory(self._store.people)
        self.authenticator = await stack.enter_async_context(
            open_authenticator(self._store.people, self._directory, issuer_of(settings))
        )
        self._recorder = await stack.enter_async_context(open_recorder(self._store))
        self._auditor = await stack.enter_async_context(open_auditor(self._store.audit))
        self._events = Events()
        stack.callback(self._events.close)
        catalog = await Catalog.load(self._store, self._events)
        registry = self._registry = ConnectorRegistry(await self._store.connectors.list())
        registry.put(self._native_connector)
        watcher = ConnectionWatcher(self._events, self._recorder, catalog, registry, self._redactor)
        tasks = await stack.enter_async_context(BackgroundTasks())
        stack.callback(watcher.detach)
        sources = await self._open_sources(stack, vault, watcher)
        self._lay_road(catalog, registry, vault, sources)
        self._open_team(registry, vault, sources)
        await self._open_tools(stack, catalog, registry)
        self._catalog = catalog
        add_shipped_tools(self._native, self.settings)
        self._declare()
        watcher.attach(tasks, self.connectors.relist_over)
        self._first_lists = StartupListing(self.connectors, self.caller)
        self.code = await stack.enter_async_context(
            open_code(
                caller=self.caller,
                catalog=catalog,
                tools=self.tools,
                call=self.call,
                result=self.result,
                narrowed=self.threads.narrowed,
                programmatic=self.settings.programmatic_calling,
            )
        )
        await self._open_agents(stack, catalog, registry, watcher)
        self._open_configuration(registry, vault)
        await self.folders.start(tasks)
        self._first_lists.wake(registry, catalog, tasks)
        tasks.start(self._forget_old(), "forget old results and calls")
        tasks.start(self.runs.resume_left(), "resume runs that were left")

    async def _open_sources(
        self, stack: AsyncExitStack, vault: Vault, observer: ConnectionObserver
    ) -> SourceRouter:
        settings = self.settings
        clients = self._clients = await stack.enter_async_context(
            HttpClients(multi_user=settings.multi_user, allowed_networks=settings.allowed_networks)
        )
        self._authorizations = await stack.enter_async_context(
            Authorizations(vault, self._store.usage, clients, self._redactor.register)
        )
        secrets: Secrets = RedactedSecrets(vault, self._redactor, self._authorizations)
        self._services = await stack.enter_async_context(OpenApiServices(secrets, observer, clients))
        self._servers = await stack.enter_async_context(
            Connections(
                secrets,
                observer,
                clients,
                max_servers=settings.max_servers,
                max_spawns=settings.max_spawns,
            )
        )
        return SourceRouter(self._servers, self._services, self._native)

    def _lay_road(
        self, catalog: Catalog, registry: ConnectorRegistry, vault: Vault, sources: SourceRouter
    ) -> None:
        limits = ConcurrencyLimits()
        self.connectors = Connectors(
            caller=self.caller,
            store=self._store,
            vault=vault,
            registry=registry,
            catalog=catalog,
            sources=sources,
            limits=limits,
            recorder=self._recorder,
            events=self._events,
            redactor=self._redactor,
            permissions=Permissions(self.settings.multi_user),
            auditor=self._auditor,
        )
        self._approvals = ApprovalGate(
            self._store.approvals, vault, self._directory, self._events, self.settings.approval_wait
        )
        self._road = Road(
            catalog=catalog,
            access=ThreadAccess(),
            approvals=self._approvals,
            limits=limits,
            budgets=Budgets(self._store.usage, self._directory),
            sources=sources,
            store=self._store,
            recorder=self._recorder,
            auditor=self._auditor,
            events=self._events,
            redactor=self._redactor,
        )

    def _open_team(self, registry: ConnectorRegistry, vault: Vault, sources: SourceRouter) -> None:
        """What many users need: who they are, what is theirs, what they allowed, used and did."""
        caller, store, directory = self.caller, self._store, self._directory
        auditor, events, connectors = self._auditor, self._events, self.connectors
        self.people = People(
            caller=caller,
            store=store,
            directory=directory,
            authenticator=self.authenticator,
            connectors=connectors,
            sources=sources,
            auditor=auditor,
        )
        self.preferences = UserPreferences(
            caller=caller,
            store=store,
            directory=directory,
            registry=registry,
            auditor=auditor,
            events=events,
        )
        self.approvals = Approvals(caller=caller, store=store, approvals=self._approvals, auditor=auditor)
        self.credentials = Credentials(
            caller=caller,
            settings=self.settings,
            store=store,
            vault=vault,
            registry=registry,
            connectors=connectors,
            sources=sources,
            auditor=auditor,
            events=events,
            authorizations=self._authorizations,
        )
        self.usage = Usage(caller=caller, store=store, directory=directory)
        self.audit = Audit(caller=caller, store=store, auditor=auditor)

    async def _open_tools(self, stack: AsyncExitStack, catalog: Catalog, registry: ConnectorRegistry) -> None:
        """Tools as people and threads see them: active, deferred, loaded."""
        caller, directory = self.caller, self._directory
        auditor, events = self._auditor, self._events
        settings = self.settings
        search = Search(
            catalog,
            await stack.enter_async_context(open_embeddings(settings.search_embedder, settings.home)),
        )
        loaded = self._loaded = await LoadedTools.load(self._store.threads)
        self.threads = Threads(
            caller=caller,
            store=self._store,
            directory=directory,
            registry=registry,
            catalog=catalog,
            connectors=self.connectors,
            auditor=auditor,
            events=events,
            loaded=loaded,
        )
        self.tools = Tools(
            caller=caller,
            catalog=catalog,
            registry=registry,
            auditor=auditor,
            permissions=self.connectors.permissions,
            search=search,
            loading=DeferredTools(
                catalog=catalog,
                search=search,
                loaded=loaded,
                directory=directory,
                events=events,
                narrowed=self.threads.narrowed,
                default=settings.defer_tools,
                budget=settings.tool_budget,
            ),
        )
        budgets = Budgets(self._store.usage, directory)
        self.passthrough = ServerRequests(registry, self._servers, self.threads, budgets, auditor)

    async def _open_agents(
        self, stack: AsyncExitStack, catalog: Catalog, registry: ConnectorRegistry, watcher: ConnectionWatcher
    ) -> None:
        """Who decides, and the runs of their work."""
        ground = Ground(
            settings=self.settings,
            caller=self.caller,
            store=self._store,
            catalog=catalog,
            directory=self._directory,
            registry=registry,
            connectors=self.connectors,
            tools=self.tools,
            threads=self.threads,
            code=self.code,
            approvals=self._approvals,
            auditor=self._auditor,
            events=self._events,
            redactor=self._redactor,
            call=self._call_in_thread,
            up_to_date=lambda caller: watcher.read_announced(registry.list(caller)),
        )
        work = await open_workplace(stack, ground)
        self.models, self.agents, self.rollout = work.models, work.agents, work.rollout
        self.runs, self.messages, self.queries = work.runs, work.messages, work.queries

    def _open_configuration(self, registry: ConnectorRegistry, vault: Vault) -> None:
        """What people bring along: files to import, files of the app, servers of a registry."""
        settings, agents = self.settings, ImportedAgents(self.agents, registry)
        self.imports = Imports(
            caller=self.caller, connectors=self.connectors, registry=registry, vault=vault, agents=agents
        )
        self.exports = Exports(caller=self.caller, registry=registry, vault=vault, agents=agents)
        self.folders = ConfigurationFiles(
            files=AppFiles(
                configuration=settings.configuration,
                action_servers=settings.action_servers,
                agent_configs=settings.agent_configs,
            ),
            caller=self.caller,
            imports=self.imports,
            connectors=self.connectors,
            registry=registry,
            directory=self._directory,
            discover=self._first_lists.try_list,
        )
        self.agents.read_files(agents.of_files, self.folders)
        self.discovery = Discovery(
            caller=self.caller,
            mode=settings.discovery,
            registry=McpRegistry(settings.registry_url),
            connectors=self.connectors,
        )

    def _declare(self) -> None:
        if self._catalog is not None:
            self._catalog.declare(self._native_connector, self._native.definitions())

    async def _forget_old(self) -> None:
        settings = self.settings
        while True:
            await asyncio.sleep(_TIDY_EVERY)
            now = datetime.now(UTC)
            await self._store.calls.forget_results(now - timedelta(days=settings.keep_results_days))
            await self._store.calls.forget(now - timedelta(days=settings.keep_calls_days))
            await self._loaded.tidy(now - timedelta(days=settings.keep_calls_days))
            await self.approvals.tidy()
            await self.usage.tidy()
            await self.rollout.tidy()
            await self.audit.tidy(now - timedelta(days=settings.keep_audit_days))
