"""Everything that one installation at work consists of: built here, in the order of dependence, read from
top to bottom, and closed in the other order.

Its parts know no default caller: whoever uses one says for whom. What a caller may do with them is what the
services say (`BoundService`), which are made of this and a caller.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from dragoman.access import (
    AccessRules,
    ActiveConnectors,
    ApprovalGate,
    Budgets,
    ConcurrencyLimits,
    SharedLimits,
)
from dragoman.agents.models import Models
from dragoman.background_tasks import BackgroundTasks, Supervisor
from dragoman.calls import Auditor, Recorder, RequestRoad, Road, open_auditor, open_recorder
from dragoman.calls.call_tasks import CallTasks
from dragoman.catalog import Catalog
from dragoman.catalog.search import Search
from dragoman.cluster import Cluster
from dragoman.connections.addresses import read_networks
from dragoman.connections.boxes.boxes import Boxes
from dragoman.connections.boxes.network import NetworkDecision
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.native import NativeSource, NativeTools
from dragoman.connections.oauth import AuthorizationFlows, Authorizations
from dragoman.connections.openapi.service import OpenApiServices
from dragoman.connections.placed import AnnouncingObserver, PlacedConnections, has_one_place
from dragoman.connections.pool import Connections
from dragoman.connections.source import Sources
from dragoman.connector import Connector
from dragoman.discovery import McpRegistry
from dragoman.errors import InvalidConfig, NotFound, NotOpen
from dragoman.events import Events
from dragoman.hooks import Hooks
from dragoman.hub.agent_records import AgentRecords
from dragoman.hub.api_keys import ApiKeys
from dragoman.hub.audit import forget_entries
from dragoman.hub.bound import Locks
from dragoman.hub.cluster_membership import open_cluster
from dragoman.hub.code import make_sandbox
from dragoman.hub.configuration_files import ConfigurationFiles
from dragoman.hub.connection_watcher import ConnectionWatcher
from dragoman.hub.connector_agents import ConnectorAgents
from dragoman.hub.connector_lifecycle import ConnectorLifecycle
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.deferred_tools import DeferredTools
from dragoman.hub.door_clients import DoorClients, ServerTaskRecords
from dragoman.hub.embedding import open_embeddings
from dragoman.hub.engine import RunEngine
from dragoman.hub.followed_changes import FollowedChanges
from dragoman.hub.followed_registry import FollowedRegistry
from dragoman.hub.loaded_tools import LoadedTools
from dragoman.hub.models import GivenProviders
from dragoman.hub.native_tools import add_shipped_tools, native_connector
from dragoman.hub.oauth_clients import OAuthClients
from dragoman.hub.people import changed_fields, issuer_of
from dragoman.hub.permissions import Permissions
from dragoman.hub.redacted_secrets import RedactedSecrets, sealed_now
from dragoman.hub.retention import days_kept, forget_old
from dragoman.hub.rollout import RolloutState
from dragoman.hub.server_requests import WatchedResources
from dragoman.hub.tool_lists import ToolLists
from dragoman.identity.access_tokens import TokenKeys
from dragoman.identity.authenticator import Authenticator, open_authenticator
from dragoman.identity.directory import Directory, make_local
from dragoman.people import User
from dragoman.sandbox import CodeSandbox
from dragoman.scope import Caller
from dragoman.settings import Settings
from dragoman.store import KeptResult, Store, open_store
from dragoman.store.records import Approval
from dragoman.telemetry.metrics import ReadiedAgents
from dragoman.telemetry.redaction import Redactor
from dragoman.telemetry.spans import Spans, open_spans
from dragoman.telemetry.time_buckets import SPANS
from dragoman.tool import OnElicitation
from dragoman.vault import KeySupply, Vault, sealing_keys

_TIDY_EVERY = 600.0


class Runtime:
    """The parts are there from `async with` on until its end; asked for at any other time, they say so.

    `owner` is for whom the installation itself does what belongs to no user.
    """

    supervisor: Supervisor
    store: Store
    cluster: Cluster
    vault: Vault
    door_clients: DoorClients
    task_records: ServerTaskRecords
    directory: Directory
    authenticator: Authenticator
    spans: Spans
    recorder: Recorder
    auditor: Auditor
    events: Events
    catalog: Catalog
    registry: ConnectorRegistry
    connector_lifecycle: ConnectorLifecycle
    changes: FollowedChanges
    locks: Locks
    tasks: BackgroundTasks
    watcher: ConnectionWatcher
    clients: HttpClients
    oauth_clients: OAuthClients
    authorizations: Authorizations
    flows: AuthorizationFlows
    services: OpenApiServices
    servers: Connections | PlacedConnections
    sources: Sources
    agent_records: AgentRecords
    connector_agents: ConnectorAgents
    hooks: Hooks
    lists: ToolLists
    active: ActiveConnectors
    approvals: ApprovalGate
    limits: ConcurrencyLimits
    budgets: Budgets
    road: Road
    request_road: RequestRoad
    watched: WatchedResources
    readied: ReadiedAgents
    permissions: Permissions
    keys: ApiKeys
    mcp_registry: McpRegistry
    followed_registry: FollowedRegistry
    search: Search
    loaded: LoadedTools
    loading: DeferredTools
    sandbox: CodeSandbox
    models: Models
    given_providers: GivenProviders
    rollout: RolloutState
    engine: RunEngine
    configuration_files: ConfigurationFiles

    def __init__(self, settings: Settings, owner: Caller, redactor: Redactor, store: Store | None) -> None:
        """`store` is used instead of the database that the settings name; whoever opened it closes it."""
        self.settings = settings
        self.owner = owner
        self.redactor = redactor
        self._given_store = store
        self._has_people = False
        self.is_draining = False
        self.on_elicitation: OnElicitation | None = None
        self.native = NativeTools()
        self.native_connector = native_connector()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self._forget_parts)
            await self._open_store(stack)
            await self._open_sources(stack)
            await self._open_rights(stack)
            self._lay_road()
            await self._open_tools(stack)
            await self._open_agents(stack)
            await self._start_work(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Asked only for what is not there: costs nothing while the parts are."""
            if name not in type(self).__annotations__:
                raise AttributeError(name)
            raise NotOpen(
                "the hub is not open", hint="use it inside of `async with Hub() as hub:`, and not after it"
            )

    async def _open_store(self, stack: AsyncExitStack) -> None:
        """What is remembered, who belongs here, what exists."""
        settings = self.settings
        self.supervisor = Supervisor()
        store = self._given_store or await stack.enter_async_context(open_store(settings.store_url))
        self.store = store
        self.changes = FollowedChanges(self, await store.changes.end())
        supply = KeySupply(settings.key_file, settings.key, settings.key_command)
        sealed = (store.connectors, store.model_providers)
        ring = await supply.ring(await sealing_keys(*sealed))
        self.vault = Vault(store.connectors, ring, supply, (store.model_providers,))
        await self.vault.check()
        await make_local(store.people)
        self.cluster = await stack.enter_async_context(
            open_cluster(settings, store, self.vault, self.redactor, self.supervisor)
        )
        self.door_clients = DoorClients(store, self.vault, self.cluster)
        self.task_records = ServerTaskRecords(self.door_clients)
        self.directory = Directory(store.people)
        self.auditor = await stack.enter_async_context(open_auditor(store.audit, self.supervisor))
        self.authenticator = await stack.enter_async_context(
            open_authenticator(
                store.people,
                self.directory,
                self.supervisor,
                issuer_of(settings),
                self._tell_of_user,
                self._signing(store),
            )
        )
        self.spans = await stack.enter_async_context(open_spans(settings.otlp_endpoint))
        self.recorder = await stack.enter_async_context(open_recorder(store, self.supervisor))
        self.readied = ReadiedAgents()
        self.events = Events()
        stack.callback(self.events.close)
        self.catalog = await Catalog.load(store, self.events)
        self.registry = ConnectorRegistry(
            [await sealed_now(one, store, self.vault) for one in await store.connectors.list()]
        )
        self.registry.put(self.native_connector)
        self.locks = Locks()
        self.connector_lifecycle = ConnectorLifecycle(self)

    async def _tell_of_user(self, before: User | None, after: User) -> None:
        """Whom a token of the issuer made, or gave other rights."""
        caller = Caller(workspace=after.workspace, user=after.id)
        if before is None:
            action, told = "user.added", {"name": after.name, "role": after.role}
        else:
            action, told = "user.updated", {"changed": changed_fields(before, after)}
        await self.auditor.done(caller, action, after.id, details={**told, "by": "issuer"})

    async def _open_sources(self, stack: AsyncExitStack) -> None:
        """How connectors are reached, and who hears what happens to them."""
        settings = self.settings
        self.watcher = ConnectionWatcher(
            self.events, self.recorder, self.catalog, self.registry, self.redactor
        )
        self.tasks = await stack.enter_async_context(BackgroundTasks())
        stack.callback(self.watcher.detach)
        self.clients = await stack.enter_async_context(
            HttpClients(multi_user=settings.multi_user, allowed_networks=settings.allowed_networks)
        )
        self.oauth_clients = OAuthClients(self.store.logins, self.clients)
        self.authorizations = await stack.enter_async_context(
            Authorizations(self.vault, self.store, self.clients, self.redactor.register)
        )
        self.flows = AuthorizationFlows(
            self.store.connectors, self.vault, self.authorizations, self.public_url
        )
        secrets = RedactedSecrets(self.vault, self.redactor, self.authorizations, self.clients)
        self.services = await stack.enter_async_context(OpenApiServices(secrets, self.watcher, self.clients))
        self.servers = await self._open_servers(stack, secrets)
        native = NativeSource(self.native)
        self.sources = {"mcp": self.servers, "openapi": self.services, "native": native}
        self.agent_records = AgentRecords(self.store.agents, self.events)
        self.connector_agents = ConnectorAgents(self.store, self.agent_records)
        self.hooks = Hooks(
            settings.hooks, self.directory, self.clients, settings.hook_secret, multi_user=settings.multi_user
        )
        self.hooks.check(settings.hooks)
        self.catalog.held_in_bundles = self.hooks.held_in
        self.lists = ToolLists(
            store=self.store,
            registry=self.registry,
            catalog=self.catalog,
            sources=self.sources,
            agents=self.connector_agents,
            locks=self.locks,
            hooks=self.hooks,
            watcher=self.watcher,
        )
        self.watcher.attach(self.tasks, self.lists.relist_over)

    def _signing(self, store: Store) -> TokenKeys | None:
        """What signs tokens for clients; None where they log in elsewhere, or nowhere."""
        if self.settings.client_login == "issuer" and issuer_of(self.settings) is None:
            raise InvalidConfig(
                "clients cannot log in at an issuer that is not named",
                hint="set DRAGOMAN_MULTI_USER, DRAGOMAN_OIDC_ISSUER and DRAGOMAN_OIDC_AUDIENCE",
            )
        is_ours = self.settings.client_login == "dragoman"
        return TokenKeys(store.logins, self.vault, store.clock) if is_ours else None

    async def _open_servers(
        self, stack: AsyncExitStack, secrets: RedactedSecrets
    ) -> Connections | PlacedConnections:
        """MCP servers, over all nodes where there are several; and the limits of their connectors."""
        settings = self.settings
        places = self.cluster.places
        self.boxes = Boxes(
            settings.home,
            multi_user=settings.multi_user,
            of_everybody=settings.box_programs == "all",
            allow_unboxed=settings.allow_unboxed,
            allowed_networks=settings.allowed_networks,
            paths=settings.box_paths,
            on_decision=self._note_network,
        )
        servers = Connections(
            secrets,
            self.watcher if places is None else AnnouncingObserver(self.watcher, places),
            self.clients,
            self.boxes,
            max_servers=settings.max_servers,
            max_spawns=settings.max_spawns,
            request_timeout=settings.request_timeout,
            has_people=self._has_people,
        )
        self.limits = ConcurrencyLimits()
        if places is None:
            return await stack.enter_async_context(servers)
        shared = SharedLimits(
            self.store.usage,
            self.store.clock,
            self.cluster,
            lambda connector: connector.kind == "native" or has_one_place(connector),
            servers.close_oldest_idle,
        )
        self.limits = await stack.enter_async_context(shared.opened())
        servers.room = shared.server_room
        placed = PlacedConnections(
            servers,
            places,
            self.watcher,
            self.registry.find_by_id,
            shared.holder_gate,
            settings.request_timeout,
        )
        return await stack.enter_async_context(placed.opened())

    def _note_network(self, connector: Connector, identity: str, decision: NetworkDecision) -> None:
        """The trail has each place that a boxed program reached or was refused, once for each start."""
        caller = Caller(workspace=connector.workspace, user=connector.owner)
        outcome = "ok" if decision.is_allowed else "refused"
        details = {
            "id": connector.id,
            "place": decision.place,
            **({"why": decision.why} if decision.why else {}),
        }
        noted = self.auditor.done(caller, "connector.network", connector.slug, outcome, details)
        self.tasks.start(noted, "note what a program reached")

    async def close_for_user(self, workspace: str, user: str) -> None:
        """Closes every connection that is held for this user."""
        for source in self.sources.values():
            await source.close_for_user(workspace, user)

    async def _open_rights(self, stack: AsyncExitStack) -> None:
        """Who may call what, and how much of it."""
        self.permissions = Permissions(self.settings.multi_user, self.settings)
        self.keys = ApiKeys(
            self.store,
            self.authenticator,
            self.auditor,
            self.permissions,
            self.locks,
            self.catalog.rivals,
        )
        self.active = ActiveConnectors(self.store.threads, self.directory, self.registry.list, self.catalog)
        self.approvals = ApprovalGate(
            self.store.approvals,
            self.vault,
            self.directory,
            self.events,
            self.cluster,
            self.settings.approval_wait,
            on_client_answer=self._note_client_answer,
        )
        await stack.enter_async_context(self.approvals.awaited.opened(self.supervisor))
        clock = self.store.clock
        self.budgets = Budgets(
            self.store.usage,
            self.directory,
            self.authenticator.get_key,
            lambda: clock.now().timestamp(),
        )
        await stack.enter_async_context(self.budgets.blocks.opened(self.supervisor))

    def _lay_road(self) -> None:
        """The road that every call takes, and that of what else servers are asked."""
        self.road = Road(
            catalog=self.catalog,
            access=AccessRules(self.active),
            approvals=self.approvals,
            limits=self.limits,
            budgets=self.budgets,
            sources=self.sources,
            store=self.store,
            recorder=self.recorder,
            auditor=self.auditor,
            events=self.events,
            redactor=self.redactor,
            request_timeout=self.settings.request_timeout,
            list_first=self.lists.list_first,
            spans=self.spans,
            tasks=CallTasks(self.task_records),
            hooks=self.hooks,
        )
        self.watched = WatchedResources()
        self.request_road = RequestRoad(
            approvals=self.approvals,
            limits=self.limits,
            budgets=self.budgets,
            servers=self.servers,
            store=self.store,
            auditor=self.auditor,
            redactor=self.redactor,
            spans=self.spans,
            request_timeout=self.settings.request_timeout,
            hooks=self.hooks,
            bundles_of=self.catalog.bundles_giving,
        )

    async def _note_client_answer(self, caller: Caller, approval: Approval) -> None:
        facts = {"approval": approval.id, "answer": approval.answer, "user": approval.binding.user}
        details = {**facts, "by": "elicitation"}
        await self.auditor.done(caller, "approval.answered", approval.binding.tool, details=details)

    async def _open_tools(self, stack: AsyncExitStack) -> None:
        """Tools of this process; how tools are found, deferred, loaded and called by code."""
        settings = self.settings
        add_shipped_tools(self.native, settings)
        self.declare_native()
        self.mcp_registry = McpRegistry(settings.registry_url)
        self.followed_registry = FollowedRegistry(self)
        self.search = Search(
            self.catalog,
            await stack.enter_async_context(
                open_embeddings(settings.search_embedder, settings.home, self.supervisor)
            ),
        )
        self.loaded = await LoadedTools.load(self.store.threads)
        self.loading = DeferredTools(
            catalog=self.catalog,
            search=self.search,
            loaded=self.loaded,
            directory=self.directory,
            events=self.events,
            narrowed=self.active.narrowed,
            default=settings.defer_tools,
            budget=settings.tool_budget,
        )
        self.sandbox = await stack.enter_async_context(make_sandbox(self))

    async def _open_agents(self, stack: AsyncExitStack) -> None:
        """Who decides, and the runs of their work."""
        settings = self.settings
        self.models = await stack.enter_async_context(
            Models(
                settings.model,
                settings.model_fallbacks,
                environment=os.environ,
                allowed_networks=read_networks(settings.allowed_networks),
            )
        )
        self.given_providers = GivenProviders(self)
        await self.connector_agents.reconcile()
        self.rollout = RolloutState(
            settings=settings, store=self.store, auditor=self.auditor, events=self.events
        )
        self.engine = await stack.enter_async_context(RunEngine(self))

    async def _start_work(self, stack: AsyncExitStack) -> None:
        """What the app's files say, then all that goes on by itself."""
        self.configuration_files = ConfigurationFiles(self)
        await self.configuration_files.start()
        self.lists.start_first(self.tasks, self.owner)
        keeping, files = self.supervisor.keeping, self.configuration_files
        for kept in (
            keeping(self.changes.follow, "follow what other processes change", is_vital=True),
            keeping(files.watch, "watch the app configuration"),
            keeping(self.followed_registry.follow, "follow namespaces of the registry"),
            keeping(self.boxes.watchdog.watch, "hold programs to their limits"),
            keeping(self._keep_tidy, "forget old results and calls"),
            keeping(self.door_clients.keep, "note which sessions of clients are in use"),
            keeping(self.engine.resume_left, "resume runs that were left", is_vital=True),
        ):
            await stack.enter_async_context(kept)

    def expect_people(self) -> None:
        """From now on servers are told, as they are connected, that there is somebody whom they may ask."""
        self._has_people = True
        if self.is_open:
            self.servers.has_people = True

    @property
    def is_open(self) -> bool:
        return "catalog" in vars(self)

    @property
    def public_url(self) -> str | None:
        """How browsers reach the service, where a setting says so."""
        url = self.settings.public_url
        return url.rstrip("/") if url else None

    def declare_native(self) -> None:
        self.catalog.declare(self.native_connector, self.native.definitions())

    async def kept_result(self, handle: str, caller: Caller) -> KeptResult:
        """The whole of a result of theirs that was cut."""
        kept = await self.store.calls.find_result(caller.workspace, caller.user, handle)
        if kept is None:
            raise NotFound(
                f"there is no kept result {handle[:80]!r}",
                hint=f"results are kept for {await self._days_of_results(caller):g} days",
            )
        return kept

    async def _days_of_results(self, caller: Caller) -> float:
        person = await self.directory.find(caller.workspace, caller.user)
        kept = days_kept(self.settings, person.workspace)["results"] if person else None
        return self.settings.keep_results_days if kept is None else kept

    async def forget_thread(self, key: tuple[str, str, str]) -> None:
        """Workspace, user, thread: with its messages and runs, for good."""
        await self.store.threads.remove(*key)
        self.active.changed(key)
        self.loaded.forget(key)

    async def tidy(self) -> None:
        """Forgets what is older than the settings say, and closes what nobody answered in time."""
        settings, now = self.settings, datetime.now(UTC)
        for thread in await self.store.threads.list_due(now):
            await self.forget_thread((thread.workspace, thread.user, thread.id))
        await forget_old(self, now)
        seconds = int(now.timestamp())
        await self.store.metrics.forget({span: seconds - kept for span, kept in SPANS.items()})
        await self.loaded.tidy(now - timedelta(days=settings.keep_calls_days))
        await self.store.approvals.expire(now)
        await self.store.runs.expire_questions(now)
        await self.budgets.tidy()
        await self.rollout.tidy()
        await self.store.changes.trim(now)
        await self.door_clients.tidy(now)
        if self.authenticator.access_tokens is not None:
            await self.authenticator.access_tokens.signing.tidy()
        await forget_entries(self.store.audit, now - timedelta(days=settings.keep_audit_days))

    async def _keep_tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_EVERY)
            await self.tidy()

    def _forget_parts(self) -> None:
        for name in type(self).__annotations__:
            vars(self).pop(name, None)
