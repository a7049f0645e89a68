"""THE ROAD: every tool call, from every door, goes down `Road.call`.

find → allow → validate → approve → limit → call → normalise → record: each step in a module of its own.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from dragoman.access import Access, Approvals, Budgets, Limits
from dragoman.calls.arguments import Arguments
from dragoman.calls.audit import Auditor
from dragoman.calls.cache import Cache
from dragoman.calls.kept import Keeping
from dragoman.calls.outputs import Shaped, shape, tokens_in
from dragoman.calls.passage import Passage
from dragoman.calls.records import Finished, Recorder
from dragoman.catalog import Catalog
from dragoman.connections.source import SourceCall, Sources
from dragoman.connector import Connector
from dragoman.errors import DragomanError, InvalidArguments, ToolChanged
from dragoman.events import Event, Events
from dragoman.scope import Caller
from dragoman.store.protocols import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.telemetry.spans import CallSpan, Spans
from dragoman.tool import RawResult, Tool, ToolCall, ToolOutput


class Road:
    def __init__(
        self,
        *,
        catalog: Catalog,
        access: Access,
        approvals: Approvals,
        limits: Limits,
        budgets: Budgets,
        sources: Sources,
        store: Store,
        recorder: Recorder,
        auditor: Auditor,
        events: Events,
        connector_of: Callable[[Tool], Connector] | None = None,
        arguments: Arguments | None = None,
        cache: Cache | None = None,
        spans: Spans | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._catalog = catalog
        self._connector_of = connector_of or catalog.connector_of
        self._access = access
        self._arguments = arguments or Arguments()
        self._approvals = approvals
        self._limits = limits
        self._budgets = budgets
        self._cache = cache or Cache()
        self._sources = sources
        self._keeping = Keeping(store.results)
        self._recorder = recorder
        self._auditor = auditor
        self._events = events
        self._spans = spans or Spans()
        self._redactor = redactor or Redactor()

    async def call(self, call: ToolCall, caller: Caller) -> ToolOutput:
        """Whatever goes wrong is an output that says so; only cancellation gets out as an exception."""
        passage = Passage(call, caller)
        span = self._spans.open(call.tool, call.id)
        self._tell_started(passage)
        try:
            tool, connector = self._found(passage)
            arguments, passage.warnings = self._arguments.check(tool, call.arguments)
            passage.arguments = arguments
            await self._admit(passage, tool, connector, arguments)
            key = self._cache.key(tool, connector, caller, arguments)
            shaped = self._cache.find(key) if key else None
            if shaped is None:
                shaped = await self._cross(passage, tool, connector, arguments)
                if key:
                    self._cache.keep(key, tool, connector, shaped)
            else:
                passage.was_cached = True
            output = passage.arrived(shaped, self._redactor)
        except DragomanError as error:
            output = passage.failed(error, self._redactor)
        except Exception as error:  # noqa: BLE001
            # boundary: a fault of ours, or of a source, is the failure of one call and no more
            output = passage.broken(error, self._redactor)
        except asyncio.CancelledError:
            self._record(passage, None, span)
            raise
        self._record(passage, output, span)
        return output

    def _found(self, passage: Passage) -> tuple[Tool, Connector]:
        """Find → allow."""
        tool = passage.tool = self._catalog.get(passage.call.tool, passage.caller)
        connector = passage.connector = self._connector_of(tool)
        self._access.check(tool, connector, passage.caller)
        return tool, connector

    async def _admit(
        self, passage: Passage, tool: Tool, connector: Connector, arguments: dict[str, Any]
    ) -> None:
        """Approve. A request that continues a call is a part of it: nobody is asked for leave twice."""
        call, line = passage.call, passage.call.line
        if line is not None and line.continues is not None and line.continues.covers(tool, arguments):
            return
        if await self._approvals.admit(tool, connector, passage.caller, arguments, call):
            self._check_again(passage)

    def _check_again(self, passage: Passage) -> None:
        """A person took their time: what they allowed must still be what would happen now."""
        before = passage.tool
        tool, _ = self._found(passage)
        if before is None or tool.fingerprint != before.fingerprint:
            raise ToolChanged(f"{tool.name} changed while a person was asked", hint="call again")

    async def _cross(
        self, passage: Passage, tool: Tool, connector: Connector, arguments: dict[str, Any]
    ) -> Shaped:
        """Limit → call → normalise. The wait for a place counts against the same deadline."""
        caller = passage.caller
        deadline = _deadline(passage.call.timeout, connector.configuration.request_timeout)
        call = SourceCall(
            connector=connector,
            tool=tool,
            arguments=arguments,
            caller=caller,
            deadline=deadline,
            line=passage.call.line,
        )
        ticket = await self._budgets.enter(passage.call, tool, connector, caller, deadline)
        try:
            if passage.call.witness is not None:
                await passage.call.witness.departs(tool.definition.annotations.is_safe_to_repeat)
            shaped = shape(await self._send(passage, call), connector.configuration.max_result_bytes)
        except BaseException:
            if ticket is not None:
                await self._budgets.leave(ticket, tokens_in(arguments, None))
            raise
        if ticket is not None:
            await self._budgets.leave(ticket, tokens_in(arguments, shaped))
        if shaped.whole is not None:
            passage.handle = await self._keeping.keep(shaped, tool, caller)
        return shaped

    async def _send(self, passage: Passage, call: SourceCall) -> RawResult:
        connector = call.connector
        gate = self._limits.gate(connector)
        if not gate.try_enter(connector.configuration.max_concurrency):
            await gate.enter(connector, call.deadline)
        try:
            passage.was_sent = True
            raw = await self._sources.call(call)
        finally:
            gate.leave(connector)
        passage.attempts = raw.attempts
        return raw

    def _record(self, passage: Passage, output: ToolOutput | None, span: CallSpan | None) -> None:
        finished = passage.finished(output)
        self._recorder.finished(finished)
        self._auditor.called(finished, passage.arguments)
        self._tell_finished(finished)
        if span:
            span.end(finished.code, passage.connector.slug if passage.connector else None)

    def _tell_started(self, passage: Passage) -> None:
        if self._events.has_listeners:
            caller = passage.caller
            data = {"id": passage.call.id, "tool": passage.tool_name, "way": caller.way}
            self._events.publish(
                Event(kind="call.started", workspace=caller.workspace, user=caller.user, data=data)
            )

    def _tell_finished(self, finished: Finished) -> None:
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


def _deadline(asked: float | None, allowed: float) -> float:
    """On the event loop's clock. A caller may shorten the connector's time, never lengthen it."""
    if asked is not None and not asked > 0:
        raise InvalidArguments("the timeout must be more than 0 seconds", hint="leave it out for the default")
    return asyncio.get_running_loop().time() + (allowed if asked is None else min(asked, allowed))
