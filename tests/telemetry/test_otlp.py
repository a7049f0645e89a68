"""Spans reach a collector, and one that is away holds up nothing."""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dragoman import Hub, Settings
from patience import deadline
from servers.ports import listen

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def collector() -> AsyncGenerator[tuple[str, list[Any]]]:
    """Its address, and the spans that it was sent."""
    spans: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip" and body.startswith(b"\x1f\x8b"):
            body = gzip.decompress(body)
        sent: Any = ExportTraceServiceRequest.FromString(body)
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                spans.extend((resource.resource, span) for span in scope.spans)
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    runner, listener = web.AppRunner(app), listen()
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", spans
    finally:
        await runner.cleanup()


def double(number: int) -> int:
    """Twice as much."""
    return number * 2


async def test_the_spans_of_calls_are_at_the_collector_when_the_hub_is_closed(tmp_path: Path) -> None:
    async with collector() as (url, spans), Hub(Settings(home=tmp_path, otlp_endpoint=f"{url}/")) as hub:
        hub.add_tool(double)
        assert (await hub.call("double", {"number": 424242})).ok
    ((resource, span),) = spans
    assert span.name == "execute_tool double"
    assert {one.key: one.value.string_value for one in resource.attributes}["service.name"] == "dragoman"
    assert "424242" not in str(span)


async def test_a_collector_that_is_away_costs_no_call_and_little_time_at_the_end(tmp_path: Path) -> None:
    async with deadline(10), Hub(Settings(home=tmp_path, otlp_endpoint="http://127.0.0.1:1")) as hub:
        hub.add_tool(double)
        assert (await hub.call("double", {"number": 2})).result == 4
