"""The hub: Dragoman as a library.

One `async with Hub()` is one installation at work. What it opens, it closes, within ten seconds. A `BoundHub`
acts for one caller; the services that it has act for that caller too, and nobody can leave the caller out.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from dragoman.connections.native import NativeTool
from dragoman.connections.source import ConnectionStatus
from dragoman.errors import Denied, DragomanError, ShuttingDown
from dragoman.events import Event
from dragoman.hub.agents import Agents
from dragoman.hub.approvals import Approvals
from dragoman.hub.audit import Audit
from dragoman.hub.bundles import Bundles
from dragoman.hub.call_questions import CallbackChannel, CallQuestions
from dragoman.hub.client_logins import ClientLogins, ConnectedClients
from dragoman.hub.cluster import ClusterService
from dragoman.hub.code import Code
from dragoman.hub.configuration_files import ConfigurationFiles
from dragoman.hub.connector_queries import ConnectorQueries
from dragoman.hub.connectors import Connectors
from dragoman.hub.credentials import Credentials
from dragoman.hub.discovery import Discovery
from dragoman.hub.door_clients import DoorClients
from dragoman.hub.hooks import CallerHooks
from dragoman.hub.imports import Exports, Imports
from dragoman.hub.messages import Messages
from dragoman.hub.models import WorkspaceModels
from dragoman.hub.people import People
from dragoman.hub.preferences import UserPreferences
from dragoman.hub.recipes import Recipes
from dragoman.hub.resources import Prompts, Resources
from dragoman.hub.rollout import Rollout
from dragoman.hub.runs import Runs
from dragoman.hub.runtime import Runtime
from dragoman.hub.server_requests import ServerRequests
from dragoman.hub.statistics import Statistics
from dragoman.hub.threads import Threads
from dragoman.hub.tools import Tools
from dragoman.hub.usage import Usage
from dragoman.hub.user_rights import check_operator
from dragoman.identity.authenticated import admitted
from dragoman.identity.authenticator import Authenticator
from dragoman.identity.directory import Person
from dragoman.run import Question, Run
from dragoman.scope import BUNDLE, LOCAL_CALLER, Caller
from dragoman.settings import Settings
from dragoman.store import CallRecord, KeptResult, Store
from dragoman.telemetry.metrics import ConnectorMetrics, ReadiedAgents
from dragoman.telemetry.redaction import Redactor
from dragoman.tool import (
    Annotations,
    CallObserver,
    ClientChannel,
    OnElicitation,
    OnMessage,
    OnProgress,
    ToolCall,
    ToolOutput,
)

if TYPE_CHECKING:
    from dragoman.runs.dispatch import RunDispatcher

Function = TypeVar("Function", bound=Callable[..., Any])


class BoundHub:
    """The hub as one caller has it. Small: whoever lets somebody in makes one for each request."""

    __slots__ = ("_runtime", "caller")

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
        self.caller = caller

    # For whom

    def acting_for(self, caller: Caller) -> "BoundHub":
        """The same hub for this caller, who must have been let in: nothing is looked up."""
        return BoundHub(self._runtime, caller)

    async def as_user(
        self, user: str, *, workspace: str | None = None, thread: str | None = None
    ) -> "BoundHub":
        """The hub as a user has it, with their rights and limits; users and workspaces go by id or name.

        For who runs the installation. `NotFound` when there is no such user.
        """
        check_operator(self.caller)
        found = await self.people.get_user(user, workspace)
        person = await self._runtime.directory.get(found.workspace, found.id)
        return self.acting_for(replace(_active(person), thread=thread))

    async def in_thread(self) -> "BoundHub":
        """The same hub with no other connectors than those active in the caller's thread: for lists."""
        caller = await self._runtime.active.narrowed(self.caller)
        return self if caller is self.caller else self.acting_for(caller)

    def in_bundle(self, name: str) -> "BoundHub":
        """The same hub with the tools of a bundle and no others; with none where there is no such bundle."""
        found = self._runtime.catalog.find_bundle(name, self.caller)
        word = f"{BUNDLE}{name}" if found is None else found.word
        return self.acting_for(self.caller.within([word]))

    # Calling and asking

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cost_limit: float | None = None,
        on_progress: OnProgress | None = None,
        on_elicitation: OnElicitation | None = None,
        on_message: OnMessage | None = None,
        channel: ClientChannel | None = None,
        observer: CallObserver | None = None,
    ) -> ToolOutput:
        """Calls a tool by name. Whatever goes wrong is in the output; nothing is raised for it.

        `on_progress` hears how far it has come. `on_elicitation` answers what the server asks in the middle;
        without it that of the hub does, and without both the server is told that nobody can be asked.
        `on_message` is shown what is sent to the server and what it answers, without secrets; nothing of a
        call that hooks look at or that goes through a bundle, nor of one whose connection another node holds.
        """
        if channel is None:
            on_elicitation = on_elicitation or self._runtime.on_elicitation
            if on_progress is not None or on_elicitation is not None:
                channel = CallbackChannel(tool, on_progress, on_elicitation)
        call = ToolCall(
            tool=tool,
            arguments={} if arguments is None else arguments,
            timeout=timeout,
            cost_limit=cost_limit,
            channel=channel,
            on_message=on_message,
            observer=observer,
        )
        return await self._runtime.road.call(call, self.caller)

    def ask_by_question(
        self, timeout: float | None = None, on_question: Callable[[Question], None] = lambda question: None
    ) -> OnElicitation:
        """An `on_elicitation` that keeps what is asked for the caller, who answers it by any door.

        It waits for as long as a call waits for a person; `on_question` hears what was kept.
        """
        wait = self._runtime.settings.approval_wait
        wait = wait if timeout is None else min(wait, timeout)
        return CallQuestions(self._runtime, self.caller, wait, on_question).answer

    async def ask(self, text: str, *, thread: str | None = None, agent: str | None = None) -> Run:
        """Has the assistant, or whoever is mentioned, work on it; the finished run with its answer."""
        return await self.messages.ask(text, thread=thread, agent=agent)

    async def result(self, handle: str) -> KeptResult:
        """The whole of a result that was cut."""
        return await self._runtime.kept_result(handle, self.caller)

    async def calls(self, limit: int = 100) -> list[CallRecord]:
        """The caller's last calls, newest first."""
        await self._runtime.recorder.flush()
        return [*await self._runtime.store.calls.recent(self.caller.workspace, self.caller.user, limit)]

    async def events(self) -> AsyncIterator[Event]:
        """What happens from now on, as far as the caller may see it. Ends when the hub closes."""
        with self._runtime.events.listen(self.caller.workspace, self.caller.user) as listener:
            async for event in listener:
                yield event

    # What the caller may do

    @property
    def connectors(self) -> Connectors:
        """Servers and services that tools come from: add, look, change, remove."""
        return Connectors(self._runtime, self.caller)

    @property
    def tools(self) -> Tools:
        """What can be called: list, search, switch on and off."""
        return Tools(self._runtime, self.caller)

    @property
    def bundles(self) -> Bundles:
        """Choices of tools under a name, each shown as you want it."""
        return Bundles(self._runtime, self.caller)

    @property
    def threads(self) -> Threads:
        """Conversations, and which connectors are active in each."""
        return Threads(self._runtime, self.caller)

    @property
    def messages(self) -> Messages:
        """What is said in threads; a message to an agent begins a run."""
        return Messages(self._runtime, self.caller)

    @property
    def runs(self) -> Runs:
        """The work of agents: status, steps, events, questions."""
        return Runs(self._runtime, self.caller)

    @property
    def recipes(self) -> Recipes:
        """How jobs were done, for later runs of the same connector's agent."""
        return Recipes(self._runtime, self.caller)

    @property
    def agents(self) -> Agents:
        """Who works on messages: the assistant, one agent for each connector, and those people make."""
        return Agents(self._runtime, self.caller)

    @property
    def queries(self) -> ConnectorQueries:
        """Questions in plain language to one connector's agent."""
        return ConnectorQueries(self._runtime, self.caller)

    @property
    def code(self) -> Code:
        """Programs that call tools, run in a sandbox."""
        return Code(self._runtime, self.caller)

    @property
    def people(self) -> People:
        """Workspaces, users and API keys."""
        return People(self._runtime, self.caller)

    @property
    def clients(self) -> ConnectedClients:
        """MCP clients that people let use their tools: list, look, revoke."""
        return ConnectedClients(self._runtime, self.caller)

    @property
    def preferences(self) -> UserPreferences:
        """The caller's own choices and limits."""
        return UserPreferences(self._runtime, self.caller)

    @property
    def credentials(self) -> Credentials:
        """What the caller brings to servers: tokens, keys, authorisations."""
        return Credentials(self._runtime, self.caller)

    @property
    def approvals(self) -> Approvals:
        """Calls that wait for the yes of a person."""
        return Approvals(self._runtime, self.caller)

    @property
    def hooks(self) -> CallerHooks:
        """What looks at calls, results and lists."""
        return CallerHooks(self._runtime, self.caller)

    @property
    def usage(self) -> Usage:
        """What was used of calls, tokens and money, and what is left."""
        return Usage(self._runtime, self.caller)

    @property
    def statistics(self) -> Statistics:
        """Numbers over time: calls, errors, latency, tokens and cost of the last hour to the last month."""
        return Statistics(self._runtime, self.caller)

    @property
    def audit(self) -> Audit:
        """Who did what: the trail that cannot be changed unnoticed."""
        return Audit(self._runtime, self.caller)

    @property
    def imports(self) -> Imports:
        """Connectors and agents from files of Dragoman and of other clients."""
        return Imports(self._runtime, self.caller)

    @property
    def exports(self) -> Exports:
        """The same as text, for another installation or another client."""
        return Exports(self._runtime, self.caller)

    @property
    def discovery(self) -> Discovery:
        """Servers that a registry knows."""
        return Discovery(self._runtime, self.caller)

    @property
    def resources(self) -> Resources:
        """What servers let read: files, rows, pages."""
        return Resources(self._runtime, self.caller)

    @property
    def prompts(self) -> Prompts:
        """Texts that servers keep for their users."""
        return Prompts(self._runtime, self.caller)

    @property
    def server_requests(self) -> ServerRequests:
        """The same as MCP has it, for the MCP door."""
        return ServerRequests(self._runtime, self.caller)

    @property
    def models(self) -> WorkspaceModels:
        """The language models that can be used, their providers, and the default."""
        return WorkspaceModels(self._runtime, self.caller)

    @property
    def rollout(self) -> Rollout:
        """How many runs work with agents rather than without, and how both fare."""
        return Rollout(self._runtime, self.caller)

    @property
    def cluster(self) -> ClusterService:
        """The processes that share this installation."""
        return ClusterService(self._runtime, self.caller)

    # The installation, the same for every caller

    @property
    def settings(self) -> Settings:
        """What this process was started with."""
        return self._runtime.settings

    @property
    def authenticator(self) -> Authenticator:
        """Who a bearer token stands for."""
        return self._runtime.authenticator

    @property
    def catalog_version(self) -> int:
        """Another number after every change of what can be found; what a door derives is keyed on it."""
        return self._runtime.catalog.version

    def without_secrets(self, text: str) -> str:
        """For what a door tells of an error: servers repeat what they were told."""
        return self._runtime.redactor.clean(text)

    def seal(self, value: bytes, *place: str) -> bytes:
        """Encrypts what somebody else keeps for us, bound to its place."""
        return self._runtime.vault.seal_bytes(value, *place)

    def unseal(self, sealed: bytes, *place: str) -> bytes:
        """`KeyFault` for what was not sealed here for this place."""
        return self._runtime.vault.open_bytes(sealed, *place)

    def metrics(self) -> list[ConnectorMetrics]:
        """The numbers of every connector since this process started."""
        return self._runtime.recorder.list_metrics()

    async def installation_metrics(self) -> list[ConnectorMetrics]:
        """The numbers of every connector that all processes of the installation have counted."""
        return await self._runtime.recorder.list_installation_metrics()

    @property
    def readied_agents(self) -> ReadiedAgents:
        """How often this process made an agent ready for a run, and how long that took."""
        return self._runtime.readied

    def links(self) -> list[ConnectionStatus]:
        """The state of every connection of this process."""
        return [*self._runtime.servers.statuses(), *self._runtime.services.statuses()]

    def known_links(self) -> list[ConnectionStatus]:
        """The same with those of other nodes, as they told of them."""
        return [*self._runtime.servers.known_statuses(), *self._runtime.services.statuses()]

    def workspace_of(self, link: ConnectionStatus) -> str:
        """Whose connection it is; empty for one of the whole installation."""
        connector = self._runtime.registry.find_by_id(link.connector_id)
        return connector.workspace if connector else ""

    @property
    def dropped_records(self) -> int:
        """Records of calls that could not be written and were given up."""
        return self._runtime.recorder.dropped

    async def check(self) -> None:
        """`StoreUnavailable` when the installation cannot work, `Internal` when this process cannot,
        `ShuttingDown` when it is about to stop.
        """
        self._runtime.supervisor.check()
        if self._runtime.is_draining:
            raise ShuttingDown("this process is about to stop", hint="ask another")
        await self._runtime.store.ping()


class Hub(BoundHub):
    """Dragoman as a library. It acts for its `owner`, who is the local one unless it is told otherwise."""

    __slots__ = ()

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        owner: Caller = LOCAL_CALLER,
        redactor: Redactor | None = None,
        store: Store | None = None,
        on_elicitation: OnElicitation | None = None,
    ) -> None:
        """`redactor` is the one of the log, where there is one; `store` an opened one, which stays open.

        `on_elicitation` answers what servers ask in the middle of a call that this hub makes.
        """
        super().__init__(Runtime(settings or Settings.load(), owner, redactor or Redactor(), store), owner)
        self._runtime.on_elicitation = on_elicitation
        if on_elicitation is not None:
            self._runtime.expect_people()

    async def __aenter__(self) -> Self:
        await self._runtime.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runtime.__aexit__(*exc)

    async def open_engine(self) -> "RunDispatcher":
        """Has what executes runs opened now, and not by the first of them."""
        return await self._runtime.engine.open()

    async def drain(self, patience: float) -> None:
        """This process stops soon: `check` says so from now on, and its runs go on elsewhere, or when it is
        started again. A call of theirs that must not be made twice may end first, for `patience` seconds.
        """
        self._runtime.is_draining = True
        if self._runtime.is_open:
            if (places := self._runtime.cluster.places) is not None:
                await places.stop_taking()
            await self._runtime.engine.drain(patience)

    async def failure(self) -> DragomanError:
        """Waits until this process cannot work any more, and says why; `check` raises it from then on."""
        return await self._runtime.supervisor.failure()

    def expect_people(self) -> None:
        """Says that a door is open by which people answer what servers ask in the middle of a call.

        A server of the 2025 era learns when it is connected whether anybody answers; without this it learns
        so from the first call of somebody who can be asked.
        """
        self._runtime.expect_people()

    @property
    def configuration_files(self) -> ConfigurationFiles:
        """The app's configuration in files."""
        return self._runtime.configuration_files

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self, /, *, name: str | None = None, description: str | None = None, annotations: Annotations = ...
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        annotations: Annotations = Annotations(),  # noqa: B008 - frozen
    ) -> Any:
        """Makes a typed function a tool, unchanged: `@hub.tool` or `@hub.tool(name=…)`."""

        def add(function: Function) -> Function:
            self.add_tool(function, name=name, description=description, annotations=annotations)
            return function

        return add if function is None else add(function)

    def add_tool(self, tool: NativeTool | Callable[..., Any], **facts: Any) -> None:
        """Takes in a function, or an object that fills `NativeTool`. Also before the hub is open."""
        self._runtime.native.add(tool, **facts)
        if self._runtime.is_open:
            self._runtime.declare_native()

    def remove_tool(self, name: str) -> None:
        """Takes a function or tool object out again, by the name that it was added with. Raises `NotFound`.

        Calls under way finish; nobody finds or calls it from now on.
        """
        self._runtime.native.remove(name)
        if self._runtime.is_open:
            self._runtime.declare_native()


def clients_of(hub: BoundHub) -> DoorClients:
    """For doors: what they keep of their clients, for whichever process those come to next."""
    return hub._runtime.door_clients  # pyright: ignore[reportPrivateUsage]


def logins_of(hub: BoundHub) -> ClientLogins:
    """For doors: how MCP clients log in, as OAuth has it."""
    return ClientLogins(hub._runtime, hub.caller)  # pyright: ignore[reportPrivateUsage]


def _active(person: Person) -> Caller:
    """Whom somebody who was let in as this user would be."""
    if person.user.is_active:
        return admitted(person).caller
    raise Denied(
        f"{person.user.name!r} is not active", hint="dragoman users update NAME --active lets them in again"
    )
