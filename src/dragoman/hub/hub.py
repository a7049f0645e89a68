"""The hub: Dragoman as a library.

One `async with Hub()` is one installation at work. What it opens, it closes, within ten seconds.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar, overload

from dragoman.connections.native import NativeTool
from dragoman.connections.source import ConnectionStatus
from dragoman.errors import NotFound
from dragoman.events import Event
from dragoman.hub.building import Building
from dragoman.run import Run
from dragoman.scope import Caller
from dragoman.store import CallRecord, KeptResult
from dragoman.telemetry.metrics import ConnectorMetrics
from dragoman.tool import Annotations, CallObserver, ClientChannel, ToolCall, ToolOutput

Function = TypeVar("Function", bound=Callable[..., Any])


class Hub(Building):
    """Dragoman as a library. `caller` is whom it acts for where a call names nobody else."""

    def without_secrets(self, text: str) -> str:
        """For what a door tells of an error: servers repeat what they were told."""
        return self._redactor.clean(text)

    def seal(self, value: bytes, *place: str) -> bytes:
        """Encrypts what somebody else keeps for us, bound to its place."""
        return self._vault.seal_bytes(value, *place)

    def unseal(self, sealed: bytes, *place: str) -> bytes:
        """`KeyFault` for what was not sealed here for this place."""
        return self._vault.open_bytes(sealed, *place)

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
    ) -> ToolOutput:
        """Calls a tool by name. Whatever goes wrong is in the output; nothing is raised for it."""
        call = ToolCall(
            tool=tool,
            arguments={} if arguments is None else arguments,
            timeout=timeout,
            cost_limit=cost_limit,
            channel=channel,
            witness=witness,
        )
        return await self._call_in_thread(call, caller or self.caller)

    async def ask(
        self, text: str, *, thread: str | None = None, agent: str | None = None, caller: Caller | None = None
    ) -> Run:
        """Has the assistant, or whoever is mentioned, work on it; the finished run with its answer."""
        return await self.messages.ask(text, thread=thread, agent=agent, caller=caller)

    async def result(self, handle: str, *, caller: Caller | None = None) -> KeptResult:
        """The whole of a result that was cut."""
        caller = caller or self.caller
        kept = await self._store.calls.find_result(caller.workspace, caller.user, handle)
        if kept is None:
            raise NotFound(
                f"there is no kept result {handle[:80]!r}",
                hint=f"results are kept for {self.settings.keep_results_days:g} days",
            )
        return kept

    async def events(self, *, caller: Caller | None = None) -> AsyncIterator[Event]:
        """What happens from now on, as far as the caller may see it. Ends when the hub closes."""
        caller = caller or self.caller
        with self._events.listen(caller.workspace, caller.user) as listener:
            async for event in listener:
                yield event

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
        """Takes in a function, or an object that fills `NativeTool`."""
        self._native.add(tool, **facts)
        self._declare()

    async def calls(self, limit: int = 100, *, caller: Caller | None = None) -> list[CallRecord]:
        """The caller's last calls, newest first."""
        caller = caller or self.caller
        await self._recorder.flush()
        return [*await self._store.calls.recent(caller.workspace, caller.user, limit)]

    @property
    def catalog_version(self) -> int:
        """Another number after every change of what can be found; what a door derives is keyed on it."""
        return self._catalog.version if self._catalog else 0

    def metrics(self) -> list[ConnectorMetrics]:
        return self._recorder.list_metrics()

    def links(self) -> list[ConnectionStatus]:
        return [*self._servers.statuses(), *self._services.statuses()]

    def workspace_of(self, link: ConnectionStatus) -> str:
        connector = self._registry.find_by_id(link.connector_id)
        return connector.workspace if connector else ""

    @property
    def dropped_records(self) -> int:
        return self._recorder.dropped

    async def check(self) -> None:
        """Raises `StoreUnavailable` when the installation cannot work."""
        await self._store.ping()
