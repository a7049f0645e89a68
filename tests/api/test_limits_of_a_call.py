"""What one call by REST says of itself limits it, whatever else its body holds."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from live import Live, open_service

from servers.hubs import QUICK
from servers.processes import stdio

pytestmark = pytest.mark.anyio
READS, WRITES = "mcp_raw_environment", "mcp_raw_count"
LIMITS: dict[str, Any] = {"thread": "bare", "agent": "helper", "tools": []}
BESIDE: dict[str, Any] = {"arguments": {}, "timeout": 5, "cost_limit": 1}


def every_choice(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """All subsets of the fields, from none to all of them."""
    return [
        {name: value for (name, value), is_in in zip(fields.items(), choice, strict=True) if is_in}
        for choice in product((False, True), repeat=len(fields))
    ]


async def called(live: Live, tool: str, body: dict[str, Any], form: str) -> str:
    """`ran`, or the code of the refusal."""
    path, body = (
        ("/api/call", {"tool": tool, **body}) if form == "body" else (f"/api/tools/{tool}/call", body)
    )
    reply = await live.ask("POST", path, body)
    assert reply.status == 200, reply.body
    return "ran" if reply.value["ok"] else reply.value["error"]["code"]


@pytest.mark.parametrize("form", ["body", "path"])
async def test_every_limit_holds_in_every_shape_of_body(tmp_path: Path, form: str) -> None:
    async with open_service(tmp_path, approval_wait=0.001) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        await live.hub.threads.create(id="bare", connectors=[])
        for tool, limits, beside in product((READS, WRITES), every_choice(LIMITS), every_choice(BESIDE)):
            expected = "ran"
            if "tools" in limits:
                expected = "not_found"
            elif "thread" in limits:
                expected = "denied"
            elif "agent" in limits and tool == WRITES:
                expected = "approval_pending"
            assert await called(live, tool, {**limits, **beside}, form) == expected, (tool, limits, beside)


async def test_a_limit_in_the_address_is_refused_and_never_dropped(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        for query in ("thread=bare", "agent=helper", "tools=", "user=ann"):
            for path, body in (("/api/call", {"tool": READS}), (f"/api/tools/{READS}/call", {})):
                reply = await live.ask("POST", f"{path}?{query}", body)
                assert (reply.status, reply.value["code"]) == (422, "invalid_request"), (path, query)
        assert (await live.ask("GET", "/api/tools?unheard_of=1")).status == 422
        assert (await live.ask("GET", "/health?from=a-balancer")).status == 200


@pytest.mark.parametrize("form", ["body", "path"])
async def test_a_limit_that_admits_the_tool_lets_it_run(tmp_path: Path, form: str) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        await live.hub.threads.create(id="full", connectors=["raw"])
        fitting: dict[str, Any] = {"thread": "full", "agent": "helper", "tools": ["mcp_raw"]}
        for limits in every_choice(fitting):
            assert await called(live, READS, limits, form) == "ran", limits


@pytest.mark.parametrize("form", ["body", "path"])
async def test_a_limit_that_cannot_be_read_is_refused_even_alone(tmp_path: Path, form: str) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **QUICK, **stdio())
        for field, wrong in product(("thread", "agent", "tools"), (7, "", {}, True)):
            path = "/api/call" if form == "body" else f"/api/tools/{READS}/call"
            body = {field: wrong} | ({"tool": READS} if form == "body" else {})
            reply = await live.ask("POST", path, body)
            assert reply.status == 422, (field, wrong, reply.body)
            assert f"'{field}' must be" in reply.body.decode()
