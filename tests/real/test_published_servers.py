"""Servers that other people wrote and published: listed and called as they are."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from boxes.boxed import needs
from dragoman import Hub
from patience import patient
from real.conftest import CACHE
from servers.hubs import is_alive, until

CHROMIUM = "/usr/bin/chromium-headless-shell"
pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(180)]


async def added(hub: Hub, slug: str, downloads: dict[str, str], *command: str, **facts: Any) -> set[str]:
    """Adds the server once per module and returns the names of its tools."""
    if slug not in {view.connector.slug for view in await hub.connectors.list()}:
        facts["env"] = {**downloads, **facts.get("env", {})}
        facts["mounts"] = [f"{CACHE}:rw", *facts.get("mounts", ())]
        view = await hub.connectors.add(
            slug, command=command[0], args=list(command[1:]), connect_timeout=patient(150), **facts
        )
        assert view.status.state == "connected", (view.status.cause, view.status.stderr)
        assert view.catalog == "ready"
    return {tool.original_name for tool in hub.tools.list(slug)}


async def everything(hub: Hub, downloads: dict[str, str]) -> set[str]:
    return await added(hub, "everything", downloads, "npx", "-y", "@modelcontextprotocol/server-everything")


async def test_everything_is_listed_and_called(hub: Hub, downloads: dict[str, str]) -> None:
    assert {"echo", "get-sum", "get-tiny-image"} <= await everything(hub, downloads)
    output = await hub.call("mcp_everything_echo", {"message": "hello"})
    assert output.result == "Echo: hello", output.error
    output = await hub.call("mcp_everything_get-sum", {"a": 2, "b": 3})
    assert "5" in str(output.result), output.error


async def test_everything_answers_with_images_resources_and_structure(
    hub: Hub, downloads: dict[str, str]
) -> None:
    await everything(hub, downloads)
    output = await hub.call("mcp_everything_get-tiny-image", {})
    assert output.ok, output.error
    assert "image" in {block["type"] for block in output.content}
    output = await hub.call("mcp_everything_get-resource-links", {"count": 2})
    assert output.ok, output.error
    assert "resource_link" in {block["type"] for block in output.content}
    output = await hub.call("mcp_everything_get-structured-content", {"location": "New York"})
    assert output.ok, output.error
    assert "temperature" in output.result


async def test_everything_refuses_bad_arguments_before_they_leave(
    hub: Hub, downloads: dict[str, str]
) -> None:
    await everything(hub, downloads)
    output = await hub.call("mcp_everything_get-sum", {"a": "two", "b": 3})
    assert output.error is not None
    assert output.error.code == "invalid_arguments"


async def test_everything_runs_long_operations_beside_short_ones(hub: Hub, downloads: dict[str, str]) -> None:
    await everything(hub, downloads)
    long = asyncio.ensure_future(
        hub.call("mcp_everything_trigger-long-running-operation", {"duration": 1, "steps": 2})
    )
    outputs = await asyncio.gather(
        *(hub.call("mcp_everything_echo", {"message": f"number {number}"}) for number in range(20))
    )
    assert [output.result for output in outputs] == [f"Echo: number {number}" for number in range(20)]
    assert (await long).ok


async def test_the_filesystem_server_reads_writes_and_stays_in_its_directory(
    hub: Hub, downloads: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("files")
    command = ("npx", "-y", "@modelcontextprotocol/server-filesystem", str(root))
    assert {"read_text_file", "write_file", "list_directory"} <= await added(
        hub, "files", downloads, *command, mounts=[f"{root}:rw"]
    )
    file = root / "note.txt"
    output = await hub.call("mcp_files_write_file", {"path": str(file), "content": "caffè"})
    assert output.ok, output.error
    assert file.read_text() == "caffè"
    output = await hub.call("mcp_files_read_text_file", {"path": str(file)})
    assert "caffè" in str(output.result)
    output = await hub.call("mcp_files_read_text_file", {"path": "/etc/passwd"})
    assert output.error is not None
    assert output.error.code == "tool_failed"


async def test_the_memory_server_remembers(
    hub: Hub, downloads: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    memory = tmp_path_factory.mktemp("memory") / "memory.json"
    command = ("npx", "-y", "@modelcontextprotocol/server-memory")
    told = {"env": {"MEMORY_FILE_PATH": str(memory)}, "mounts": [f"{memory.parent}:rw"]}
    tools = await added(hub, "memory", downloads, *command, **told)
    assert {"create_entities", "read_graph", "search_nodes"} <= tools
    entity = {"name": "Dragoman", "entityType": "tool", "observations": ["speaks for you"]}
    output = await hub.call("mcp_memory_create_entities", {"entities": [entity]})
    assert output.ok, output.error
    output = await hub.call("mcp_memory_read_graph", {})
    assert output.result["entities"][0]["name"] == "Dragoman", output


async def test_the_time_server_tells_the_time_and_refuses_nonsense(
    hub: Hub, downloads: dict[str, str]
) -> None:
    tools = await added(hub, "time", downloads, "uvx", "mcp-server-time")
    assert tools == {"get_current_time", "convert_time"}
    output = await hub.call("mcp_time_get_current_time", {"timezone": "Europe/Rome"})
    assert output.ok, output.error
    assert output.result["timezone"] == "Europe/Rome"
    output = await hub.call("mcp_time_get_current_time", {"timezone": "Mars/Olympus"})
    assert output.error is not None
    assert output.error.code == "tool_failed"


async def test_the_git_server_reads_a_repository(hub: Hub, downloads: dict[str, str], tmp_path: Path) -> None:
    for words in (
        ["init", "-q", "-b", "main"],
        [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    command = ("uvx", "mcp-server-git")
    assert {"git_status", "git_log"} <= await added(hub, "git", downloads, *command, mounts=[str(tmp_path)])
    output = await hub.call("mcp_git_git_log", {"repo_path": str(tmp_path)})
    assert output.ok, output.error
    assert "first" in json.dumps(output.result)
    output = await hub.call("mcp_git_git_status", {"repo_path": str(tmp_path / "nowhere")})
    assert output.error is not None
    assert output.error.code == "tool_failed"


async def test_the_sqlite_server_writes_and_reads_rows(
    hub: Hub, downloads: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("sqlite") / "rows.db"
    command = ("uvx", "--with", "mcp<2", "mcp-server-sqlite", "--db-path", str(file))
    assert {"create_table", "read_query"} <= await added(
        hub, "sqlite", downloads, *command, mounts=[f"{file.parent}:rw"]
    )
    for tool, query in [
        ("create_table", "CREATE TABLE birds (name TEXT)"),
        ("write_query", "INSERT INTO birds VALUES ('swift')"),
    ]:
        output = await hub.call(f"mcp_sqlite_{tool}", {"query": query})
        assert output.ok, output.error
    output = await hub.call("mcp_sqlite_read_query", {"query": "SELECT name FROM birds"})
    assert "swift" in str(output.result), output.error


@pytest.mark.fault
async def test_a_published_server_killed_with_all_its_children_is_back_for_the_next_call(
    hub: Hub, downloads: dict[str, str]
) -> None:
    await added(hub, "time", downloads, "uvx", "mcp-server-time")
    await hub.connectors.connect("time")
    pid = (await hub.connectors.get("time")).status.pid
    assert pid is not None
    os.killpg(pid, signal.SIGKILL)
    output = await hub.call("mcp_time_get_current_time", {"timezone": "UTC"})
    assert output.ok, output.error
    await until(lambda: not is_alive(pid))


async def test_a_hundred_calls_over_all_of_them_have_no_error(hub: Hub, downloads: dict[str, str]) -> None:
    await everything(hub, downloads)
    await added(hub, "time", downloads, "uvx", "mcp-server-time")
    calls = [
        ("mcp_everything_echo", {"message": "hello"}),
        ("mcp_time_get_current_time", {"timezone": "Europe/Rome"}),
    ] * 50
    outputs = await asyncio.gather(*(hub.call(name, arguments) for name, arguments in calls))
    assert [output.error for output in outputs if not output.ok] == []


async def test_a_browser_works_in_its_box(hub: Hub, downloads: dict[str, str]) -> None:
    needs("bubblewrap")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"not on this machine: {CHROMIUM}")
    # A box has no namespaces to give: it is the sandbox.
    options = ("--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM)
    tools = await added(hub, "web", downloads, "npx", "-y", "@playwright/mcp", *options, approval="never")
    assert {"browser_navigate", "browser_snapshot"} <= tools
    view = await hub.connectors.get("web")
    assert view.box is not None
    assert view.box.mode != "none"
    page = "data:text/html,<title>boxed</title><h1>Hello</h1>"
    output = await hub.call("mcp_web_browser_navigate", {"url": page})
    assert "Page Title: boxed" in str(output.result), output.error
    output = await hub.call("mcp_web_browser_snapshot", {})
    assert 'heading "Hello"' in str(output.result), output.error
    assert (await hub.call("mcp_web_browser_close", {})).ok


async def test_a_first_start_fetches_what_it_runs_into_its_box(hub: Hub, tmp_path: Path) -> None:
    """From empty caches, of npx and of uvx at once."""
    needs("bubblewrap")
    uv = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--no-cache", "--no-deps"]
    for words in (
        ["npm", "view", "--prefer-online", "@modelcontextprotocol/server-memory", "version"],
        [*uv, "--target", str(tmp_path), "mcp-server-time"],
    ):
        asked = subprocess.run(words, capture_output=True, text=True, timeout=patient(30))
        if asked.returncode:
            pytest.skip(f"not on this machine: packages by {words[0]}: {asked.stderr[-300:]}")
    empty = {"npm_config_cache": "/tmp/npm", "UV_CACHE_DIR": "/tmp/uv"}
    fresh, timed = await asyncio.gather(
        *(
            hub.connectors.add(
                slug, command=words[0], args=words[1:], env=empty, connect_timeout=patient(150)
            )
            for slug, words in (
                ("fresh", ["npx", "-y", "@modelcontextprotocol/server-memory"]),
                ("timed", ["uvx", "mcp-server-time"]),
            )
        )
    )
    for view in (fresh, timed):
        assert view.status.state == "connected", (view.status.cause, view.status.stderr)
        assert view.box is not None
        assert view.box.mode != "none"
    assert (await hub.call("mcp_fresh_read_graph", {})).ok
    output = await hub.call("mcp_timed_get_current_time", {"timezone": "Europe/Rome"})
    assert "Europe/Rome" in str(output.result), output.error
