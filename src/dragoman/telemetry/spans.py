"""Spans of runs, model requests and calls, in the GenAI conventions, each inside the one that led to it.

Through the API only: without an SDK it is nearly free.

Arguments and results never become attributes.
"""

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext

from opentelemetry import context, trace
from opentelemetry.trace import Span, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dragoman import extras

TRACE_FIELDS = ("traceparent", "tracestate")
_PROPAGATOR = TraceContextTextMapPropagator()
_NO_CONTEXT: dict[str, str] = {}


class CallSpan:
    """A recording span that is current while its call runs. Who opens it ends it, in the same task."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._token = context.attach(trace.set_span_in_context(span))

    def end(self, error_type: str | None, connector: str | None) -> None:
        if connector is not None:
            self._span.set_attribute("dragoman.connector", connector)
        if error_type is not None:
            self._span.set_attribute("error.type", error_type)
            self._span.set_status(Status(StatusCode.ERROR, error_type))
        context.detach(self._token)
        self._span.end()


class OpenSpan:
    """A span around a block. Notes nothing where nobody records."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, **attributes: str | int | float) -> None:
        """Underscores stand for the dots of attribute names written as `a__b_c`: `a.b_c`."""
        for name, value in attributes.items():
            self._span.set_attribute(name.replace("__", "."), value)

    def failed(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR, error_type))


def trace_context() -> dict[str, str]:
    """`traceparent` and `tracestate` of the span that is current; empty where nobody records."""
    if not trace.get_current_span().get_span_context().is_valid:
        return _NO_CONTEXT
    carried: dict[str, str] = {}
    _PROPAGATOR.inject(carried)
    return carried


def continued_trace(carried: Mapping[str, str]) -> AbstractContextManager[None]:
    """What happens in the block belongs to the trace that somebody else began, where `carried` names one."""
    return _continued(carried) if "traceparent" in carried else nullcontext()


@contextmanager
def _continued(carried: Mapping[str, str]) -> Generator[None]:
    token = context.attach(_PROPAGATOR.extract(carried))
    try:
        yield
    finally:
        context.detach(token)


@asynccontextmanager
async def open_spans(endpoint: str | None) -> "AsyncGenerator[Spans]":
    """Those of the process, whatever SDK it has set up; with an endpoint, sent to the collector there."""
    if endpoint is None:
        yield Spans()
        return
    extras.require("otel")
    from dragoman.telemetry.otlp import exported_spans

    async with exported_spans(endpoint) as spans:
        yield spans


class Spans:
    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer: Tracer = trace.get_tracer("dragoman", tracer_provider=provider)

    @contextmanager
    def within(self, operation: str, subject: str, **attributes: str) -> Generator[OpenSpan]:
        """Around a run (`invoke_agent`) or a model request (`chat`): what happens inside is its child."""
        span = self._tracer.start_span(f"{operation} {subject}")
        if not span.is_recording():
            yield OpenSpan(span)
            return
        opened = OpenSpan(span)
        opened.note(gen_ai__operation__name=operation, **attributes)
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield opened
        except BaseException as error:
            opened.failed(type(error).__name__)
            raise
        finally:
            context.detach(token)
            span.end()

    def open(self, tool: str, call_id: str) -> CallSpan | None:
        """None when nobody records."""
        span = self._tracer.start_span(f"execute_tool {tool}")
        if not span.is_recording():
            return None
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", tool)
        span.set_attribute("gen_ai.tool.call.id", call_id)
        return CallSpan(span)
