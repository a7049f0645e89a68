"""The trail by REST and by the command, one-person mode: the local owner sees everything."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trail import ADA, echo, tamper

from api.live import open_service
from dragoman import Hub, Settings
from patience import patient

pytestmark = pytest.mark.anyio


async def test_rest_lists_verifies_and_exports(tmp_path: Path, database_url: str) -> None:
    async with open_service(tmp_path, database_url=database_url) as live:
        live.hub.add_tool(echo)
        for number in range(3):
            assert (await live.call("echo", text=f"secret {number}"))["ok"]
        reply = await live.ask("GET", "/api/audit?limit=2&action=call")
        assert [entry["number"] for entry in reply.value["entries"]] == [3, 2]
        assert reply.value["entries"][0]["subject"] == "echo"
        reply = await live.ask("GET", "/api/audit?after=2")
        assert [entry["number"] for entry in reply.value["entries"]] == [1]
        verdict = (await live.ask("GET", "/api/audit/verify")).value
        assert (verdict["is_whole"], verdict["count"], verdict["problem"]) == (True, 3, None)
        reply = await live.ask("GET", "/api/audit/export?after=1")
        assert [json.loads(line)["number"] for line in reply.body.splitlines()] == [2, 3]
        assert b"secret" not in reply.body
        assert (await live.ask("GET", "/api/audit/export?after=3")).body == b""
        for wrong in ("limit=0", "limit=1001", "after=-1", "after=9999999999999", "limit=x"):
            assert (await live.ask("GET", f"/api/audit?{wrong}")).status == 422
        assert (await live.ask("GET", "/api/audit?workspace=nowhere")).status == 404


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "audit", *words],
        env={**environment, "DRAGOMAN_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
    )


async def test_the_command_says_which_entry_was_changed_and_ends_with_1(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        hub.add_tool(echo)
        for _ in range(1203):
            await hub.call("echo", {"text": "x"})
        await hub.call("echo", {"text": "x"}, caller=ADA)
    listed = command(tmp_path, "list", "--limit", "2", "--json")
    assert [entry["number"] for entry in json.loads(listed.stdout)["entries"]] == [1203, 1202]
    assert "echo" in command(tmp_path, "list").stdout
    exported = command(tmp_path, "export").stdout.splitlines()
    assert [json.loads(line)["number"] for line in exported] == list(range(1, 1204))
    verified = command(tmp_path, "verify")
    assert (verified.returncode, "1,203 entries" in verified.stdout) == (0, True)
    tamper(
        f"sqlite:///{tmp_path}/dragoman.db",
        "UPDATE audit SET subject = 'other' WHERE number = 777 AND workspace = 'local'",
    )
    verified = command(tmp_path, "verify")
    assert verified.returncode == 1
    assert "entry 777 was changed" in verified.stderr
    verified = command(tmp_path, "verify", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["number"]) == (1, 776)
