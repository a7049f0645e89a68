"""Spans sent to a collector by OTLP over HTTP, in batches, by a thread of the SDK. Needs the extra `otel`.

A collector that is away costs the spans, never a call: what does not fit into the queue is dropped.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from dragoman.telemetry.spans import Spans

_PATIENCE = 2.0  # seconds for one batch, repetitions included: closing waits for two at most
_QUEUE = 2048


@asynccontextmanager
async def exported_spans(endpoint: str) -> AsyncGenerator[Spans]:
    """`endpoint` is the collector's address without a path. What is left is sent at the end of the block."""
    known = {"service.version": version("dragoman")}
    if not os.environ.get("OTEL_SERVICE_NAME"):  # else that is the name
        known["service.name"] = "dragoman"
    provider = TracerProvider(
        resource=Resource.create(known),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_PATIENCE)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=_QUEUE, max_export_batch_size=_QUEUE)
    )
    try:
        yield Spans(provider)
    finally:
        await asyncio.to_thread(provider.shutdown)
