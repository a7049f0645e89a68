"""Import, export and discovery through the REST door."""

import json
from pathlib import Path

import pytest

from api.live import open_service
from discovery.registry_server import open_registry
from servers.processes import stdio

pytestmark = pytest.mark.anyio

SECRET = "s3cret-over-rest"


async def test_a_file_is_tried_imported_and_exported(tmp_path: Path) -> None:
    entry = {**stdio(), "env": {"API_TOKEN": SECRET}, "envFile": "/etc/hostname"}
    del entry["sandbox"]  # no word of such files
    files = [{"name": "mcp.json", "text": json.dumps({"mcpServers": {"my_tools": entry, "bad": {}}})}]
    async with open_service(tmp_path) as live:
        tried = await live.ask("POST", "/api/import", {"files": files, "dry_run": True})
        assert [step["action"] for step in tried.value["steps"]] == ["invalid", "add"]
        assert (await live.ask("GET", "/action-servers/available")).value == {"action_servers": []}
        done = await live.ask("POST", "/api/import", {"files": files})
        step = done.value["steps"][1]
        assert step["connector"]["status"]["state"] == "connected"
        # Nothing is read from this machine's disk for a text that came through a door.
        assert step["connector"]["secrets"] == ["env:API_TOKEN"]
        assert "was not read" in step["warnings"][0]
        assert SECRET.encode() not in done.body
        assert (await live.call("my_tools__echo", text="x"))["ok"]
        bare = await live.ask("GET", "/api/export")
        assert SECRET.encode() not in bare.body
        assert bare.value["connectors"]["my-tools"]["secrets"] == {"env:API_TOKEN": None}
        full = await live.ask("GET", "/api/export?format=mcpServers&include_secrets=true")
        assert full.value["mcpServers"]["my-tools"]["env"] == {"API_TOKEN": SECRET}
        assert full.headers["Cache-Control"] == "no-store"
        (server,) = (await live.ask("GET", "/action-servers/available")).value["action_servers"]
        assert (server["name"], server["slug"], server["state"]) == ("my_tools", "my-tools", "connected")


async def test_what_a_door_is_given_is_checked(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        assert (await live.ask("POST", "/api/import", {"files": []})).status == 422
        assert (await live.ask("GET", "/api/export?format=yaml")).status == 422
        reply = await live.ask("POST", "/api/import", {"files": [{"text": "<html>"}]})
        assert reply.value["steps"][0]["reason"] == "the text holds HTML or XML, not JSON or TOML"
        for path in ("/api/export", "/api/discover", "/action-servers/available"):
            assert (await live.ask("GET", path, Authorization="")).status == 401


async def test_an_offer_is_shown_and_taken(tmp_path: Path) -> None:
    async with open_registry() as peer, open_service(tmp_path, registry_url=peer.url) as live:
        page = (await live.ask("GET", "/api/discover?search=tickets")).value
        assert page["offers"][0]["ways"][0]["shown"] == "https://tickets.example/mcp"
        offer = (await live.ask("GET", "/api/discover/com.example%2Ftickets")).value
        assert [need["name"] for need in offer["ways"][0]["needs"]] == ["token", "X-Region"]
        request = {"shown": offer["ways"][0]["shown"], "inputs": {"token": SECRET}, "connect": False}
        reply = await live.ask("POST", "/api/discover/com.example%2Ftickets", {**request, "shown": "other"})
        assert (reply.status, reply.value["code"]) == (409, "conflict")
        reply = await live.ask("POST", "/api/discover/com.example%2Ftickets", request)
        assert reply.status == 201
        assert reply.headers["Location"] == "/api/connectors/tickets"
        assert reply.value["secrets"] == ["header:Authorization"]
        assert SECRET.encode() not in reply.body


async def test_a_registry_that_is_off_or_down_is_told(tmp_path: Path) -> None:
    async with open_service(tmp_path, discovery="off") as live:
        reply = await live.ask("GET", "/api/discover")
        assert (reply.status, reply.value["code"]) == (403, "denied")
    async with open_service(tmp_path, registry_url="http://127.0.0.1:9") as live:
        reply = await live.ask("GET", "/api/discover?search=x")
        assert (reply.status, reply.value["code"]) == (502, "unreachable")
