"""The contract with the SDK: what our wires rely on of its session. It fails when the seam moves."""

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client import _probe
from mcp.client.subscriptions import listen
from mcp.shared.dispatcher import CallOptions, Dispatcher

from dragoman import Hub, Settings
from dragoman.connections.wire import Wire
from servers.hubs import runtime_of

pytestmark = pytest.mark.anyio
SERVER = Path(__file__).parents[1] / "servers" / "sdk_server.py"


@pytest.mark.parametrize("method", ["send_raw_request", "notify", "run"])
def test_a_wire_has_the_methods_of_a_dispatcher(method: str) -> None:
    theirs = [*inspect.signature(getattr(Dispatcher, method)).parameters]
    ours = [*inspect.signature(getattr(Wire, method)).parameters]
    assert ours == theirs


def test_the_options_that_wires_honour_still_exist() -> None:
    assert {"request_id", "timeout", "on_progress", "headers"} <= set(CallOptions.__annotations__)


def test_the_session_takes_a_dispatcher_and_negotiates() -> None:
    assert "dispatcher" in inspect.signature(ClientSession).parameters
    assert [*inspect.signature(_probe.negotiate_auto).parameters] == ["session"]
    assert "tools_list_changed" in inspect.signature(listen).parameters


@pytest.mark.slow
@pytest.mark.parametrize("era", [None, "2025", "2026"])
async def test_the_session_works_on_our_wire_whatever_era_was_remembered(tmp_path: Path, era: Any) -> None:
    from dataclasses import replace

    async with Hub(Settings(home=tmp_path)) as hub:
        await hub.connectors.add("sdk", command=sys.executable, args=[str(SERVER)], connect=False)
        connector = (await hub.connectors.get("sdk")).connector
        runtime_of(hub).registry.put(replace(connector, era=era))
        assert (await hub.connectors.connect("sdk")).status.state == "connected"
        output = await hub.call("mcp_sdk_echo", {"text": "x"})
        assert output.ok, output.error
