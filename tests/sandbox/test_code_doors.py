"""`/api/code` and `dragoman code` on a real service."""

import asyncio
import json
from pathlib import Path

import pytest
from coding import add_raw
from typer.main import get_command

from api.live import open_service
from dragoman.api import code as routes
from dragoman.cli import code as commands

pytestmark = pytest.mark.anyio


async def test_code_runs_by_rest(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await add_raw(live.hub)
        reply = await live.ask("POST", "/api/code", {"code": "print('hi')\nawait raw.add(1, 2)"})
        assert reply.status == 200
        assert {**reply.value, "duration_ms": 0} == {
            "ok": True,
            "result": {"sum": 3},
            "printed": "hi\n",
            "calls": 1,
            "tokens_outside": 0,
            "duration_ms": 0,
            "error": None,
        }
        failed = (await live.ask("POST", "/api/code", {"code": "x = 1\n1 / 0"})).value
        assert (failed["ok"], failed["error"]["line"]) == (False, 2)
        for body in ({}, {"code": 1}, {"code": "1", "cod": "2"}, {"code": "1", "thread": ""}, []):
            reply = await live.ask("POST", "/api/code", body)
            assert (reply.status, reply.value["code"]) == (422, "invalid_request")
        assert "limits" in (await live.ask("GET", "/api/code")).value
        assert "/api/code" in (await live.ask("GET", "/api/openapi.json")).value["paths"]


async def test_code_runs_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_service(tmp_path / "home") as live:
        await add_raw(live.hub)
        monkeypatch.setenv("DRAGOMAN_URL", live.url)
        monkeypatch.setenv("DRAGOMAN_TOKEN", live.token)
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
        program = tmp_path / "program.py"

        async def command(*words: str) -> tuple[int, str, str]:
            def run() -> int:
                return get_command(commands.app).main(list(words), standalone_mode=False) or 0

            code = await asyncio.to_thread(run)
            seen = capsys.readouterr()
            return code, seen.out, seen.err

        program.write_text("print('hi')\nawait raw.echo(text='there')")
        code, out, err = await command("run", str(program))
        assert (code, out) == (0, "hi\nthere\n")
        assert "1 calls" in err
        code, out, _ = await command("run", str(program), "--json")
        assert json.loads(out)["result"] == "there"
        program.write_text("x = 1\nimport enum")
        code, out, err = await command("run", str(program))
        assert (code, out) == (1, "")
        assert "line 2" in err
        assert "hint: use plain constants or a dict" in err
        _, out, _ = await command("guide")
        assert out.startswith("Run Python that calls tools.")


def test_routes_have_no_other_paths() -> None:
    assert {getattr(route, "path", "") for route in routes.routes.routes} == {"/api/code"}
