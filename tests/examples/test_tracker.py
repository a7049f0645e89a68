"""The sample issue tracker, by the road."""

import json
import os
import signal
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman import Hub, ToolOutput
from servers.hubs import open_hub
from servers.samples import SERVERS, sample, sample_program

pytestmark = pytest.mark.anyio


async def called(hub: Hub, tool: str, **arguments: Any) -> Any:
    output = await hub.call(f"mcp_tracker_{tool}", arguments)
    assert output.ok, output.error
    return output.result


def links(output: ToolOutput) -> list[str]:
    return [block["uri"] for block in output.content if block["type"] == "resource_link"]


async def test_issues_of_a_repository_are_found_by_the_name_that_the_search_gives(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        found = await called(hub, "search_repositories", query="xyne")
        name = found["repositories"][0]["full_name"]
        listed = await hub.call("mcp_tracker_list_issues", {"repository": name, "assignee": "@octocat"})
        one = await called(hub, "get_issue", repository=name, number=12)
    assert (found["count"], found["repositories"][0]["open_issues"]) == (1, 4)
    assert [issue["number"] for issue in listed.result["issues"]] == [11, 12, 13]
    assert links(listed) == [f"tracker://lantern/xyne/issues/{number}" for number in (11, 12, 13)]
    assert "Safari" in one["title"]


async def test_every_filter_is_optional_and_all_must_hold(tmp_path: Path) -> None:
    monday = datetime.now(UTC).date()
    next_monday = (monday + timedelta(days=7 - monday.weekday())).isoformat()
    yesterday = (datetime.now(UTC) - timedelta(hours=24)).isoformat()
    asked: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"xyne/11", "xyne/12", "xyne/13", "xyne/14", "handbook/3", "handbook/4", "storefront/27"}),
        ({"assignee": "me", "due_before": next_monday}, {"xyne/11", "xyne/12", "handbook/3"}),
        ({"repository": "xyne", "state": "closed"}, {"xyne/15"}),
        ({"label": "bug", "since": yesterday}, {"xyne/11", "storefront/27"}),
        ({"text": "safari", "state": "all"}, {"xyne/12"}),
        ({"assignee": "nobody"}, set()),
    ]
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        for arguments, expected in asked:
            found = await called(hub, "list_issues", **arguments)
            names = {f"{one['repository'].split('/')[1]}/{one['number']}" for one in found["issues"]}
            assert names == expected, arguments
        few = await called(hub, "list_issues", limit=2)
    assert (few["count"], few["more"]) == (2, True)


@pytest.mark.slow
async def test_what_is_changed_outlives_a_kill_and_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tracker", **sample_program("tracker", data))
        made = await called(
            hub,
            "create_issue",
            repository="lantern/xyne",
            title="Export fails",
            labels=["Bug"],
            assignee="me",
        )
        await called(hub, "comment_issue", repository="xyne", number=made["number"], body="Seen in 4.2.1.")
        [server] = [
            one for one in psutil.Process().children() if str(SERVERS / "tracker_server.py") in one.cmdline()
        ]
        os.kill(server.pid, signal.SIGKILL)
        after_kill = await called(hub, "get_issue", repository="xyne", number=made["number"])
        closed = await called(hub, "close_issue", repository="xyne", number=made["number"])
        again = await called(
            hub, "close_issue", repository="xyne", number=made["number"], reason="not_planned"
        )
    async with open_hub(tmp_path / "home") as hub:
        after_restart = await called(hub, "get_issue", repository="xyne", number=made["number"])
    assert (made["number"], made["assignee"], made["labels"]) == (16, "octocat", ["bug"])
    assert [comment["body"] for comment in after_kill["comments"]] == ["Seen in 4.2.1."]
    assert closed == again == after_restart
    assert (closed["state"], closed["closed_as"]) == ("closed", "completed")


async def test_what_does_not_exist_is_an_error_that_says_what_there_is(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        wrong = [
            await hub.call("mcp_tracker_list_issues", {"repository": "lantern/xine"}),
            await hub.call("mcp_tracker_get_issue", {"repository": "xyne", "number": 99}),
            await hub.call("mcp_tracker_list_issues", {"since": "yesterday"}),
            await hub.call("mcp_tracker_create_issue", {"repository": "xyne", "title": ""}),
        ]
    messages = [output.error.message for output in wrong if output.error]
    assert "there is lantern/xyne" in messages[0]
    assert "no issue 99" in messages[1]
    assert "'yesterday' is neither a date" in messages[2]
    assert len(messages) == 4
    assert date.fromisoformat(json.loads((tmp_path / "tracker.json").read_text())["issues"][0]["due"])


async def test_the_tools_say_what_they_change(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        definitions = {tool.original_name: tool.definition for tool in hub.tools.list("tracker")}
    reading = {name for name, one in definitions.items() if one.annotations.read_only}
    assert reading == {"search_repositories", "list_issues", "get_issue"}
    assert set(definitions) - reading == {"create_issue", "comment_issue", "close_issue"}
    assert not any(one.annotations.destructive for one in definitions.values())
    assert definitions["close_issue"].annotations.idempotent
    assert not definitions["create_issue"].annotations.idempotent
    assert all(one.output_schema and one.description and one.title for one in definitions.values())
    assert "required" not in definitions["list_issues"].input_schema
    assert definitions["create_issue"].input_schema["required"] == ["repository", "title"]
