"""A secret in an argument or an address is sealed by whichever door it came, and only its server has it."""

import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr
from tattler import open_tattler

from api.live import Live, open_service
from dragoman.cli.root import run
from dragoman.console.connector_forms import facts_of, groups_of
from dragoman.errors import InvalidConfig
from dragoman.formats.import_files import ImportText
from dragoman.hub.management import HubManagement
from dragoman.scope import Caller
from servers.hubs import open_hub, quick, runtime_of, until
from servers.processes import HERE, stdio
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
SECRET = f"canary{uuid4().hex}"
OTHER = f"another{uuid4().hex}"
WORDS = ["--label", f"postgresql://root:{SECRET}@db/x", f"--api-key=key-{SECRET}"]
SHOWN = ["--label", "postgresql://root:${secret:password}@db/x", "--api-key=${secret:api-key}"]
SERVER: dict[str, Any] = {"command": sys.executable, "args": [str(HERE / "stdio_server.py"), *WORDS]}
FACTS: dict[str, Any] = {**quick(), **SERVER, "connect": False}


async def by_library(live: Live) -> None:
    await live.hub.connectors.add("test", **FACTS)


async def by_rest(live: Live) -> None:
    assert (await live.ask("POST", "/api/connectors", {"name": "test", **FACTS})).status == 201


async def by_form(live: Live) -> None:
    typed = {"by": "command", "command": " ".join([SERVER["command"], *SERVER["args"]])}
    await live.hub.connectors.add("test", connect=False, **facts_of(typed))


async def by_import(live: Live) -> None:
    text = json.dumps({"mcpServers": {"test": SERVER}})
    body = {"files": [{"text": text}], "connect": False}
    planned = await live.ask("POST", "/api/import", {**body, "dry_run": True})
    assert SECRET.encode() not in planned.body
    assert (await live.ask("POST", "/api/import", body)).status == 200


async def by_toml(live: Live) -> None:
    args = ", ".join(json.dumps(word) for word in SERVER["args"])
    text = f"[connectors.test]\ncommand = {json.dumps(SERVER['command'])}\nargs = [{args}]\n"
    (step,) = await live.hub.imports.apply([ImportText(text=text, name="dragoman.toml")], connect=False)
    assert SECRET not in repr(step)


async def by_agent(live: Live) -> None:
    caller = Caller(way="agent", agent="assistant", role="operator")
    told = await HubManagement(runtime_of(live.hub)).add_connector({"name": "test", **SERVER}, caller)
    assert SECRET not in repr(told)


DOORS: dict[str, Callable[[Live], Awaitable[None]]] = {
    "library": by_library,
    "REST": by_rest,
    "form": by_form,
    "mcpServers": by_import,
    "dragoman.toml": by_toml,
    "agent": by_agent,
}


@pytest.mark.parametrize("door", DOORS)
async def test_by_every_door_it_is_sealed_and_reaches_only_the_server(tmp_path: Path, door: str) -> None:
    async with open_service(tmp_path) as live:
        await DOORS[door](live)
        view = await live.hub.connectors.get("test")
        configuration = view.connector.configuration
        assert list(configuration.args[1:]) == SHOWN
        assert configuration.secrets == ("secret:api-key", "secret:password")
        for path in ("connectors", "connectors/test", "export", "export?format=mcpServers", "audit"):
            assert SECRET.encode() not in (await live.ask("GET", f"/api/{path}")).body, path
        await live.hub.connectors.connect("test")
        output = await live.call("mcp_test_environment")
        assert output["result"]["argv_digest"] == digest(" ".join(WORDS)), "the server has them"
        assert SECRET not in json.dumps(output), "and nobody is shown them"
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


@pytest.mark.slow
async def test_the_command_says_so_once(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["connectors", "add", "test", "--no-connect", "--", SERVER["command"], *SERVER["args"]]
    assert run(words) == 0
    seen = capsys.readouterr()
    assert seen.err.count("is kept as a secret") == 2
    assert "The password in argument 3 is kept as a secret" in seen.err
    assert SECRET not in seen.out + seen.err
    assert run(["connectors", "update", "test", "--request-timeout", "9", "--no-connect"]) == 0
    seen = capsys.readouterr()
    assert "secret" not in seen.err
    assert SECRET not in seen.out + seen.err


async def test_an_unrelated_change_and_what_was_shown_sent_back_keep_it(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await by_rest(live)
        await live.ask("PATCH", "/api/connectors/test", {"request_timeout": 9, "connect": False})
        shown = (await live.ask("GET", "/api/connectors/test")).value["configuration"]
        body = {"command": shown["command"], "args": shown["args"], "env": shown["env"], "connect": False}
        again = (await live.ask("PATCH", "/api/connectors/test", body)).value
        assert again["notices"] == []
        connector = (await live.hub.connectors.get("test")).connector
        typed = {one.name: one.value for _, _, fields in groups_of(connector) for one in fields}
        assert "args" not in facts_of({"by": "command", **typed}, connector.configuration)
        await live.hub.connectors.connect("test")
        output = await live.call("mcp_test_environment")
        assert output["result"]["argv_digest"] == digest(" ".join(WORDS))


async def test_it_is_replaced_and_removed_like_every_secret(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("test", **FACTS)
        await hub.credentials.set("test", {"secret:password": SecretStr(OTHER)})
        words = [WORDS[0], WORDS[1].replace(SECRET, OTHER), WORDS[2]]
        assert (await hub.call("mcp_test_environment")).result["argv_digest"] == digest(" ".join(words))
        view = await hub.connectors.update("test", args=[SERVER["args"][0], f"--api-key={OTHER}"])
        assert view.connector.configuration.secrets == ("secret:api-key",)
        view = await hub.connectors.update("test", args=SERVER["args"][:1])
        assert view.connector.configuration.secrets == ()
        assert await runtime_of(hub).vault.reveal(view.connector) == {}


async def test_an_export_names_what_must_be_brought_and_an_import_waits_for_it(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "one") as hub:
        await hub.connectors.add("test", **FACTS)
        text = await hub.exports.dragoman()
        whole = await hub.exports.dragoman(include_secrets=True)
        other = await hub.exports.mcp_servers()
    assert json.loads(text)["connectors"]["test"]["secrets"] == {
        "secret:api-key": None,
        "secret:password": None,
    }
    assert SECRET not in text + other
    assert "${TEST_API_KEY}" in other
    async with open_hub(tmp_path / "two") as hub:
        (step,) = await hub.imports.apply([ImportText(text=text, name="export.json")])
        assert step.missing == ("secret:api-key", "secret:password")
        assert (await hub.connectors.connect("test")).status.cause == "the secret secret:password is missing"
        for name in step.missing:
            await hub.credentials.set("test", {name: SecretStr("brought")})
        assert (await hub.call("mcp_test_environment")).ok
    async with open_hub(tmp_path / "three") as hub:
        await hub.imports.apply([ImportText(text=whole, name="export.json")])
        found = (await hub.call("mcp_test_environment")).result
        assert found["argv_digest"] == digest(" ".join(WORDS))


async def test_an_address_keeps_its_key_and_its_password_to_itself(tmp_path: Path) -> None:
    async with open_tattler() as tattler, open_hub(tmp_path) as hub:
        view = await hub.connectors.add("query", url=f"{tattler.origin}/mcp?token={SECRET}&x=1", **quick())
        assert view.connector.configuration.url == f"{tattler.origin}/mcp?token=${{secret:token}}&x=1"
        assert view.notices == ("The token in the URL is kept as a secret",)
        assert SECRET in str(tattler.seen)
        host = tattler.origin.removeprefix("http://")
        view = await hub.connectors.add("user", url=f"http://ada:{OTHER}@{host}/mcp", **quick())
        assert (view.connector.configuration.url, view.connector.configuration.auth.kind) == (
            f"{tattler.origin}/mcp",
            "basic",
        )
        assert view.notices == ("The password in the URL is kept as a secret",)
        assert OTHER in str(tattler.seen)
        assert OTHER not in repr(view)
        with pytest.raises(InvalidConfig, match="user or password"):
            await hub.connectors.add("both", url=f"http://ada:{OTHER}@{host}/mcp", bearer="x", connect=False)


async def test_values_of_variables_and_headers_are_looked_into(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        env = {"DATABASE_URL": f"postgresql://root:{SECRET}@db/x", "MODE": "fast"}
        view = await hub.connectors.add("test", env=env, connect=False, **stdio())
        assert view.connector.configuration.env == {"MODE": "fast"}
        assert view.connector.configuration.secrets == ("env:DATABASE_URL",)
        assert view.notices == ("The variable DATABASE_URL holds a secret and is kept as one",)


async def test_what_an_older_version_left_in_the_open_is_sealed_when_its_home_is_opened(
    tmp_path: Path,
) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("test", env={"API_TOKEN": OTHER}, connect=False, **quick(), **stdio())
    rows = sqlite3.connect(tmp_path / "dragoman.db")
    (text,) = rows.execute("select configuration from connectors").fetchone()
    facts = json.loads(text)
    facts["args"] = SERVER["args"]
    rows.execute("update connectors set configuration = ?", (json.dumps(facts),))
    rows.commit()
    rows.close()
    async with open_hub(tmp_path) as hub:
        connector = (await hub.connectors.get("test")).connector
        assert list(connector.configuration.args[1:]) == SHOWN
        await hub.connectors.connect("test")
        found = (await hub.call("mcp_test_environment")).result
        assert found["argv_digest"] == digest(" ".join(WORDS))
        assert found["digests"]["API_TOKEN"] == digest(OTHER), "what was sealed before is kept"
        await until(lambda: not is_in_clear(tmp_path))


def is_in_clear(home: Path) -> bool:
    rows = sqlite3.connect(home / "dragoman.db")
    try:
        return any(SECRET in line for line in rows.iterdump())
    finally:
        rows.close()
