"""Only a result is a success; a structure fits its schema, or that is said. With servers of both eras."""

from pathlib import Path
from typing import Any

import pytest

from servers.hubs import open_hub, quick
from servers.processes import journal, starts, stdio

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["2025", "2026"])
NO_RESULTS: list[dict[str, Any]] = [
    {},
    {"resultType": "task", "taskId": "t1", "status": "working"},
    {"resultType": "task", "content": [{"type": "text", "text": "later"}]},
    {"resultType": "a new one", "content": []},
    {"resultType": 7, "structuredContent": {"a": 1}},
    {"content": None},
    {"content": "text"},
    {"content": [{"text": "no type"}]},
    {"structuredContent": None},
    {"resultType": "complete"},
    {"resultType": "input_required", "inputRequests": 5},
    {"resultType": "input_required", "inputRequests": ["name"]},
]
RESULTS: list[dict[str, Any]] = [
    {"content": []},
    {"resultType": "complete", "content": []},
    {"structuredContent": {"a": 1}},
    {"resultType": "complete", "content": [], "structuredContent": {"a": 1}},
]


@ERAS
async def test_what_is_no_result_is_never_a_success(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        sent = tmp_path / "journal"
        await hub.connectors.add("a", **stdio("--era", era, "--journal", str(sent)), **quick())
        for number, result in enumerate(NO_RESULTS):
            reading = await hub.call("mcp_a_answer", {"result": result})
            assert reading.error is not None, result
            assert reading.error.code == "protocol_fault", (result, reading.error)
            writing = await hub.call("mcp_a_send_and_answer", {"text": f"{number}", "result": result})
            assert writing.error is not None, result
            assert (writing.error.code, writing.error.retryable) == ("uncertain", False), result
        assert journal(sent) == [f"{number}" for number in range(len(NO_RESULTS))]
        for result in RESULTS:
            output = await hub.call("mcp_a_answer", {"result": result})
            assert output.ok, (result, output.error)
            assert output.result == result.get("structuredContent")


async def test_what_does_not_say_no_to_failure_is_a_failure(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick())
        for word in (True, "true", 1, "false", {}, [0]):
            output = await hub.call("mcp_a_answer", {"result": {"content": [], "isError": word}})
            assert output.error is not None, word
            assert output.error.code == "tool_failed", word
        for word in (False, None):
            assert (await hub.call("mcp_a_answer", {"result": {"content": [], "isError": word}})).ok, word


async def test_an_answer_that_can_be_read_is_not_asked_for_again(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick())
        output = await hub.call("mcp_a_answer", {"result": {"resultType": "task", "taskId": "t1"}})
        assert (output.error is not None, output.metadata.attempts) == (True, 1)


@ERAS
async def test_a_structure_that_breaks_its_schema_is_given_with_a_warning(tmp_path: Path, era: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--era", era), **quick())
        fits = await hub.call("mcp_a_measure", {"found": {"size": 3, "unit": "cm"}})
        assert (fits.ok, fits.metadata.warnings) == (True, ())
        broken = await hub.call("mcp_a_measure", {"found": {"size": "hunter2", "unit": "cm"}})
        assert (broken.ok, broken.result) == (True, {"size": "hunter2", "unit": "cm"})
        (warning,) = broken.metadata.warnings
        assert "output schema" in warning
        assert "'size' must be a whole number, not text" in warning
        assert "hunter2" not in warning
        bare = await hub.call("mcp_a_measure", {})
        assert (bare.ok, bare.result) == (True, "measured")
        assert "no structured content" in bare.metadata.warnings[0]


async def test_a_strict_connector_refuses_what_breaks_the_schema(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        sent, log = tmp_path / "journal", tmp_path / "log"
        server = stdio("--journal", str(sent), "--log", str(log))
        await hub.connectors.add("a", **server, **quick(output_check="strict"))
        fits = await hub.call("mcp_a_measure", {"found": {"size": 3}})
        assert fits.ok, fits.error
        for found in ({"size": "three"}, {}, None):
            given = {} if found is None else {"found": found}
            reading = await hub.call("mcp_a_measure", given)
            assert reading.error is not None, found
            assert (reading.error.code, reading.result) == ("protocol_fault", None)
            assert "output_check" in (reading.error.hint or "")
            writing = await hub.call("mcp_a_send_measure", given)
            assert writing.error is not None, found
            assert writing.error.code == "uncertain"
        assert journal(sent) == ["measured"] * 3
        await hub.connectors.update("a", output_check="off")
        output = await hub.call("mcp_a_measure", {"found": {"size": "three"}})
        assert (output.ok, output.metadata.warnings) == (True, ())
        assert starts(log) == 2


async def test_a_remembered_result_keeps_its_warning(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **quick(cache_ttl=60))
        first = await hub.call("mcp_a_measure", {"found": {}})
        again = await hub.call("mcp_a_measure", {"found": {}})
        assert again.metadata.cached
        assert first.metadata.warnings == again.metadata.warnings != ()
