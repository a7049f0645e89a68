"""What a run leaves for who asks why: lines of the log, spans of one trace, what it cost."""

import logging
from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from dragoman import Hub, Settings
from dragoman.telemetry.spans import continued_trace
from patience import until
from servers.hubs import quick
from servers.library_server import Library, open_library
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import MODEL, calls, is_of, open_scripted, scripted
from telemetry.test_otlp import collector

pytestmark = pytest.mark.anyio
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
TOOL = "mcp_books_lend"


def lends(turn: Turn) -> Reply:
    """The connector's agent, or who has the tool, lends a book; the assistant hands on."""
    if turn.results:
        return Reply(text="It is lent.")
    if TOOL in turn.tools or is_of(turn, "books"):
        return calls((TOOL, {"who": "Ada", "token": "sk-canary-0123456789abcdef"}))
    return calls(("query_mcp_connector", {"connector_id": "books", "query": "lend it"}))


async def _add(hub: Hub, library: Library) -> None:
    await hub.connectors.add("books", **quick(url=library.url, transport="http", approval="never"))


async def test_a_run_tells_each_step_in_a_line_under_one_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="dragoman")
    async with open_library() as library, open_scripted(tmp_path, lends) as (hub, _):
        await _add(hub, library)
        await hub.tools.configure(TOOL, cost=0.25)
        run = await hub.messages.ask("Lend it to Ada", options={"exposure": "delegate"})
        lines: list[Any] = [record for record in caplog.records if record.name == "dragoman"]
    discovered = next(one for one in lines if one.msg == "tools.discovered")
    assert (discovered.connector, discovered.tools) == ("books", 1)
    told = [one for one in lines if getattr(one, "root", "") == run.id]
    assert {one.levelname for one in told} == {"INFO"}
    assert [one.msg for one in told] == [
        *("run.started", "run.offered", "call.started"),  # the assistant hands it on
        *("run.started", "run.offered", "call.started", "call.finished", "run.finished"),  # its agent works
        *("call.finished", "run.finished"),
    ]
    offered = [one for one in told if one.msg == "run.offered"]
    assert [(one.exposure, one.why) for one in offered] == [
        ("delegate", "the request or the agent says so"),
        ("direct", "the tools of its own connector"),
    ]
    assert all(one.functions > 0 and one.tokens > 0 for one in offered)
    chosen = [one for one in told if one.msg == "call.started"][1]
    assert (chosen.tool, chosen.connector) == (TOOL, "books")
    assert "Ada" in chosen.arguments
    assert "sk-canary" not in str([vars(one) for one in told])
    answered = next(one for one in told if one.msg == "call.finished")
    assert answered.ok
    assert "lent" in answered.preview
    ended = told[-1]
    assert (ended.run, ended.status, ended.calls) == (run.id, "done", 1)
    assert ended.input_tokens > 0
    # The price of the tool is a part of what the run cost, and of its connector's numbers.
    assert ended.cost == run.usage.cost > 0.25


async def test_what_a_run_says_at_debug_is_more_and_at_warning_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_library() as library, open_scripted(tmp_path, lends) as (hub, _):
        await _add(hub, library)
        caplog.set_level(logging.WARNING, logger="dragoman")
        await hub.ask("Lend it")
        assert [one.msg for one in caplog.records if hasattr(one, "root")] == []
        caplog.set_level(logging.DEBUG, logger="dragoman")
        await hub.messages.ask("Lend it", options={"exposure": "direct"})
        said: list[Any] = [one for one in caplog.records if one.levelno == logging.DEBUG]
    assert any(one.msg == "run.offered" and TOOL in one.names for one in said)
    assert any(one.msg == "message.added" and "It is lent." in one.data for one in said)


async def test_one_trace_goes_over_delegation_code_and_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_library() as library, collector() as (url, spans), scripted(lends):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
        monkeypatch.setenv("DRAGOMAN_MODEL", MODEL)
        async with Hub(Settings.load()) as hub:
            await _add(hub, library)
            await hub.tools.configure(TOOL, allowed_callers=["direct", "agent", "code"])
            await hub.messages.ask("Lend it", options={"exposure": "delegate"})
            from_run = library.headers[-1]["traceparent"].split("-")[1]
            assert library.metas[-1]["traceparent"] == library.headers[-1]["traceparent"]
            with continued_trace(PARENT):
                assert (await hub.code.run("await books.lend()")).ok
            assert library.headers[-1]["traceparent"].split("-")[1] == TRACE
    by_trace: dict[str, list[str]] = {}
    for _, span in spans:
        by_trace.setdefault(span.trace_id.hex(), []).append(span.name.split()[0])
    assert by_trace[TRACE] == ["execute_tool"]
    assert sorted(by_trace[from_run]) == [
        *("chat", "chat", "chat", "chat"),
        "execute_tool",
        *("invoke_agent", "invoke_agent"),
    ]
    ended = next(span for _, span in spans if span.name == "invoke_agent assistant")
    assert "gen_ai.usage.input_tokens" in {one.key for one in ended.attributes}


async def test_a_client_s_trace_goes_on_in_calls_and_runs_and_numbers_are_told(tmp_path: Path) -> None:
    async with open_library() as library, scripted(lends), open_service(tmp_path, model=MODEL) as live:
        await _add(live.hub, library)
        await live.hub.tools.configure(TOOL, cost=0.25)
        called = await live.ask("POST", "/api/call", {"tool": TOOL}, **PARENT)
        assert called.value["metadata"]["cost"] == 0.25
        assert library.headers[-1]["traceparent"].split("-")[1] == TRACE
        before = len(library.asked)
        asked = {"text": "Lend it", "exposure": "direct"}
        await live.ask("POST", "/api/messages?wait=true", asked, **PARENT)
        await until(lambda: len(library.asked) > before)
        assert library.headers[-1]["traceparent"].split("-")[1] == TRACE
        shown = (await live.ask("GET", "/api/connectors/books")).value
        assert shown["metrics"]["cost"] == 0.5
        metrics = (await live.ask("GET", "/metrics")).body.decode()
        assert 'dragoman_tool_cost_dollars_total{connector="books",workspace="local"} 0.5' in metrics
        numbers = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line[0] != "#")
        assert float(numbers["dragoman_agents_readied_total"]) == 1
        assert float(numbers["dragoman_agents_readied_seconds_total"]) > 0
        assert float(numbers["dragoman_process_memory_bytes"]) > 10_000_000


def test_what_the_installation_says_of_its_collector_comes_first() -> None:
    alone = Settings.load({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    assert alone.otlp_endpoint == "http://collector:4318"
    own = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "DRAGOMAN_OTLP_ENDPOINT": "http://b"}
    assert Settings.load(own).otlp_endpoint == "http://b"
