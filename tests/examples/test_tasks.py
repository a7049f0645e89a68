"""The sample tasks service, through the hub."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from servers.hubs import open_hub, quick
from servers.samples import add_every_sample, open_tasks, sample

pytestmark = pytest.mark.anyio


async def called(hub: Hub, tool: str, **arguments: Any) -> Any:
    output = await hub.call(f"mcp_tasks_{tool}", arguments)
    assert output.ok, output.error
    return output.result


async def test_tasks_of_this_week_are_found_by_person_and_day(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    monday = today - timedelta(days=today.weekday())
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tasks", **sample("tasks", tmp_path))
        week = {"due_after": monday.isoformat(), "due_before": (monday + timedelta(days=7)).isoformat()}
        mine = await called(hub, "list_tasks", assignee="me", **week)
        done = await called(hub, "list_tasks", status="done")
        everything = await called(hub, "list_tasks", status="all", limit=3)
        definitions = {tool.original_name: tool.definition for tool in hub.tools.list("tasks")}
    assert [task["title"] for task in mine["tasks"]] == [
        "Fill in the budget table",
        "Prepare the demo for Friday",
    ]
    assert [task["id"] for task in done["tasks"]] == [7]
    assert (everything["count"], everything["more"]) == (3, True)
    reading = {name for name, one in definitions.items() if one.annotations.read_only}
    assert reading == {"list_tasks", "get_task"}
    assert set(definitions) - reading == {"create_task", "update_task", "delete_task"}


@pytest.mark.slow
async def test_changes_outlive_a_kill_and_an_id_is_never_given_twice(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        async with open_tasks(tmp_path) as (url, process):
            await hub.connectors.add("tasks", kind="openapi", openapi=url, **quick())
            made = await called(hub, "create_task", title="Call Ken", assignee="@Mira", due="2026-03-04")
            changed = await called(hub, "update_task", id=made["id"], status="done", due=None)
            await called(hub, "delete_task", id=1)
            last = await called(hub, "create_task", title="Another")
            await called(hub, "delete_task", id=last["id"])
            process.kill()
            await process.wait()
        async with open_tasks(tmp_path) as (url, _):
            await hub.connectors.update("tasks", openapi=url)
            after = await called(hub, "get_task", id=made["id"])
            gone = await hub.call("mcp_tasks_get_task", {"id": 1})
            new = await called(hub, "create_task", title="Third")
    assert (made["id"], made["assignee"], made["due"]) == (8, "mira", "2026-03-04")
    assert after == changed == {**made, "status": "done", "due": None}
    assert gone.error is not None
    assert "there is no task 1" in gone.error.message
    assert (last["id"], new["id"]) == (9, 10)


async def test_all_four_samples_live_in_one_hub(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await add_every_sample(hub, tmp_path)
        tools = {tool.slug for tool in hub.tools.list()}
        mail = await hub.call("mcp_email_read-emails", {"limit": 2})
    assert {"email", "tracker", "chat", "tasks"} <= tools
    assert mail.result["count"] == 2
