"""What must not get through: headers of a client, our environment, foreign hosts, JSON without a bottom."""

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from lures import document, open_lure

from api.live import open_service
from dragoman.connections.environment import PASSED_ON
from servers.hubs import open_hub, quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
CANARY = "canary-4d1f8a"
INBOUND = {
    "Cookie": f"session={CANARY}",
    "Proxy-Authorization": f"Basic {CANARY}",
    "X-Api-Key": CANARY,
    "X-Forwarded-For": CANARY,
    "Forwarded": f"for={CANARY}",
    "X-Real-IP": CANARY,
    "Mcp-Session-Id": CANARY,
    "Mcp-Protocol-Version": CANARY,
    "Last-Event-ID": CANARY,
    "traceparent": CANARY,
    "baggage": f"a={CANARY}",
    "User-Agent": CANARY,
    "Referer": f"http://localhost/{CANARY}",
    "X-Anything": CANARY,
}


async def test_no_header_of_a_client_reaches_a_server(tmp_path: Path) -> None:
    async with open_lure() as (_, lure), open_service(tmp_path) as live:
        lure.documents["/openapi.json"] = document()
        ways: list[dict[str, Any]] = [
            {"name": "http", "url": f"{lure.url}/mcp"},
            {"name": "api", "openapi": lure.url},
        ]
        for facts in ways:
            reply = await live.ask("POST", "/api/connectors", {**facts, **quick()}, **INBOUND)
            assert (reply.status, reply.value["status"]["state"]) == (201, "connected")
            name = facts["name"]
            reply = await live.ask("POST", "/api/call", {"tool": f"mcp_{name}_look"}, **INBOUND)
            assert reply.value["ok"], reply.value
            reply = await live.ask("POST", f"/api/tools/mcp_{name}_look/call", {}, **INBOUND)
            assert reply.value["ok"], reply.value
            await live.ask("POST", f"/api/connectors/{name}/refresh", **INBOUND)
        sent = str(lure.seen)
        assert len(lure.seen) >= 8
        assert CANARY not in sent
        assert live.token not in sent
        assert "Authorization" not in sent
        assert "Cookie" not in sent


async def test_a_child_gets_nothing_of_our_environment_but_what_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "DRAGOMAN_KEY",
        "DRAGOMAN_TOKEN",
        "DRAGOMAN_DATABASE_URL",
        "AWS_SECRET_ACCESS_KEY",
        "GH_TOKEN",
    ):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("LD_PRELOAD_NOT", CANARY)
    monkeypatch.setenv("PYTHONPATH", f"/{CANARY}")
    async with open_hub(tmp_path, multi_user=True) as hub:
        view = await hub.connectors.add(
            "run", **stdio(), env={"OWN": "own", "API_TOKEN": "sealed"}, **quick()
        )
        assert view.status.pid, view.status.cause
        raw = Path(f"/proc/{view.status.pid}/environ").read_bytes().decode()
        given = dict(line.split("=", 1) for line in raw.split("\0") if line)
        assert CANARY not in raw
        assert (given["OWN"], given["API_TOKEN"]) == ("own", "sealed")
        # The last is the child's own mark, by which we find what it leaves behind.
        assert set(given) <= {*PASSED_ON, "PATH", "OWN", "API_TOKEN", "DRAGOMAN_CONNECTION"}


async def test_no_shell_reads_a_command(tmp_path: Path) -> None:
    log = tmp_path / "$(touch made) && touch made; `touch made`"
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("run", **stdio("--log", str(log)), cwd=str(tmp_path), **quick())
    assert log.exists()
    assert not (tmp_path / "made").exists()


PLACES = [
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/tools"),
    ("GET", "/api/events"),
    ("POST", "/api/call"),
    ("POST", "/api/connectors"),
    ("POST", "/api/import"),
    ("GET", "/oauth/callback?code=a&state=b"),
    ("GET", "/oauth/client.json"),
    ("POST", "/oauth/anything"),
    ("POST", "/mcp"),
    ("GET", "/nothing"),
    ("OPTIONS", "/api/call"),
]


WRONG = [
    {"Host": "evil.test"},
    {"Host": "127.0.0.1.evil.test:80"},
    {"Host": "localhost@evil.test"},
    {"Host": ""},
    {"Origin": "http://evil.test"},
    {"Origin": "https://127.0.0.1.evil.test"},
    {"Origin": "null"},
    {"Origin": "file://"},
]


@pytest.mark.parametrize("many", [False, True])
async def test_every_door_refuses_a_foreign_host_and_a_foreign_page(tmp_path: Path, many: bool) -> None:
    async with open_service(tmp_path, multi_user=many) as live:

        async def knock(method: str, path: str, wrong: dict[str, str], authorization: str) -> None:
            reply = await live.ask(method, path, Authorization=authorization, **wrong)
            assert 400 <= reply.status < 500, (method, path, wrong)
            assert reply.value["code"] in ("wrong_host", "wrong_origin"), (method, path, wrong)
            assert "Access-Control-Allow-Origin" not in reply.headers

        async with asyncio.TaskGroup() as tasks:
            for (method, path), wrong, authorization in product(PLACES, WRONG, ("", f"Bearer {live.token}")):
                tasks.create_task(knock(method, path, wrong, authorization))


def bottomless(depth: int) -> list[str]:
    """Bodies of every kind of request, with something deep in them."""
    return [
        body
        for inner in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth)
        for body in (
            inner,
            f'{{"name":"x","url":"http://127.0.0.1:9","connect":false,"headers":{inner}}}',
            f'{{"name":"x","select":{inner}}}',
            f'{{"tool":"mcp_native_swallow","arguments":{{"value":{inner}}}}}',
            f'{{"arguments":{{"value":{inner}}}}}',
            f'{{"files":[{{"text":{inner}}}]}}',
        )
    ]


@pytest.mark.slow
async def test_json_without_a_bottom_is_the_callers_fault_on_every_route(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:

        @live.hub.tool
        def swallow(value: Any) -> str:
            """Takes anything."""
            return "swallowed"

        at_once = asyncio.Semaphore(20)  # a client's time is running while it waits for a connection

        async def send(method: str, path: str, body: str, least: int) -> None:
            async with at_once:
                reply = await live.ask(method, path, body.encode())
            assert least <= reply.status < 500, (method, path, body[:40], reply.body[:200])
            if reply.status == 200 and "ok" in reply.value:
                assert (reply.value["error"] or {}).get("code") != "internal", (path, body[:40])

        routes = (await live.ask("GET", "/api/openapi.json")).value["paths"]
        takers = [
            (method.upper(), path.replace("{", "").replace("}", ""))
            for path, methods in routes.items()
            for method, facts in methods.items()
            if "requestBody" in facts
        ]
        takers.append(("POST", "/api/tools/mcp_native_swallow/call"))
        assert len(takers) > 5
        async with asyncio.TaskGroup() as tasks:
            for depth, least in ((500, 200), (10_000, 400)):
                for (method, path), body in product(takers, bottomless(depth)):
                    tasks.create_task(send(method, path, body, least))


async def test_a_file_without_a_bottom_is_told_as_a_problem_of_the_file(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        for text in ("[" * 50_000, '{"mcpServers":' * 5_000, "a:\n" + "- " * 5_000, "a = " + "[" * 50_000):
            reply = await live.ask("POST", "/api/import", {"files": [{"text": text}]})
            assert reply.status == 200, (text[:20], reply.body[:200])
            assert [step["action"] for step in reply.value["steps"]] == ["invalid"]
