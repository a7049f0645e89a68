"""A bundle as an OpenAPI document: its tools as operations, with the rights and by the road of every call."""

from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from servers.processes import stdio

pytestmark = pytest.mark.anyio
SAY = {"tool": "box__echo", "name": "say", "parameters": {"text": {"name": "words"}}}
GREET = {"tool": "box__send", "name": "greet", "parameters": {"text": {"value": "fixed words"}}}


async def test_a_bundle_is_an_openapi_document_whose_operations_take_the_road(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("box", shared=True, approval="never", **stdio())
        await live.hub.bundles.create("talk", [SAY, GREET, "box__fail"], title="Talk")
        document: Any = (await live.ask("GET", "/openapi/talk.json")).value
        assert (document["openapi"], document["info"]["title"]) == ("3.1.0", "Talk")
        assert {*document["paths"]} == {f"/openapi/talk/{name}" for name in ("say", "greet", "mcp_box_fail")}
        assert "fixed words" not in str(document)
        say = document["paths"]["/openapi/talk/say"]["post"]
        assert say["operationId"] == "say"
        assert document["components"]["schemas"]["say.arguments"]["required"] == ["words"]
        said = await live.ask("POST", "/openapi/talk/say", {"words": "hi"})
        assert (said.status, said.value) == (200, "hi")
        for path, body, status, code in (
            ("talk/say", {"text": "x"}, 422, "invalid_arguments"),
            ("talk/mcp_box_echo", {"text": "x"}, 404, "not_found"),
            ("talk/mcp_box_fail", {"text": "on purpose"}, 502, "tool_failed"),
            ("none/say", {"words": "x"}, 404, "not_found"),
            ("talk/say", ["x"], 422, "invalid_request"),
        ):
            reply = await live.ask("POST", f"/openapi/{path}", body)
            assert (reply.status, reply.value["code"]) == (status, code), path
        calls = {(record.tool, record.ok) for record in await live.hub.calls()}
        assert {("mcp_box_echo", True), ("mcp_box_fail", False)} <= calls
        assert (await live.ask("GET", "/openapi/none.json")).status == 404


async def test_a_key_sees_and_calls_in_the_document_what_it_may(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("box", shared=True, approval="never", **stdio())
        await live.hub.bundles.create("talk", [SAY, GREET])
        words = ["bundle:me/talk", "read_only"]
        _, reader = await live.hub.people.add_key("reader", capabilities=words, scopes=["read"])
        _, caller = await live.hub.people.add_key("caller", capabilities=words[:1], scopes=["read", "call"])
        look, use = {"Authorization": f"Bearer {reader}"}, {"Authorization": f"Bearer {caller}"}
        shown = await live.ask("GET", "/openapi/talk.json", **look)
        assert [*shown.value["paths"]] == ["/openapi/talk/say"]
        assert (await live.ask("POST", "/openapi/talk/say", {"words": "x"}, **look)).status == 403
        said = await live.ask("POST", "/openapi/talk/say", {"words": "x"}, **use)
        assert (said.status, said.value) == (200, "x")
        # A key of a bundle has its tools by REST under the names of the bundle, and none else.
        tools = (await live.ask("GET", "/api/tools", **use)).value["tools"]
        assert [one["name"] for one in tools] == ["greet", "say"]
        call = {"tool": "mcp_box_echo", "arguments": {"text": "x"}}
        output = (await live.ask("POST", "/api/call", call, **use)).value
        assert output["error"]["code"] == "not_found"
        for path in ("/api/bundles/talk", "/api/bundles", "/api/tools/greet"):
            reply = await live.ask("GET", path, **use)
            assert (reply.status, b"fixed words" in reply.body) == (200, False), path
