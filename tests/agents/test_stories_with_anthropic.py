"""The stories that are hardest on a protocol, in Anthropic's: chains, calls at once, questions."""

from pathlib import Path

import pytest
from test_stories import add_mail, answering, called, sent

from servers.samples import add_every_sample, sample
from servers.scripted_hubs import CLAUDE, open_scripted

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_a_chain_over_two_connectors(tmp_path: Path) -> None:
    async with open_scripted(tmp_path / "home", "stories", model=CLAUDE) as (hub, _):
        for name in ("tracker", "chat"):
            await hub.connectors.add(name, **sample(name, tmp_path))
        async with answering(hub) as shown:
            run = await hub.ask("create an issue for the bug in the latest chat message from @oncall")
        assert run.answer == "Filed as 16.", run.error
        ((tool, arguments),) = shown
        assert (tool, arguments["title"][:17]) == ("mcp_tracker_create_issue", "Bug in xyne 4.2.1")
        assert (run.model, run.usage.requests, run.usage.calls) == (CLAUDE, 3, 2)
        assert run.usage.cost > 0


async def test_two_connectors_at_once(tmp_path: Path) -> None:
    async with open_scripted(tmp_path / "home", "stories", model=CLAUDE) as (hub, _):
        await add_every_sample(hub, tmp_path)
        run = await hub.ask("tasks and issues assigned to me this week")
        assert run.status == "done", run.error
        assert run.answer is not None
        assert "A task:" in run.answer
        assert "An issue:" in run.answer
        assert "[c99]" not in run.answer
        assert run.usage.requests == 6


async def test_a_missing_value_a_batch_and_what_was_read_before(tmp_path: Path) -> None:
    async with open_scripted(tmp_path / "home", "stories", model=CLAUDE) as (hub, _):
        await add_mail(hub, tmp_path)
        run = await hub.ask("check my 2 latest emails")
        assert await called(hub, run) == [("mcp_email-mcp_read-emails", {"limit": 2})]
        assert run.answer == "The latest is about Re: Budget table."
        async with answering(hub, question="ann@example.com"):
            for text, answer in (
                ("send a test email", "Sent."),
                ("invite ann and bob and cleo", "All three are invited."),
            ):
                assert (await hub.ask(text, thread=run.thread)).answer == answer
        assert len(sent(tmp_path)) == 4
