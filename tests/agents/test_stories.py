"""What people write and what must happen, with a scripted language model over real HTTP and the samples."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.run import Run, RunEvent
from servers.samples import add_every_sample, sample
from servers.scripted_hubs import open_scripted
from servers.scripted_models import ScriptedServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@asynccontextmanager
async def story(tmp_path: Path, database_url: str) -> AsyncGenerator[tuple[Hub, ScriptedServer]]:
    async with open_scripted(tmp_path / "home", "stories", database_url=database_url) as (hub, server):
        yield hub, server


async def add_mail(hub: Hub, tmp_path: Path) -> None:
    await hub.connectors.add("email_mcp", description="the mailbox", **sample("email", tmp_path))


def sent(tmp_path: Path) -> list[dict[str, Any]]:
    """What lies in the mailbox on disk as sent."""
    box = tmp_path / "mailbox.json"
    if not box.exists():
        return []
    return [mail for mail in json.loads(box.read_text())["messages"] if mail["folder"] == "sent"]


async def told(hub: Hub, run: Run) -> list[RunEvent]:
    return [*(await hub.runs.view(run.id)).events]


async def called(hub: Hub, run: Run) -> list[tuple[str, Any]]:
    started = [event.data for event in await told(hub, run) if event.kind == "call.started"]
    return [(data["tool"], data["arguments"]) for data in started]


@asynccontextmanager
async def answering(hub: Hub, answer: str = "once", question: str = "") -> AsyncGenerator[list[Any]]:
    """A person who says yes to what is asked, and answers questions; what they were shown."""
    shown: list[Any] = []

    async def watch() -> None:
        while True:
            for one in await hub.approvals.list():
                shown.append((one.approval.binding.tool, dict(one.asked.arguments)))
                await hub.approvals.answer(one.approval.id, answer)
            for one in await hub.runs.questions():
                shown.append(("question", one.text))
                fields = (one.fields or {}).get("properties", {})
                await hub.runs.answer(one.id, {name: [question] for name in fields} or question)
            await asyncio.sleep(0.05)

    task = asyncio.ensure_future(watch())
    try:
        yield shown
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_connector_search_then_list(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        run = await hub.ask("open issues assigned to @octocat in repository xyne")
        assert (run.status, run.agent, run.answer) == (
            "done",
            "assistant",
            "The first open one is number 11.",
        )
        (first, _), (second, arguments) = await called(hub, run)
        assert (first, second) == ("mcp_tracker_search_repositories", "mcp_tracker_list_issues")
        assert arguments["repository"] == "lantern/xyne"


async def test_two_connectors_at_once_and_every_citation_resolves(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_every_sample(hub, tmp_path)
        run = await hub.ask("tasks and issues assigned to me this week")
        assert run.status == "done", run.error
        assert run.answer is not None
        assert "A task:" in run.answer
        assert "An issue:" in run.answer
        assert "[c99]" not in run.answer
        family = (await hub.runs.view(run.id)).family
        assert sorted(child.agent for child in family if child.parent) == ["tasks", "tracker"]
        assert run.usage.requests == 6
        starts = [event for event in await told(hub, run) if event.kind == "run.started"]
        first_end = next(event for event in await told(hub, run) if event.kind == "run.finished")
        assert all(start.number < first_end.number for start in starts), (
            "one after the other, not in parallel"
        )


async def test_a_chain_takes_its_argument_from_the_first_result(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        for name in ("tracker", "chat"):
            await hub.connectors.add(name, **sample(name, tmp_path))
        async with answering(hub) as shown:
            run = await hub.ask("create an issue for the bug in the latest chat message from @oncall")
        assert run.answer == "Filed as 16."
        ((tool, arguments),) = shown
        assert tool == "mcp_tracker_create_issue"
        assert arguments["title"].startswith("Bug in xyne 4.2.1")


async def test_the_two_latest_emails_are_read_and_nothing_is_sent(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        run = await hub.ask("check my 2 latest emails")
        assert await called(hub, run) == [("mcp_email-mcp_read-emails", {"limit": 2})]
        assert run.answer == "The latest is about Re: Budget table."
        again = await hub.ask("look at my emails", thread=run.thread)
        assert await called(hub, again) == [("mcp_email-mcp_read-emails", {})]
        assert sent(tmp_path) == []


async def test_a_missing_value_becomes_a_question_and_sending_an_approval(
    tmp_path: Path, database_url: str
) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        async with answering(hub, question="ann@example.com") as shown:
            run = await hub.ask("send a test email")
        assert (run.status, run.answer) == ("done", "Sent.")
        assert shown[0][0] == "question"
        assert shown[1][1]["to"] == ["ann@example.com"]
        assert [mail["to"] for mail in sent(tmp_path)] == [["ann@example.com"]]


async def test_a_refusal_sends_nothing_and_the_model_is_told(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, server):
        await add_mail(hub, tmp_path)
        async with answering(hub, "no"):
            await hub.ask("check my emails and send a summary")
        assert sent(tmp_path) == []
        assert "a person said no" in json.dumps(server.requests[-1])


async def test_read_then_send_what_was_read(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        async with answering(hub):
            run = await hub.ask("check my emails and send a summary")
        assert run.answer == "The summary is sent."
        assert [mail["body"] for mail in sent(tmp_path)] == ["Latest: Re: Budget table"]


async def test_a_batch_to_three_people_is_asked_once_each_and_sent_once_each(
    tmp_path: Path, database_url: str
) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        async with answering(hub) as shown:
            run = await hub.ask("invite ann and bob and cleo")
        assert run.answer == "All three are invited."
        assert sorted(arguments["to"][0] for _, arguments in shown) == [
            "ann@example.com",
            "bob@example.com",
            "cleo@example.com",
        ]
        assert len(sent(tmp_path)) == 3


async def test_an_agent_is_made_used_deprived_and_given_again(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        async with answering(hub) as shown:  # what the connector says of itself has been heard
            made = await hub.ask("create an email agent with email_mcp tools")
        assert [what for what, _ in shown] == ["create_agent"]
        assert made.answer == "@mailer is there: write to @mailer with what you want."
        assert (await hub.agents.get("mailer")).connectors == ("email-mcp",)
        used = await hub.ask("@mailer how many emails are there?")
        assert (used.agent, used.answer) == ("mailer", "I see 3. Ask @assistant for more.")
        await hub.agents.unassign("mailer", "email_mcp")
        without = await hub.ask("@mailer how many emails are there?", thread=used.thread)
        assert without.answer == "I have no tool for that."
        async with answering(hub):
            given = await hub.ask("give mailer email access")
        assert given.answer == "mailer has email-mcp now."
        again = await hub.ask("@mailer how many emails are there?", thread=used.thread)
        assert again.answer == used.answer


async def test_a_delegation_is_seen_as_a_mention_and_its_answer_does_not_loop(
    tmp_path: Path, database_url: str
) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        await hub.agents.create("mailer", connectors=["email_mcp"])
        run = await hub.ask("have mailer look into the mailbox")
        said = [(one.author, one.agent, one.text) for one in await hub.messages.list(run.thread)]
        assert said == [
            ("person", None, "have mailer look into the mailbox"),
            ("agent", "assistant", "@mailer how many emails are there"),
            ("agent", "mailer", "I see 3. Ask @assistant for more."),
            ("agent", "assistant", "mailer says: I see 3. Ask @assistant for more."),
        ]
        assert len(await hub.runs.list(roots_only=True)) == 1


async def test_what_is_no_mention_routes_to_nobody_and_shows_nobody_typing(
    tmp_path: Path, database_url: str
) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await hub.agents.create("test")
        for text in ("who is test@example.com?", "who is @octocat?"):
            run = await hub.ask(text)
            assert (run.agent, run.status) == ("assistant", "done")
            events: Sequence[RunEvent] = await told(hub, run)
            assert {event.agent for event in events} == {"assistant"}


async def test_tools_are_listed_when_asked_for(tmp_path: Path, database_url: str) -> None:
    async with story(tmp_path, database_url) as (hub, _):
        await add_mail(hub, tmp_path)
        run = await hub.ask("what tools are available?")
        assert run.answer == "2 of 2"


async def test_a_message_to_an_unknown_or_stopped_agent_has_failed_with_a_hint(
    tmp_path: Path, database_url: str
) -> None:
    async with story(tmp_path, database_url) as (hub, server):
        await hub.agents.create("mailer")
        unknown = await hub.ask("@mialer who is there?")
        assert unknown.error is not None
        assert (unknown.status, unknown.error.code) == ("failed", "not_found")
        assert "did you mean 'mailer'?" in (unknown.error.hint or "")
        await hub.agents.stop("mailer")
        stopped = await hub.ask("@mailer who is there?", thread=unknown.thread)
        assert stopped.error is not None
        assert stopped.error.message == "@mailer is stopped"
        assert (await hub.messages.list(stopped.thread))[-1].text.startswith("@mailer is stopped.")
        assert server.requests == []
