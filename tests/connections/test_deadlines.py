"""Progress moves the deadline of a call on, up to the connector's limit; the caller's own stays."""

from pathlib import Path

import pytest

from patience import deadline, patient, until
from servers.hubs import open_hub, quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["2025", "2026"])


@ERAS
async def test_a_call_that_makes_progress_may_take_longer_than_its_time(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **quick(request_timeout=patient(0.6)))
        await hub.call("mcp_a_echo", {"text": "connected"})
        output = await hub.call("mcp_a_steps", {"count": 8, "seconds": patient(0.2)})
        assert output.result == "8 steps", output.error
        silent = await hub.call("mcp_a_sleep", {"seconds": patient(5)})
        assert silent.error is not None
        assert silent.error.code == "timeout"


async def test_no_progress_lengthens_a_call_beyond_the_limit_of_its_connector(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        times = quick(request_timeout=patient(0.6), max_request_time=patient(1.2))
        await hub.connectors.add("a", **stdio(), **times)
        await hub.call("mcp_a_echo", {"text": "connected"})
        async with deadline(10):
            output = await hub.call("mcp_a_steps", {"count": 1000, "seconds": patient(0.1)})
        assert output.error is not None
        assert output.error.code == "timeout"
        assert patient(1100) < output.metadata.duration_ms


async def test_the_time_that_a_caller_gives_is_not_lengthened(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick(request_timeout=patient(30)))
        await hub.call("mcp_a_echo", {"text": "connected"})
        async with deadline(10):
            asked = {"count": 1000, "seconds": patient(0.1)}
            output = await hub.call("mcp_a_steps", asked, timeout=patient(0.5))
        assert output.error is not None
        assert output.error.code == "timeout"


async def test_a_connector_without_a_time_has_that_of_the_app(tmp_path: Path) -> None:
    async with open_hub(tmp_path, request_timeout=patient(0.3)) as hub:
        times = {name: value for name, value in quick().items() if name != "request_timeout"}
        await hub.connectors.add("a", **stdio(), **times)
        await hub.call("mcp_a_echo", {"text": "connected"})
        async with deadline(10):
            output = await hub.call("mcp_a_sleep", {"seconds": patient(60)})
        assert output.error is not None
        assert output.error.code == "timeout"


async def test_attempts_to_reconnect_end_where_the_connector_says_so_and_a_call_tries_again(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with open_hub(tmp_path / "home") as hub:
        policy = {"attempts": 2, "delay": 0.1, "cap": 0.1}
        await hub.connectors.add("a", **stdio("--require-file", str(gate)), **quick(reconnect=policy))
        gate.unlink()
        await hub.call("mcp_a_die", {})

        async def gave_up() -> bool:
            status = (await hub.connectors.get("a")).status
            return status.state == "error" and status.next_attempt is None

        await until(gave_up)
        assert (await hub.connectors.get("a")).status.attempt == 2
        gate.touch()
        assert (await hub.call("mcp_a_echo", {"text": "back"})).result == "back"
