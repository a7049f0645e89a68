"""THE ROAD: every tool call, from every door, goes down `Road.call`.

find → allow → validate → hooks → approve → limit → call → hooks → normalise → record: each step in a module
of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.access import AccessRules, ApprovalGate, Budgets, ConcurrencyLimits
from dragoman.access.budgets import BudgetReservation
from dragoman.calls.arguments import ArgumentValidator
from dragoman.calls.audit import Auditor
from dragoman.calls.cache import ResultCache
from dragoman.calls.call_channel import CallChannel
from dragoman.calls.call_state import CallState
from dragoman.calls.call_tasks import CallTasks, NoTaskRecords
from dragoman.calls.kept_results import ResultKeeper
from dragoman.calls.output_schemas import OutputValidator
from dragoman.calls.outputs import ShapedResult, shape, tokens_in
from dragoman.calls.records import FinishedCall, Recorder
from dragoman.catalog import Catalog
from dragoman.connections.deadline import Deadline
from dragoman.connections.exchanged_messages import telling
from dragoman.connections.source import SourceCall, Sources
from dragoman.connector import Configuration, Connector
from dragoman.errors import DragomanError, HookRefused, InvalidArguments, ToolChanged
from dragoman.events import Event, Events
from dragoman.hooks import CallHooks, Hooks
from dragoman.scope import Caller
from dragoman.store.protocols import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.telemetry.spans import CallSpan, Spans
from dragoman.tool import BundledTool, OnMessage, RawResult, Tool, ToolCall, ToolOutput


class Road:
    def __init__(
        self,
        *,
        catalog: Catalog,
        access: AccessRules,
        approvals: ApprovalGate,
        limits: ConcurrencyLimits,
        budgets: Budgets,
        sources: Sources,
        store: Store,
        recorder: Recorder,
        auditor: Auditor,
        events: Events,
        hooks: Hooks,
        connector_of: Callable[[Tool], Connector] | None = None,
        arguments: ArgumentValidator | None = None,
        cache: ResultCache | None = None,
        spans: Spans | None = None,
        redactor: Redactor | None = None,
        request_timeout: float = 60.0,
        list_first: Callable[[str, Caller], Awaitable[Connector | None]] | None = None,
        tasks: CallTasks | None = None,
    ) -> None:
        """`request_timeout` is for connectors that have none of their own. `list_first` reads the tools of a
        connector that was never listed, if the name is of one."""
        self._catalog = catalog
        self._connector_of = connector_of or catalog.connector_of
        self._access = access
        self._arguments = arguments or ArgumentValidator()
        self._outputs = OutputValidator()
        self._approvals = approvals
        self._limits = limits
        self._budgets = budgets
        self._cache = cache or ResultCache()
        self._sources = sources
        self._keeping = ResultKeeper(store.calls)
        self._recorder = recorder
        self._auditor = auditor
        self._events = events
        self._spans = spans or Spans()
        self._redactor = redactor or Redactor()
        self._request_timeout = request_timeout
        self._list_first = list_first
        self._hooks = hooks
        self._tasks = tasks or CallTasks(NoTaskRecords())

    async def call(self, call: ToolCall, caller: Caller) -> ToolOutput:
        """Whatever goes wrong is an output that says so; only cancellation gets out as an exception."""
        state = CallState(call, caller)
        span = self._spans.open(call.tool, call.id)
        self._tell_started(state)
        try:
            tool, connector = await self._found(state)
            arguments, state.warnings = self._arguments.check(tool, call.arguments, caller.way)
            if (bundled := tool.bundled) is not None:
                tool, arguments = self._unbundled(bundled, arguments)
            if (chain := await self._hooks.chain_for_call(connector, caller, bundled)) is not None:
                state.hooks = CallHooks(chain, call.id, tool, connector, caller, arguments)
                arguments = await self._looked_at(state.hooks, tool, arguments)
            state.arguments = arguments
            state.task = await self._tasks.of(call.observer, tool, arguments, caller)
            if state.task is None or state.task.found is None:
                await self._admit(state, tool, connector, arguments)
            # What hooks let pass is for this caller, and by today's rules.
            is_kept = state.hooks is None or not state.hooks.looks_at_results
            key = self._cache.key(tool, connector, caller, arguments) if is_kept else None
            shaped = self._cache.find(key) if key else None
            state.was_cached = shaped is not None
            if shaped is None:
                shaped = await self._cross(state, tool, connector, arguments)
                if key:
                    self._cache.keep(key, tool, connector, shaped)
            output = state.arrived(shaped, self._redactor)
        except DragomanError as error:
            output = state.failed(error, self._redactor)
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours, or of a source, is the failure of one call and no more
            output = state.broken(error, self._redactor)
        except asyncio.CancelledError:
            self._record(state, None, span)
            raise
        if state.task is not None:
            await state.task.ended()
        self._record(state, output, span)
        return output

    async def _found(self, state: CallState) -> tuple[Tool, Connector]:
        """Find → allow."""
        name, caller = state.call.tool, state.caller
        here = caller if caller.thread is None else await self._access.seen_by(caller)
        tool = self._catalog.find(name, here)
        if tool is None and self._list_first is not None:
            await self._list_first(name, here)
        tool = state.tool = tool or self._catalog.get(name, here)
        connector = state.connector = self._connector_of(tool)
        await self._access.check(tool, connector, caller if tool.bundled is None else here)
        return tool, connector

    def _unbundled(self, bundled: BundledTool, arguments: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
        """The tool itself, with what is sent to it: fixed values are its bundle's and not the caller's."""
        own = bundled.arguments(arguments)
        try:
            return bundled.base, self._arguments.check(bundled.base, own)[0]
        except InvalidArguments:
            # What exactly is wrong may speak of values that nobody here is shown.
            raise InvalidArguments(
                "the tool does not take these arguments together",
                hint="change them; whoever keeps the bundle can look at its override",
            ) from None

    async def _looked_at(self, hooks: CallHooks, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as hooks let them pass."""
        passed = await hooks.before()
        if passed is arguments:
            return arguments
        try:
            return self._arguments.check(tool, passed)[0]
        except InvalidArguments as error:
            raise HookRefused(
                f"a hook has changed the arguments so that {tool.name} does not take them: {error.message}",
                hint="change them so that no hook has to",
            ) from None

    async def _admit(
        self, state: CallState, tool: Tool, connector: Connector, arguments: dict[str, Any]
    ) -> None:
        """Approve."""
        reason = state.hooks.reason_to_ask if state.hooks is not None else ""
        if await self._approvals.admit(
            tool, connector, state.caller, arguments, state.call, state.waiting, reason
        ):
            await self._check_again(state)

    async def _check_again(self, state: CallState) -> None:
        """A person took their time: what they allowed must still be what would happen now."""
        before = state.tool
        tool, _ = await self._found(state)
        if before is None or (tool.fingerprint, tool.bundled) != (before.fingerprint, before.bundled):
            raise ToolChanged(f"{tool.name} changed while a person was asked", hint="call again")

    async def _cross(
        self, state: CallState, tool: Tool, connector: Connector, arguments: dict[str, Any]
    ) -> ShapedResult:
        """Limit → call → normalise. The wait for a place counts against the same deadline."""
        caller = state.caller
        deadline = state.deadline = self._deadline(state.call.timeout, connector.configuration)
        channel = state.channel = CallChannel(
            state.call.channel, connector, deadline, state.task, state.hooks
        )
        call = SourceCall(
            connector=connector,
            tool=tool,
            arguments=arguments,
            caller=caller,
            deadline=deadline,
            channel=channel,
        )
        ticket = await self._budgets.enter(state.call, tool, connector, caller, deadline.at)
        try:
            if state.call.observer is not None:
                await state.call.observer.departs(tool.definition.annotations.is_safe_to_repeat)
            raw = await self._send(state, call)
            flaws = self._outputs.check(tool, connector, raw)
            if state.hooks is not None:
                raw = await state.hooks.after(raw)
            shaped = shape(raw, connector.configuration.max_result_bytes)
            shaped.warnings = flaws
        except BaseException:
            if ticket is not None:
                await self._leave(ticket, arguments, None)
            raise
        if ticket is not None:
            await self._leave(ticket, arguments, shaped)
        if shaped.whole is not None:
            state.handle = await self._keeping.keep(shaped, tool, caller)
        return shaped

    async def _leave(
        self, ticket: BudgetReservation, arguments: dict[str, Any], shaped: ShapedResult | None
    ) -> None:
        await self._budgets.leave(ticket, tokens_in(arguments, shaped) if ticket.token_limits else 0)

    async def _send(self, state: CallState, call: SourceCall) -> RawResult:
        connector = call.connector
        gate = self._limits.gate(connector)
        if not gate.try_enter(connector.configuration.max_concurrency):
            await gate.enter(connector, call.deadline.at)
        try:
            state.was_sent = True
            with telling(self._message_listener(state)):
                raw = await self._sources[connector.kind].call(call)
        except DragomanError as error:
            state.attempts = error.attempts
            if state.channel is not None:
                await state.channel.pass_failure(error)
            raise
        finally:
            gate.leave(connector)
        state.attempts = raw.attempts
        return raw

    def _message_listener(self, state: CallState) -> OnMessage | None:
        """Nobody, where hooks or a bundle decide what the caller is shown of the arguments and the result."""
        is_shown = state.hooks is None and state.tool is not None and state.tool.bundled is None
        return state.call.on_message if is_shown else None

    def _deadline(self, asked: float | None, configuration: Configuration) -> Deadline:
        """A caller may shorten the connector's time, never lengthen it; then progress does not either."""
        allowed = configuration.request_timeout or self._request_timeout
        if asked is None:
            return Deadline(allowed, configuration.max_request_time)
        if not asked > 0:
            raise InvalidArguments(
                "the timeout must be more than 0 seconds", hint="leave it out for the default"
            )
        return Deadline(min(asked, allowed))

    def _record(self, state: CallState, output: ToolOutput | None, span: CallSpan | None) -> None:
        finished = state.finished(output)
        self._recorder.finished(finished)
        self._auditor.called(finished, state.arguments)
        self._tell_finished(finished)
        if span:
            span.end(finished.code, state.connector.slug if state.connector else None)

    def _tell_started(self, state: CallState) -> None:
        if self._events.has_listeners:
            caller = state.caller
            data = {"id": state.call.id, "tool": state.tool_name, "way": caller.way}
            self._events.publish(
                Event(kind="call.started", workspace=caller.workspace, user=caller.user, data=data)
            )

    def _tell_finished(self, finished: FinishedCall) -> None:
        if self._events.has_listeners:
            caller, connector = finished.caller, finished.connector
            data = {
                "id": finished.id,
                "tool": finished.tool,
                "ok": finished.ok,
                "code": finished.code,
                "duration_ms": finished.duration_ms,
            }
            slug = connector.slug if connector else None
            self._events.publish(
                Event(
                    kind="call.finished",
                    workspace=caller.workspace,
                    user=caller.user,
                    connector=slug,
                    data=data,
                )
            )
