"""What people get wrong: each is a clear error with a hint, nothing is half-written, nothing is sent."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.errors import CallerFault, Conflict, InvalidConfig, InvalidName, NotFound
from servers.hubs import QUICK, listed, open_hub
from servers.processes import read_log, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.fault]


async def is_untouched(hub: Hub) -> bool:
    return await listed(hub) == [] and hub.tools.list() == []


@pytest.mark.parametrize(
    "slug", ["", "Upper", "under_score!", "1digit", "with space", "a" * 41, "-dash", "ümlaut", "a/b", "a\n"]
)
async def test_a_bad_slug_is_refused_with_one_that_would_do(tmp_path: Path, slug: str) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidName) as caught:
            await hub.connectors.add(slug, **stdio("--log", str(log)), **QUICK)
        assert caught.value.hint
        assert "would do" in caught.value.hint
        assert await is_untouched(hub)
        assert not log.exists(), "a process was started"


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"command": "uvx", "url": "http://127.0.0.1:9/mcp"},
        {"command": ""},
        {"url": "ftp://example.org/mcp"},
        {"url": "not a url"},
        {"url": "http://"},
        {"command": "uvx", "transport": "http"},
        {"url": "http://127.0.0.1:9/mcp", "transport": "stdio"},
        {"url": "http://127.0.0.1:9/mcp", "env": {"A": "b"}},
        {"command": "uvx", "headers": {"A": "b"}},
        {"command": "uvx", "connect_timeout": -1},
        {"command": "uvx", "request_timeout": "soon"},
        {"command": "uvx", "no_such_field": 1},
        {"command": "uvx", "retry": {"tries": 0}},
        {"command": "uvx", "isolation": "everybody"},
        {"command": "uvx", "args": "not a list"},
    ],
    ids=str,
)
async def test_a_bad_configuration_is_refused_and_names_the_fault(
    tmp_path: Path, facts: dict[str, Any]
) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig) as caught:
            await hub.connectors.add("a", **facts)
        assert len(caught.value.message) > 20
        assert "hunter2" not in caught.value.message
        assert await is_untouched(hub)


async def test_a_slug_is_taken_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        with pytest.raises(Conflict) as caught:
            await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        assert caught.value.hint
        assert not log.exists()
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_an_unknown_connector_is_not_found_with_the_nearest_name(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("calendar", **stdio(), **QUICK)
        for act in ("get", "connect", "disconnect", "refresh", "enable", "disable", "remove", "update"):
            with pytest.raises(NotFound) as caught:
                await getattr(hub.connectors, act)("calender")
            assert "calendar" in (caught.value.hint or ""), act
        assert len(await listed(hub)) == 1


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("mcp_a_ecko", "mcp_a_echo"),
        ("mcp_b_echo", "mcp_a_echo"),
        ("echo", "mcp_a_echo"),
        ("a__ecko", "a__echo"),
    ],
)
async def test_an_unknown_tool_is_not_found_with_the_nearest_name(
    tmp_path: Path, name: str, near: str
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call(name, {"text": "x"})
        assert output.error is not None
        assert output.error.code == "not_found"
        assert near in (output.error.hint or "")
        with pytest.raises(NotFound):
            hub.tools.get(name)


async def test_the_other_spelling_of_a_name_is_accepted(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        assert (await hub.call("a__echo", {"text": "x"})).result == "x"


@pytest.mark.parametrize("name", ["", "x" * 100_000, "mcp_a_echo\n", "mcp_a_\x00", "💥"])
async def test_a_name_that_cannot_be_is_not_found(tmp_path: Path, name: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call(name, {"text": "x"})
        assert output.error is not None
        assert output.error.code == "not_found"
        assert len(output.error.message) < 1000


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"when": "2026-07-28T10:00:00Z", "copies": "two"}, "copies"),
        ({"when": 5}, "when"),
        ({"when": "tomorrow"}, "when"),
        ({}, "when"),
        ({"when": "2026-07-28T10:00:00Z", "copies": 0}, "copies"),
        ({"when": "2026-07-28T10:00:00Z", "colour": "blue"}, "colour"),
        ({"when": "2026-07-28T10:00:00Z", "copies": None}, "copies"),
    ],
    ids=["wrong type", "wrong type too", "wrong format", "missing", "too small", "forbidden", "null"],
)
async def test_arguments_that_the_schema_refuses_never_leave(
    tmp_path: Path, arguments: dict[str, Any], word: str
) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        output = await hub.call("mcp_a_strict", arguments)
        assert output.error is not None
        assert output.error.code == "invalid_arguments"
        assert word in output.error.message
        assert not output.error.retryable
        assert not any(entry.get("tool") == "strict" for entry in read_log(log))
        assert (await hub.call("mcp_a_strict", {"when": "2026-07-28T10:00:00Z"})).ok


async def test_bad_arguments_do_not_even_connect(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        await hub.connectors.disconnect("a")
        output = await hub.call("mcp_a_echo", {})
        assert output.error is not None
        assert output.error.code == "invalid_arguments"
        assert (await hub.connectors.get("a")).status.state == "disconnected"


async def test_an_argument_that_the_schema_does_not_know_is_passed_with_a_warning(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call("mcp_a_echo", {"text": "x", "colour": "blue"})
        assert output.ok, output.error
        assert "colour" in str(output.metadata.warnings)


async def test_an_argument_of_ten_megabytes_is_refused_unsent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio("--log", str(log)), **QUICK)
        output = await hub.call("mcp_a_echo", {"text": "x" * 10 * 1024 * 1024})
        assert output.error is not None
        assert output.error.code in ("invalid_arguments", "limit_reached")
        assert output.error.hint
        assert len(output.error.message) < 2000
        assert not any(entry.get("tool") == "echo" for entry in read_log(log))
        assert (await hub.call("mcp_a_echo", {"text": "small"})).ok


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes", "\ud800", 2**70])
async def test_a_value_that_is_no_json_is_the_callers_fault(tmp_path: Path, value: object) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.call("mcp_a_echo", {"text": "x", "extra": value})
        if not output.ok:
            assert output.error is not None
            assert output.error.code == "invalid_arguments", output.error
        assert (await hub.call("mcp_a_echo", {"text": "fine"})).ok


async def test_a_refused_update_changes_nothing(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        before = (await hub.connectors.get("a")).connector
        wrong: list[dict[str, Any]] = [{"url": "ftp://x"}, {"request_timeout": -1}, {"no_such_field": 1}]
        for changes in wrong:
            with pytest.raises(CallerFault):
                await hub.connectors.update("a", **changes)
            assert (await hub.connectors.get("a")).connector == before
        assert (await hub.call("mcp_a_echo", {"text": "x"})).ok


async def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig) as caught:
            await hub.connectors.add("a", **stdio(), **QUICK, cwd=str(tmp_path / "nowhere"))
        assert "nowhere" in caught.value.message
        assert caught.value.hint
        assert await is_untouched(hub)


async def test_an_unknown_handle_is_not_found(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(NotFound):
            await hub.result("no-such-handle")
