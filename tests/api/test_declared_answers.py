"""What the REST door answers is what its OpenAPI document declares: nothing less, and nothing more."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from live import Live, open_service

from servers.hubs import QUICK
from servers.processes import stdio

pytestmark = pytest.mark.anyio
STREAMS = ("/api/events",)


async def document(live: Live) -> dict[str, Any]:
    return (await live.ask("GET", "/api/openapi.json")).value


def answer_schema(document: dict[str, Any], path: str, method: str) -> dict[str, Any]:
    """The schema of the answer, closed: a field that it does not declare is a fault."""
    answers = document["paths"][path][method]["responses"]
    schema = next(answers[status] for status in ("200", "201") if status in answers)
    components = {
        name: {"additionalProperties": False, **one} if "properties" in one else one
        for name, one in document["components"]["schemas"].items()
    }
    return {**schema["content"]["application/json"]["schema"], "components": {"schemas": components}}


def check(document: dict[str, Any], path: str, method: str, value: Any) -> None:
    validator = jsonschema_rs.Draft202012Validator(answer_schema(document, path, method))
    faults = [
        f"{'/'.join(map(str, fault.instance_path))}: {fault.message}"
        for fault in validator.iter_errors(value)
    ]
    assert not faults, (path, faults)


async def test_every_list_is_as_declared(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        await live.call("mcp_raw_environment")
        await live.hub.threads.create(id="talk", connectors=["raw"])
        await live.hub.agents.create("helper", connectors=["raw"])
        declared = await document(live)
        looked_at = 0
        for path, methods in declared["paths"].items():
            has_answer = "application/json" in methods.get("get", {}).get("responses", {}).get("200", {}).get(
                "content", {}
            )
            if "{" in path or path in STREAMS or not has_answer or not path.startswith("/api/"):
                continue
            reply = await live.ask("GET", path + ("?q=environment" if path.endswith("search") else ""))
            if reply.status == 200 and reply.headers["Content-Type"].startswith("application/json"):
                check(declared, path, "get", reply.value)
                looked_at += 1
        assert looked_at >= 15
        for path, real in {
            "/api/connectors/{slug}": "/api/connectors/raw",
            "/api/tools/{name}": "/api/tools/mcp_raw_environment",
            "/api/threads/{thread}": "/api/threads/talk",
            "/api/threads/{thread}/tools": "/api/threads/talk/tools",
            "/api/agents/{name}": "/api/agents/helper",
        }.items():
            check(declared, path, "get", (await live.ask("GET", real)).value)


async def test_a_call_answers_as_declared_whether_it_worked_or_not(tmp_path: Path) -> None:
    """Its bytes are written without a model, so they are held against it here."""
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        declared = await document(live)
        for tool in ("mcp_raw_environment", "mcp_raw_nothing"):
            check(declared, "/api/call", "post", await live.call(tool))


async def test_the_request_of_a_call_declares_every_field_that_is_read(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        declared = await document(live)
        schema = declared["paths"]["/api/call"]["post"]["requestBody"]["content"]["application/json"][
            "schema"
        ]
        for field, value in {
            "tool": "no_such_tool",
            "arguments": {},
            "timeout": 5,
            "thread": "talk",
            "agent": "helper",
            "tools": [],
            "cost_limit": 1,
        }.items():
            assert field in schema["properties"]
            reply = await live.ask("POST", "/api/call", {"tool": "no_such_tool", field: value})
            assert reply.status == 200, reply.body
        reply = await live.ask("POST", "/api/call", {"tool": "no_such_tool", "other": 1})
        assert reply.status >= 400
