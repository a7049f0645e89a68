import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from toolshop import World, echo

from dragoman.telemetry.spans import Spans

pytestmark = pytest.mark.anyio


async def test_every_call_leaves_one_span_without_arguments_or_results(sqlite_url: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with World(sqlite_url, spans=Spans(provider)) as world:
        await world.offer("echo", echo)
        await world.call("mcp_shop_echo", note="canary-in-arguments")
        await world.call("mcp_shop_absent", note="canary-in-arguments")
    good, bad = exporter.get_finished_spans()
    assert (good.attributes or {})["dragoman.connector"] == "shop"
    assert (bad.attributes or {})["error.type"] == "not_found"
    for span in (good, bad):
        assert "canary" not in span.to_json()
