"""`dragoman credentials` as a person types it."""

import asyncio
import io
import json
import os
import sys
from pathlib import Path

import pytest

from dragoman.cli.root import run
from dragoman.telemetry.redaction import Redactor
from oauth.journey import open_browser, open_scene
from patience import deadline
from servers.processes import stdio
from servers.toolbox import digest

CANARY = "canary-55e0"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("DRAGOMAN_URL", "DRAGOMAN_TOKEN", "DRAGOMAN_DATABASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("dragoman.cli.in_process.configure_logging", _leave_logging)
    return tmp_path / "home"


def _leave_logging(level: str, json: bool, redactor: Redactor) -> None:
    """A command sets up logging for its process; here the process goes on."""


def test_a_credential_is_wanted_given_replaced_and_removed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dragoman(*words: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        capsys.readouterr()
        code = run(list(words))
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    server = stdio()
    words = ["connectors", "add", "test", "--personal", "env:WHO", "--", server["command"], *server["args"]]
    code, _, err = dragoman(*words)
    assert (code, "needs a value for WHO of yours" in err) == (0, True), err
    code, out, _ = dragoman("credentials", "list")
    assert (code, "missing" in out, "dragoman credentials set test env:WHO" in out) == (0, True, True)
    code, out, err = dragoman("credentials", "set", "test", typed=f"{CANARY}\n")
    assert (code, CANARY in out + err) == (0, False), err
    code, out, _ = dragoman("credentials", "list", "--json")
    assert json.loads(out)["credentials"][0]["state"] == "ready"
    assert CANARY not in out
    code, out, _ = dragoman("call", "mcp_test_environment", "--json")
    assert json.loads(out)["result"]["digests"]["WHO"] == digest(CANARY)
    assert CANARY not in out
    code, out, _ = dragoman("credentials", "rotate", "--json")
    assert (code, json.loads(out)["resealed"]) == (0, 1)
    assert "sealed with" in dragoman("credentials", "rotate")[2]
    assert "2 old keys" in dragoman("credentials", "rotate", "--forget-old")[2]
    assert dragoman("credentials", "set", "test", typed="")[0] == 2
    code, _, err = dragoman("credentials", "authorize", "test")
    assert (code, "takes env:WHO" in err) == (1, True), err
    assert dragoman("credentials", "remove", "test", "--yes")[0] == 0
    assert dragoman("call", "mcp_test_environment")[0] == 1


def test_oauth_options_make_a_connector_and_need_a_service(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CANARY)
    words = ["connectors", "add", "notes", "--url", "http://127.0.0.1:9/mcp", "--no-connect", "--json"]
    oauth = [
        "--oauth-client-id",
        "ours",
        "--oauth-client-secret-env",
        "CLIENT_SECRET",
        "--oauth-scope",
        "use",
    ]
    assert run([*words, *oauth]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["configuration"]["auth"]["kind"] == "oauth"
    assert (made["configuration"]["auth"]["client_id"], made["secrets"]) == ("ours", ["oauth_client"])
    assert run(["credentials", "authorize", "notes"]) == 1
    assert "dragoman serve" in capsys.readouterr().err
    assert run(["credentials", "set", "notes"]) == 1
    assert "dragoman credentials authorize notes" in capsys.readouterr().err


@pytest.mark.anyio
async def test_authorize_waits_until_the_person_has_been_there(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        where = {"DRAGOMAN_URL": scene.live.url, "DRAGOMAN_TOKEN": scene.live.token}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dragoman", "credentials", "authorize", "notes", "--json"),
            env={**os.environ, **where},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stderr
            async with deadline(60), open_browser() as browser:
                link = (await process.stderr.readline()).decode().strip()
                assert (await browser.follow(await browser.press(link))).status == 200
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0
        assert json.loads(out)["state"] == "ready"
        assert not any(token.encode() in out for token in scene.issuer.given)
