"""Resources and prompts by REST: the same names and limits."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from live import open_service

from dragoman.errors import LimitReached
from dragoman.scope import LOCAL_CALLER
from patience import deadline, until
from servers.hubs import quick, runtime_of
from servers.library_server import BIG, open_library
from servers.processes import stdio


@pytest.mark.anyio
async def test_resources_and_prompts_over_rest(tmp_path: Path) -> None:
    async with open_library() as library, open_library() as broken, open_service(tmp_path) as live:
        await live.hub.connectors.add("books", **quick(url=library.url, transport="http"))
        await live.hub.connectors.add("broken", **quick(url=broken.url, transport="http"))
        broken.refuses = "resources/list"
        listed = (await live.ask("GET", "/api/resources")).value
        assert [one["uri"] for one in listed["resources"]] == [
            f"books+book:///{name}" for name in ("one", "big", "echo")
        ]
        [missing] = listed["missing"]
        assert (missing["connector"], missing["code"]) == ("broken", "tool_failed")
        templates = (await live.ask("GET", "/api/resources/templates?connector=books")).value["templates"]
        assert [one["uri_template"] for one in templates] == ["books+book:///{title}"]
        reading = f"/api/resources/read?uri={quote('books+book:///one', safe='')}"
        text, blob = (await live.ask("GET", reading)).value["contents"]
        assert (text["text"], text["blob"], base64.b64decode(blob["blob"])) == ("one", None, b"\0\1\2")
        big = (await live.ask("GET", f"/api/resources/read?uri={quote('books+book:///big', safe='')}")).value
        assert (big["truncated"], big["size"]) == (True, len(BIG.encode()))
        assert (await live.ask("GET", f"/api/results/{big['handle']}")).body.decode() == BIG

        [prompt, _] = (await live.ask("GET", "/api/prompts")).value["prompts"]
        assert (prompt["name"], [one["name"] for one in prompt["arguments"]]) == ("books__review", ["topic"])
        filled = await live.ask("POST", "/api/prompts/books__review", {"arguments": {"topic": "tea"}})
        assert filled.value["messages"] == [
            {"role": "user", "content": {"type": "text", "text": "Write about tea."}}
        ]
        begun = {"argument": "topic", "value": "t", "given": {"other": "x"}}
        for path, named in (
            ("/api/prompts/complete", {"name": "books__review"}),
            ("/api/resources/complete", {"uri_template": "books+book:///{title}"}),
        ):
            assert (await live.ask("POST", path, {**named, **begun})).value == {"values": ["tea"]}
            elsewhere = {key: value.replace("books", "none") for key, value in named.items()}
            assert (await live.ask("POST", path, {**elsewhere, **begun})).status == 404
        unknown = await live.ask("POST", "/api/prompts/none__review", {})
        assert (unknown.status, unknown.value["code"]) == (404, "not_found")
        assert unknown.value["hint"] == "GET /api/prompts shows those there are"
        wrong = await live.ask("POST", "/api/prompts/books__review", {"arguments": {"topic": 7}})
        assert wrong.status == 422

        # To look is to ask a server: a key that may only read what is known here may not.
        _, key = await live.hub.people.add_key("reader", scopes=["read"])
        for path in ("/api/resources", "/api/prompts", reading):
            refused = await live.ask("GET", path, Authorization=f"Bearer {key}")
            assert (refused.status, "scope 'call'" in refused.value["detail"]) == (403, True)
        # A key for one tool has nothing else of its connector.
        _, key = await live.hub.people.add_key("tool", scopes=["call"], capabilities=["mcp_books_lend"])
        assert (await live.ask("GET", "/api/resources", Authorization=f"Bearer {key}")).value == {
            "resources": [],
            "missing": [],
        }
        assert (await live.ask("GET", reading, Authorization=f"Bearer {key}")).status == 404


async def told(stream: aiohttp.ClientResponse) -> tuple[str, dict[str, Any]]:
    """The next event, comments aside."""
    kind = ""
    while line := await stream.content.readline():
        if line.startswith(b"event: "):
            kind = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            return kind, json.loads(line[6:])
    raise EOFError


@pytest.mark.anyio
async def test_changes_of_resources_are_told_over_rest(tmp_path: Path) -> None:
    async with open_library() as library, open_service(tmp_path) as live, deadline(30):
        await live.hub.connectors.add("books", **quick(url=library.url, transport="http"))
        await live.hub.connectors.add("mute", **quick(**stdio()))
        shared = ("books+book:///one", "ui://books+page")

        def path(*uris: str) -> str:
            return "/api/resources/updates?" + "&".join(f"uri={quote(uri, safe='')}" for uri in uris)

        # Whatever cannot be watched is a problem, before anything is asked of any server.
        before = [*library.asked]
        none = await live.ask("GET", path("none+book:///one"))
        assert (none.status, none.value["hint"]) == (404, "GET /api/resources shows those there are")
        for wrong, status in ((path("mute+x:///y"), 404), (path(), 422), (path(*["a+b:///c"] * 101), 422)):
            assert (await live.ask("GET", wrong)).status == status, wrong
        _, reader = await live.hub.people.add_key("reader", scopes=["read"])
        _, lender = await live.hub.people.add_key("tool", scopes=["call"], capabilities=["mcp_books_lend"])
        for word, status in ((reader, 403), (lender, 404)):
            refused = await live.ask("GET", path(*shared), Authorization=f"Bearer {word}")
            assert refused.status == status
        assert library.asked == before

        headers = {"Authorization": f"Bearer {live.token}"}
        async with live.session.get(live.url + path(*shared), headers=headers) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            assert library.asked.count("resources/subscribe") == 2  # as soon as there is an answer
            await until(lambda: bool(library.streams))
            for uri in ("book:///other", "book:///one", "ui://page"):
                await library.tell(uri)
            assert await told(stream) == (
                "resource.updated",
                {"uri": shared[0], "connector": "books", "original_uri": "book:///one"},
            )
            assert (await told(stream))[1]["uri"] == shared[1]
        await until(lambda: library.asked.count("resources/unsubscribe") == 2)

        # Each is asked of a server, so a user has only so many of them, through all doors together.
        ends: list[Callable[[], None]] = []
        with pytest.raises(LimitReached):
            while True:
                ends.append(runtime_of(live.hub).watched.take(LOCAL_CALLER))
        over = await live.ask("GET", path(*shared))
        assert (over.status, over.value["code"]) == (429, "limit_reached")
        for end in ends:
            end()
        async with live.session.get(live.url + path(*shared), headers=headers) as stream:
            assert stream.status == 200
