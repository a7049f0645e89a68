from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman.telemetry.spans import Spans


def recording() -> tuple[Spans, InMemorySpanExporter, TracerProvider]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider), exporter, provider


def test_a_call_is_one_span_with_the_conventional_names() -> None:
    spans, exporter, _ = recording()
    span = spans.open("mcp_time_now", "call_1")
    assert span is not None
    span.end(None, "time")
    (finished,) = exporter.get_finished_spans()
    assert finished.name == "execute_tool mcp_time_now"
    assert dict(finished.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "mcp_time_now",
        "gen_ai.tool.call.id": "call_1",
        "dragoman.connector": "time",
    }
    assert finished.status.is_ok or finished.status.is_unset


def test_a_failed_call_names_its_code() -> None:
    spans, exporter, _ = recording()
    span = spans.open("mcp_time_now", "call_1")
    assert span is not None
    span.end("timeout", None)
    (finished,) = exporter.get_finished_spans()
    assert (finished.attributes or {})["error.type"] == "timeout"
    assert not finished.status.is_ok


def test_what_happens_inside_a_call_is_a_child_of_its_span() -> None:
    spans, exporter, provider = recording()
    outside = trace.get_current_span()
    span = spans.open("mcp_time_now", "call_1")
    assert span is not None
    with provider.get_tracer("wire").start_as_current_span("request"):
        pass
    span.end(None, None)
    inner, outer = exporter.get_finished_spans()
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert trace.get_current_span() is outside


def test_without_an_sdk_there_is_no_span() -> None:
    assert Spans().open("mcp_time_now", "call_1") is None


def test_a_request_and_a_call_are_inside_the_span_of_their_run() -> None:
    spans, exporter, _ = recording()
    with spans.within("invoke_agent", "mailer", gen_ai__agent__name="mailer") as run:
        with spans.within("chat", "openai:gpt-5"):
            pass
        call = spans.open("mcp_email_read", "call_1")
        assert call is not None
        call.end(None, "email")
        run.note(gen_ai__usage__input_tokens=12)
    request, called, outer = exporter.get_finished_spans()
    assert outer.name == "invoke_agent mailer"
    assert (outer.attributes or {})["gen_ai.agent.name"] == "mailer"
    assert (outer.attributes or {})["gen_ai.usage.input_tokens"] == 12
    assert outer.context is not None
    assert {span.parent and span.parent.span_id for span in (request, called)} == {outer.context.span_id}
