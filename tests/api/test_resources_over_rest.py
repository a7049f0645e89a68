"""Resources and prompts by REST: the same names and limits."""

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
from live import open_service

from servers.hubs import quick
from servers.library_server import BIG, open_library


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
