"""One call on its way: what is known of it so far, and the output it ends with."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from time import perf_counter, time
from typing import Any

from dragoman.calls.call_channel import CallChannel
from dragoman.calls.call_tasks import CallTask
from dragoman.calls.outputs import ShapedResult
from dragoman.calls.records import FinishedCall
from dragoman.connections.deadline import Deadline
from dragoman.connector import Connector
from dragoman.errors import DragomanError, Internal, ToolFailed, Uncertain
from dragoman.hooks import CallHooks
from dragoman.scope import Caller
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.redaction import Redactor
from dragoman.tool import CallError, CallMetadata, Tool, ToolCall, ToolOutput


class CallState:
    """Changes while its call runs, and belongs to that call alone."""

    __slots__ = (
        "_started",
        "_waited",
        "arguments",
        "attempts",
        "call",
        "caller",
        "channel",
        "connector",
        "deadline",
        "handle",
        "hooks",
        "started_at",
        "task",
        "tool",
        "warnings",
        "was_cached",
        "was_sent",
    )

    def __init__(self, call: ToolCall, caller: Caller) -> None:
        self._started = perf_counter()
        self._waited = 0.0
        self.started_at = time()
        self.call = call
        self.caller = caller
        self.tool: Tool | None = None
        self.task: CallTask | None = None
        self.connector: Connector | None = None
        self.arguments: Mapping[str, Any] | None = None
        self.warnings: tuple[str, ...] = ()
        self.deadline: Deadline | None = None
        self.channel: CallChannel | None = None
        self.handle: str | None = None
        self.hooks: CallHooks | None = None
        self.attempts = 1
        self.was_sent = False
        self.was_cached = False

    @property
    def tool_name(self) -> str:
        """The public name once the tool is found; until then what was asked for."""
        return self.tool.name if self.tool else str(self.call.tool)[:200]

    @contextmanager
    def waiting(self) -> Generator[None]:
        """A person is asked: what that takes is no latency."""
        began = perf_counter()
        try:
            yield
        finally:
            self._waited += perf_counter() - began

    def arrived(self, shaped: ShapedResult, redactor: Redactor) -> ToolOutput:
        if shaped.is_error:
            failed = ToolFailed(
                shaped.message, hint="the tool itself says so; change the arguments and try again"
            )
            return self.failed(failed, redactor, shaped)
        return ToolOutput(
            ok=True,
            metadata=self._metadata(shaped),
            result=shaped.result,
            content=shaped.content,
            _has_structured=shaped.has_structured,
            _meta=shaped.meta,
        )

    def failed(
        self, error: DragomanError, redactor: Redactor, shaped: ShapedResult | None = None
    ) -> ToolOutput:
        return ToolOutput(
            ok=False,
            metadata=self._metadata(shaped),
            error=CallError(
                code=error.code,
                message=redactor.clean(error.message),
                retryable=error.retryable,
                command_hint=redactor.clean(error.command_hint) if error.command_hint else None,
                cause=redactor.clean(error.cause) if error.cause else None,
                retry_after=error.retry_after,
                connector=self.connector.slug if self.connector else None,
                tool=self.tool_name,
            ),
            # A failure is told and written about; only a result is data.
            content=tuple(redactor.clean_value(block) for block in shaped.content) if shaped else (),
        )

    def broken(self, error: Exception, redactor: Redactor) -> ToolOutput:
        """Something that nobody foresaw. The log has the whole of it; the caller gets its kind only."""
        get_logger().error("call.internal", tool=self.tool_name, exc_info=error)
        is_safe = self.tool is not None and self.tool.definition.annotations.is_safe_to_repeat
        fault = (Uncertain if self.was_sent and not is_safe else Internal)(
            "Dragoman failed while it made this call",
            hint="the log of the process has the details; please report it",
            cause=type(error).__name__,
        )
        return self.failed(fault, redactor)

    def finished(self, output: ToolOutput | None) -> FinishedCall:
        """`output` is None for a call that was cancelled."""
        error = output.error if output else None
        return FinishedCall(
            id=self.call.id,
            caller=self.caller,
            tool=self.tool.own.name if self.tool else self.tool_name,
            connector=self.connector,
            was_sent=self.was_sent,
            ok=output is not None and output.ok,
            code=error.code if error else None if output else "cancelled",
            message=error.message[:500] if error else None if output else "the caller went away",
            duration_ms=output.metadata.duration_ms if output else self._elapsed_ms(),
            waited_ms=self._waited_ms(),
            attempts=self.attempts,
            started_at=self.started_at,
            cost=self._cost,
            version=self.tool.version if self.tool else None,
            hooks=tuple(self.hooks.report.trail) if self.hooks else (),
        )

    @property
    def _cost(self) -> float:
        """The price of what was made, whatever came of it: as it was counted against the budget."""
        return self.tool.cost if self.tool is not None and self.was_sent else 0.0

    def _elapsed_ms(self) -> float:
        return (perf_counter() - self._started) * 1000 - self._waited_ms()

    def _waited_ms(self) -> float:
        return (self._waited + (self.deadline.waited if self.deadline else 0.0)) * 1000

    def _metadata(self, shaped: ShapedResult | None) -> CallMetadata:
        tool = self.tool
        return CallMetadata(
            request_id=self.call.id,
            connector=self.connector.slug if self.connector else None,
            original_name=tool.definition.original_name if tool else None,
            version=tool.version if tool else None,
            duration_ms=self._elapsed_ms(),
            waited_ms=self._waited_ms(),
            content_type=shaped.content_type if shaped else None,
            truncated=shaped is not None and shaped.size is not None,
            handle=self.handle,
            size=shaped.size if shaped else None,
            cached=self.was_cached,
            attempts=self.attempts,
            warnings=self._all_warnings(shaped),
            cost=self._cost,
        )

    def _all_warnings(self, shaped: ShapedResult | None) -> tuple[str, ...]:
        told = self.warnings
        if shaped is not None and shaped.warnings:
            told = (*told, *shaped.warnings)
        if self.hooks is not None and self.hooks.report.told:
            told = (*told, *self.hooks.report.told)
        return (*told, *self.channel.warnings) if self.channel and self.channel.warnings else told
