"""Calls that take long or wait for a person: what a client hears meanwhile, and that it never hangs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from doors import Door, open_door
from dragoman.mcp_endpoint import channels, streams
from dragoman.tool import Annotations
from patience import deadline, patient, until

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
# What turns text round in a name is shown as its code.
NOTE = {"name": "caf\u00e8", "count": 12345678901234567890, "trick": "a\u202eb"}


def forget(name: str, count: int, trick: str) -> str:
    """Forgets it."""
    return f"{name} is forgotten"


def with_a_tool_that_asks(door: Door) -> None:
    door.hub.add_tool(forget, annotations=Annotations(destructive=True))


def text_of(result: Any) -> str:
    return result.content[0].text


# A person is asked by the client


@ERAS
async def test_the_person_of_a_client_allows_one_call_with_its_exact_arguments_before_their_eyes(
    tmp_path: Path, mode: str
) -> None:
    asked: list[str] = []

    async def yes(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode=mode, elicitation_callback=yes) as client:
            assert text_of(await client.call_tool("forget", NOTE)) == "caf\u00e8 is forgotten"
            assert text_of(await client.call_tool("forget", NOTE)) == "caf\u00e8 is forgotten"
        assert len(asked) == 2, "a yes is for one call"
        assert asked[0].startswith("[dragoman] Allow this one call of forget?")
        assert '"name": "caf\u00e8",\n  "count": 12345678901234567890,\n  "trick": "a\\u202eb"' in asked[0]
        used = await door.hub.approvals.list("used")
        assert [one.approval.answer for one in used] == ["once", "once"]
        trail = [one for one in await door.hub.audit.list() if one.action == "approval.answered"]
        assert {one.details["by"] for one in trail} == {"elicitation"}


@ERAS
@pytest.mark.parametrize(
    ("action", "said", "status"),
    [("decline", "approval_refused", "refused"), ("cancel", "approval_pending", "pending")],
)
async def test_a_decline_is_a_no_and_a_question_that_is_closed_stays_open(
    tmp_path: Path, mode: str, action: Any, said: str, status: str
) -> None:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action=action)

    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode=mode, elicitation_callback=answer) as client:
            result = await client.call_tool("forget", NOTE)
        assert result.is_error
        assert text_of(result).startswith(said)
        (question,) = await door.hub.approvals.list(None)
        assert question.status == status


@ERAS
async def test_a_yes_in_the_console_goes_before_the_answer_of_the_client(tmp_path: Path, mode: str) -> None:
    async def answers_elsewhere(context: Any, params: Any) -> ElicitResult:
        (question,) = await door.hub.approvals.list()
        await door.hub.approvals.answer(question.approval.id, "once")
        if mode == "legacy":
            await asyncio.Event().wait()  # until it is told that nobody waits for its person any more
        return ElicitResult(action="decline")

    async with open_door(tmp_path) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode=mode, elicitation_callback=answers_elsewhere) as client, deadline(20):
            assert text_of(await client.call_tool("forget", NOTE)) == "caf\u00e8 is forgotten"


async def test_arguments_that_cannot_be_shown_whole_are_not_asked_for_by_the_client(tmp_path: Path) -> None:
    async def never(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("it was asked")

    async with open_door(tmp_path, approval_wait=0.1) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode="legacy", elicitation_callback=never) as client:
            result = await client.call_tool("forget", {**NOTE, "name": "x" * 30_000})
        assert text_of(result).startswith("approval_pending")


# Nobody can be asked by the client


@ERAS
async def test_a_call_that_waits_for_a_person_ends_in_time_with_the_question_and_where_it_is_answered(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert channels.LONGEST_WAIT == 45
    monkeypatch.setattr(channels, "LONGEST_WAIT", 0.2)
    async with open_door(tmp_path, door={"has_console": True}, approval_wait=600) as door:
        with_a_tool_that_asks(door)
        async with door.client(mode=mode) as client, deadline(20):
            result: Any = await client.call_tool("forget", NOTE)
        (question,) = await door.hub.approvals.list()
        link = f"{door.url}/approvals#{question.approval.id}"
        assert text_of(result).startswith("approval_pending")
        assert link in result.content[1].text
        facts = result.meta["dragoman/error"]
        assert (facts["approval"], facts["url"]) == (question.approval.id, link)


# Progress


@ERAS
async def test_a_client_that_wants_progress_hears_of_a_silent_call_every_few_seconds(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert streams.SAID_EVERY < 10
    monkeypatch.setattr(streams, "SAID_EVERY", 0.02)
    heard: list[float] = []
    enough = asyncio.Event()

    async def hears(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        if len(heard) == 4:
            enough.set()

    async def think() -> str:
        """Says nothing meanwhile."""
        await enough.wait()
        return "done"

    async with open_door(tmp_path) as door:
        door.hub.add_tool(think, annotations=Annotations(read_only=True))
        async with door.client(mode=mode) as client, deadline(20):
            assert text_of(await client.call_tool("think", {}, progress_callback=hears)) == "done"
    assert heard == sorted(set(heard)), "each is more than the last"


async def test_one_that_waits_for_a_person_hears_for_which_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SAID_EVERY", 0.02)
    told: list[str | None] = []

    async def hears(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with open_door(tmp_path, approval_wait=patient(20)) as door, asyncio.TaskGroup() as tasks:
        with_a_tool_that_asks(door)
        async with door.client(mode="legacy") as client, deadline(20):
            calling = tasks.create_task(client.call_tool("forget", NOTE, progress_callback=hears))
            await until(lambda: any("waits for a person" in (one or "") for one in told))
            (question,) = await door.hub.approvals.list()
            assert question.approval.id in str(told[-1])
            await door.hub.approvals.answer(question.approval.id, "once")
            assert text_of(await calling) == "caf\u00e8 is forgotten"
