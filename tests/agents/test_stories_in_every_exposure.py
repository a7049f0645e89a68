"""The same jobs by whichever way tools are offered, with a model that decides from the offer."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallRecord, Hub
from dragoman.run import Run
from patience import patient
from servers.hubs import quick, until
from servers.processes import HttpProcess
from servers.rule_model import RuleModel
from servers.samples import add_every_sample
from servers.scenarios import Call, Reply, Turn
from servers.scripted_hubs import calls, is_of, open_scripted

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
EXPOSURES = ("direct", "search", "delegate", "code")
PEOPLE = ("ann@example.com", "bob@example.com", "cleo@example.com")
# What is written, and the tools that are called for it, in this order.
STORIES: dict[str, list[str]] = {
    "List the issues in xyne assigned to octocat": ["tracker_list_issues"],
    "Find the repositories of lantern, then list the open issues in xyne": [
        "tracker_search_repositories",
        "tracker_list_issues",
    ],
    "Read the chat messages from oncall, then create an issue in xyne titled with what it says": [
        "chat_read_messages",
        "tracker_create_issue",
    ],
    "Check my 2 latest emails": ["email_read-emails"],
    'Send an email to ann@example.com with subject "test" saying "hello"': ["email_send-email"],
    f"Check my 2 latest emails, then send an email to {PEOPLE[0]} saying a summary of them": [
        "email_read-emails",
        "email_send-email",
    ],
    f'Send an email to each of {", ".join(PEOPLE)} saying "you are invited"': ["email_send-email"] * 3,
}


# Neither half needs the other: two calls of one step, which begin in any order.
AT_ONCE = "Find the repositories of lantern, then list the open issues in xyne"


async def told(hub: Hub, text: str, exposure: str) -> Run:
    """The finished run of a person who says yes to all."""
    accepted = await hub.messages.post(text, options={"exposure": exposure})
    async for event in hub.runs.follow(accepted.run.id):
        if event.kind == "approval.requested":
            await hub.approvals.answer(event.data["approval"], "once")
    return await hub.runs.get(accepted.run.id)


def sent(folder: Path) -> list[str]:
    mails = json.loads((folder / "mailbox.json").read_text())["messages"]
    return [mail["body"] for mail in mails if mail["folder"] == "sent"]


async def _noted(hub: Hub, known: set[str], least: int) -> list[CallRecord]:
    """The calls that were made since; they are noted about a second late."""

    async def are_written() -> bool:
        return len([one for one in await hub.calls(20) if one.id not in known]) >= least

    await until(are_written, 10)
    return [one for one in await hub.calls(20) if one.id not in known]


@pytest.mark.parametrize("exposure", EXPOSURES)
async def test_a_job_is_done_once_and_in_its_order(tmp_path: Path, exposure: str) -> None:
    async with open_scripted(tmp_path / "home", RuleModel(), rollout_share=0.0) as (hub, _):
        await add_every_sample(hub, tmp_path)
        await hub.connectors.update("chat", description="messages in channels")
        await hub.connectors.update("tracker", description="issues of repositories")
        known: set[str] = set()
        for text, tools in STORIES.items():
            run = await told(hub, text, exposure)
            assert (run.status, run.exposure) == ("done", exposure), (text, run.error)
            new = await _noted(hub, known, len(tools))
            known |= {one.id for one in new}
            made = [one.tool.removeprefix("mcp_") for one in sorted(new, key=lambda one: one.started_at)]
            if text == AT_ONCE:
                made, tools = sorted(made), sorted(tools)
            assert made == tools, text
            assert [one.message for one in new if not one.ok] == [], text
        assert len(sent(tmp_path)) == 5
        assert sent(tmp_path).count("you are invited") == 3
        assert any("Re: Budget table" in body for body in sent(tmp_path)), "of what was read"
        titles = [one["title"] for one in json.loads((tmp_path / "tracker.json").read_text())["issues"]]
        assert len([one for one in titles if one.startswith("Bug in xyne 4.2.1")]) == 1


SIDES = ("left", "right")
CODE = "import asyncio\nawait asyncio.gather(left.meet(), right.meet())"


def meets(turn: Turn) -> Reply:
    """Has both at once, by the way that there is; then says what came."""
    side = next((one for one in SIDES if is_of(turn, one)), None)
    if turn.fresh and turn.fresh[-1].tool != "search_tools":
        return Reply(text=" ".join(str(one.value) for one in turn.fresh))
    if side is not None:
        return calls((f"mcp_{side}_meet", {}))
    if "query_mcp_connector" in turn.tools:
        query: list[tuple[str, dict[str, Any]]] = [
            ("query_mcp_connector", {"connector_id": one, "query": "meet"}) for one in SIDES
        ]
        return calls(*query)
    if "run_code" in turn.tools:
        return calls(("run_code", {"code": CODE}))
    if not turn.fresh and "search_tools" in turn.tools:
        return calls(("search_tools", {"query": "meet"}))
    return Reply(tool_calls=tuple(Call(f"mcp_{one}_meet", {}) for one in SIDES))


async def test_two_connectors_that_are_asked_in_one_step_are_at_work_at_once(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="meeting_server.py") as server:
        async with open_scripted(tmp_path / "home", meets, rollout_share=0.0) as (hub, _):
            for slug in SIDES:
                await hub.connectors.add(slug, url=server.url, **quick(request_timeout=patient(100)))
            for exposure in EXPOSURES:
                run = await hub.messages.ask("meet", options={"exposure": exposure})
                assert run.status == "done", (exposure, run.error)
                assert (run.answer or "").count("met the other") == 2, (exposure, run.answer)
