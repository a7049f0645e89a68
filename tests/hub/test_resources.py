"""Resources and prompts as a program has them, with the gate, limits, rights and trail of calls."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ApprovalRefused, DragomanError, LimitReached, NotFound, ToolFailed, Unreachable
from dragoman.scope import LOCAL_CALLER, Caller
from patience import deadline, give_time, until
from servers.hubs import open_hub, quick
from servers.library_server import BIG, Library, open_library

pytestmark = pytest.mark.anyio


def connector(library: Library, **changes: Any) -> dict[str, Any]:
    return quick(url=library.url, transport="http", **changes)


async def test_a_program_lists_reads_gets_and_completes_by_names_that_no_two_servers_share(
    tmp_path: Path,
) -> None:
    async with open_library() as library, open_library() as other, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library))
        await hub.connectors.add("more", **connector(other))
        listed = await hub.resources.list()
        assert [one.uri for one in listed] == [
            f"{slug}+book:///{name}" for slug in ("books", "more") for name in ("one", "big", "echo")
        ]
        assert (listed[0].connector, listed[0].original_uri, listed[0].name) == (
            "books",
            "book:///one",
            "one",
        )
        assert [one.uri_template for one in await hub.resources.templates("more")] == ["more+book:///{title}"]
        read = await hub.resources.read("more+book:///one")
        assert [(one.uri, one.text, one.blob) for one in read.contents] == [
            ("more+book:///one", "one", None),
            ("more+book:///one", None, b"\x00\x01\x02"),
        ]
        assert (read.text, read.truncated, read.handle) == ("one", False, None)
        [prompt] = await hub.prompts.list("books")
        assert (prompt.name, prompt.arguments[0].name, prompt.arguments[0].required) == (
            *("books__review", "topic"),
            True,
        )
        filled = await hub.prompts.get("books__review", {"topic": "tea"})
        assert [(one.role, one.text) for one in filled.messages] == [("user", "Write about tea.")]
        assert await hub.prompts.complete("books__review", "topic", "t") == ["tea"]
        assert await hub.resources.complete("books+book:///{title}", "title", "p") == ["pea"]
        with pytest.raises(NotFound, match="Resource not found"):
            await hub.resources.read("books+book:///none")
        for unknown in ("none+book:///one", "book:///one"):
            with pytest.raises(NotFound) as caught:
                await hub.resources.read(unknown)
            assert caught.value.hint == "hub.resources.list() shows those there are"


async def test_a_server_that_does_not_answer_is_missing_from_the_list_of_all(tmp_path: Path) -> None:
    async with open_library() as library, open_library() as broken, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library))
        await hub.connectors.add("broken", **connector(broken))
        broken.refuses = "prompts/list"
        listed = await hub.prompts.list()
        assert [one.name for one in listed] == ["books__review"]
        assert [*listed.missing] == ["broken"]
        assert isinstance(listed.missing["broken"], ToolFailed)
        with pytest.raises(ToolFailed, match="out of order"):
            await hub.prompts.list("broken")


async def test_requests_and_calls_of_a_connector_share_its_places(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library, max_concurrency=1))
        library.most_at_once = 0
        library.gate.clear()
        before = len(library.asked)
        async with deadline(20), asyncio.TaskGroup() as tasks:
            waiting = [
                tasks.create_task(hub.resources.read("books+book:///one")),
                tasks.create_task(hub.call("mcp_books_lend", {})),
                tasks.create_task(hub.prompts.get("books__review", {"topic": "tea"})),
                tasks.create_task(hub.prompts.complete("books__review", "topic", "t")),
                tasks.create_task(hub.resources.list("books")),
            ]
            await until(lambda: len(library.asked) > before)
            await give_time(0.3)
            library.gate.set()
            await asyncio.wait(waiting)
        assert library.most_at_once == 1


async def test_what_is_too_large_is_cut_and_its_whole_is_kept(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library))
        read = await hub.resources.read("books+book:///big")
        assert (read.truncated, read.size) == (True, len(BIG.encode()))
        assert len(read.text.encode()) < 257 * 1024
        assert read.text.startswith("ä word")
        assert f"kept as {read.handle}" in read.text
        assert (await hub.result(str(read.handle))).body.decode() == BIG
        # A page for the client's screen is no text for a model.
        assert (await hub.resources.read("books+ui://big")).text == BIG
        with pytest.raises(LimitReached, match="262,144 bytes") as caught:
            await hub.prompts.get("books__review", {"topic": "all"})
        assert not caught.value.retryable
        assert "raise max_result_bytes" in str(caught.value.hint)


async def test_who_may_not_use_the_whole_connector_finds_nothing_of_it(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library, shared=True))
        one_tool = Caller(role="operator", grants=(frozenset({"mcp_books_lend"}),))
        elsewhere = Caller(workspace="elsewhere", user="eve")
        before = [*library.asked]
        for stranger in (hub.acting_for(one_tool), hub.acting_for(elsewhere)):
            assert await stranger.resources.list() == []
            assert await stranger.prompts.list() == []
            for refused in (
                stranger.resources.read("books+book:///one"),
                stranger.prompts.get("books__review"),
                stranger.prompts.complete("books__review", "topic", "t"),
                stranger.resources.list("books"),
                anext(stranger.resources.updates("books+book:///one")),
            ):
                with pytest.raises(NotFound):
                    await refused
        with pytest.raises(NotFound):
            await hub.server_requests.ask("books", "tools/call", {"name": "lend", "arguments": {}})
        assert library.asked == before
        thread = await hub.threads.create(connectors=[])
        within = hub.acting_for(Caller(role="operator", thread=thread.thread.id))
        assert await within.resources.list() == []
        await hub.connectors.disable("books")
        assert await hub.resources.list() == []


async def test_reading_needs_the_yes_of_a_person_where_every_call_does(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library, approval="always"))
        agent = hub.acting_for(LOCAL_CALLER.as_agent("reader"))
        for answer in ("once", "no"):
            reading = asyncio.ensure_future(agent.resources.read("books+book:///one"))

            async def is_asked() -> bool:
                return bool(await hub.approvals.list())

            await until(is_asked)
            assert "resources/read" not in library.asked[-1:]
            [asked] = await hub.approvals.list()
            assert (asked.approval.binding.tool, asked.asked.arguments) == (
                "books: resources/read",
                {"uri": "book:///one"},
            )
            await hub.approvals.answer(asked.approval.id, answer)
            async with deadline(10):
                if answer == "once":
                    assert (await reading).text == "one"
                    library.asked.clear()
                else:
                    with pytest.raises(ApprovalRefused):
                        await reading
        assert "resources/read" not in library.asked


async def test_secrets_limits_and_the_trail_are_those_of_calls(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        secret = "s3cr3t-of-the-library"
        await hub.connectors.add("books", **connector(library, bearer=secret, calls_per_minute=3))
        echoed = await hub.resources.read("books+book:///echo")
        assert secret not in echoed.text
        assert echoed.text.startswith("you said")
        await hub.prompts.get("books__review", {"topic": "tea"})
        await hub.prompts.complete("books__review", "topic", "t")
        with pytest.raises(LimitReached) as refused:
            await hub.resources.read("books+book:///one")
        assert refused.value.retry_after
        assert await hub.resources.list("books")  # a list is nobody's call

        async def trail() -> list[tuple[str, str]]:
            return [(one.subject, one.outcome) for one in await hub.audit.list() if "books: " in one.subject]

        async def is_written() -> bool:
            return len(await trail()) >= 3

        await until(is_written)
        assert [*reversed(await trail())] == [
            ("books: resources/read", "ok"),
            ("books: prompts/get review", "ok"),
            ("books: resources/read", "limit_reached"),
        ]


async def test_a_program_hears_when_a_resource_changes(tmp_path: Path) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub, deadline(20):
        await hub.connectors.add("books", **connector(library))
        async with aclosing(hub.resources.updates("books+book:///one")) as updates:
            upcoming = asyncio.ensure_future(anext(updates))
            await until(lambda: "resources/subscribe" in library.asked and bool(library.streams))
            await library.tell("book:///other")
            await library.tell("book:///one")
            assert await upcoming == "books+book:///one"
        await until(lambda: "resources/unsubscribe" in library.asked)


async def test_a_connector_that_was_disconnected_on_purpose_is_not_connected_by_reading(
    tmp_path: Path,
) -> None:
    async with open_library() as library, open_hub(tmp_path) as hub:
        await hub.connectors.add("books", **connector(library, auto_reconnect=False))
        await hub.connectors.disconnect("books")
        before = [*library.asked]
        with pytest.raises(Unreachable, match="was disconnected"):
            await hub.resources.read("books+book:///one")
        with pytest.raises(DragomanError):
            await anext(hub.resources.updates("books+book:///one"))
        assert library.asked == before
