"""Tokens are nowhere but where they belong: not on disk, in logs, texts or answers, and ours not upstream."""

import json
import logging
from pathlib import Path

import psycopg
import pytest

from oauth.journey import Scene, open_scene
from servers.hubs import runtime_of

pytestmark = pytest.mark.anyio


async def test_no_token_is_in_the_database_the_log_a_repr_or_an_answer(
    tmp_path: Path, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="dragoman")  # whatever another test made of it
    async with open_scene(tmp_path / "home", database_url) as scene:
        texts = await _journey(scene)
        issuer = scene.issuer
        secrets = [*issuer.given, *issuer.refresh]
        found = _rows(database_url) if database_url.startswith("postgres") else ""
    assert any(record.name == "dragoman" for record in caplog.records)
    texts += [*map(repr, map(vars, caplog.records)), found]
    everything = "".join(texts)
    assert "notes" in everything
    assert len(secrets) == 3
    for secret in secrets:
        assert secret not in everything
    for file in tmp_path.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(secret.encode() in data for secret in secrets), file


async def _journey(scene: Scene) -> list[str]:
    """Authorised, used, renewed, refused: what people were shown meanwhile."""
    await scene.add()
    page = await scene.authorise()
    hub = scene.hub
    outputs = [await hub.call("mcp_notes_echo", {"text": "x"})]
    scene.issuer.revoke_all()
    outputs.append(await hub.call("mcp_notes_echo", {"text": "y"}))
    assert [output.ok for output in outputs] == [True, True]
    bearers = runtime_of(hub).authorizations._bearers.values()
    texts = [page.text, *map(repr, outputs), repr([vars(one)["_tokens"] for one in bearers])]
    texts.append(repr(await hub.credentials.list()))
    for path in ("/api/credentials", "/api/credentials/notes", "/api/connectors/notes", "/api/calls"):
        texts.append((await scene.live.ask("GET", path)).body.decode())
    texts.append(
        (await scene.live.ask("PUT", "/api/credentials/notes", {"values": {"auth": "x"}})).body.decode()
    )
    entries = await hub.audit.list(limit=1000)
    return [*texts, repr(entries)]


def _rows(url: str) -> str:
    """Every row of every table."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select table_name from information_schema.tables where table_schema = 'public'"
        ).fetchall()
        rows = [connection.execute(f'select * from "{name}"'.encode()).fetchall() for (name,) in tables]
    return repr(rows)


async def test_a_token_of_ours_never_arrives_upstream(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        await scene.authorise()
        own = scene.live.token
        reply = await scene.live.ask(
            "POST", "/api/call", {"tool": "mcp_notes_echo", "arguments": {"text": "x"}}, Cookie=f"a={own}"
        )
        assert reply.value["ok"]
        assert scene.server.seen
        assert own not in json.dumps(scene.server.seen)
        assert own not in json.dumps(scene.issuer.asked)
