"""Who may add what in multi-user mode, and how much of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lures import document, open_lure
from pydantic import SecretStr

from dragoman import Hub
from dragoman.errors import Denied, DragomanError, InvalidConfig, LimitReached
from dragoman.formats.import_files import ImportText
from dragoman.hub.permissions import MOST_CONNECTORS
from dragoman.scope import LOCAL_CALLER, Caller
from servers.hubs import open_hub, quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
MEMBER = Caller(workspace="acme", user="mia")
ADMIN = Caller(workspace="acme", user="ada", role="admin")
CANARY = "canary-of-the-environment-51c"
REMOTE = "https://tools.example.com/mcp"
COMMAND: dict[str, Any] = {**stdio(sandbox="auto"), **quick()}


@pytest.fixture(autouse=True)
def secret_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_KEY", CANARY)


async def refusal(wish: Any) -> DragomanError:
    with pytest.raises(DragomanError) as told:
        await wish
    assert CANARY not in f"{told.value.message}{told.value.hint}"
    return told.value


REFERENCES: list[dict[str, Any]] = [
    {"url": "https://x.test/${DRAGOMAN_KEY}"},
    {"url": "https://${DRAGOMAN_KEY}.x.test/"},
    {"url": "https://x.test/?k=${DRAGOMAN_KEY:-none}"},
    {"url": REMOTE, "headers": {"X-Key": "${DRAGOMAN_KEY}"}},
    {"url": REMOTE, "headers": {"Authorization": "Bearer ${DRAGOMAN_KEY}"}},
    {"url": REMOTE, "headers": {"X-Key": "${DRAGOMAN_KEY}"}, "secret": ["header:X-Key"]},
    {"url": REMOTE, "bearer": "${DRAGOMAN_KEY}"},
    {"url": REMOTE, "api_key": "${DRAGOMAN_KEY}"},
    {"url": REMOTE, "secrets": {"auth": "${DRAGOMAN_KEY}"}, "auth": {"kind": "bearer"}},
    {"openapi": "https://x.test/${DRAGOMAN_KEY}/openapi.json"},
    {"openapi": "${DRAGOMAN_KEY}"},
    {"openapi": "https://x.test", "server": "https://x.test/${DRAGOMAN_KEY}"},
    {"openapi": "https://x.test", "basic": "${DRAGOMAN_KEY}"},
    {"openapi": "https://x.test", "headers": {"X": "${DRAGOMAN_KEY}"}},
    {**COMMAND, "args": [*COMMAND["args"], "${DRAGOMAN_KEY}"]},
    {**COMMAND, "env": {"X": "a${DRAGOMAN_KEY}b"}},
    {**COMMAND, "env": {"TOKEN": "${DRAGOMAN_KEY}"}},
    {**COMMAND, "cwd": "/${DRAGOMAN_KEY}"},
]


async def test_nobody_but_the_operator_refers_to_the_environment(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        await hub.acting_for(ADMIN).connectors.add("base", connect=False, url=REMOTE)
        for facts in REFERENCES:
            for wish in (
                hub.acting_for(ADMIN).connectors.add("x", connect=False, **facts),
                hub.acting_for(ADMIN).connectors.replace("base", **facts),
                hub.acting_for(ADMIN).connectors.update("base", **facts),
            ):
                error = await refusal(wish)
                assert isinstance(error, Denied), facts
                assert error.hint
        assert (await hub.acting_for(ADMIN).connectors.get("base")).connector.revision == 1


async def test_a_reference_that_got_in_all_the_same_is_not_read(tmp_path: Path) -> None:
    """Kept from a time before the rule, or written into the database."""
    async with open_lure() as (_, lure):
        facts: dict[str, Any] = {
            "url": f"{lure.url}/mcp?k=${{DRAGOMAN_KEY}}",
            "headers": {"X-Open": "${DRAGOMAN_KEY}"},
            "bearer": "${DRAGOMAN_KEY}",
            **quick(),
        }
        async with open_hub(tmp_path) as hub:  # one-person mode has no such rule
            await hub.acting_for(MEMBER).connectors.add("old", connect=False, **facts)
        async with open_hub(tmp_path, multi_user=True, allowed_networks=("127.0.0.2/32",)) as hub:
            view = await hub.acting_for(MEMBER).connectors.connect("old")
            assert view.status.state == "connected", view.status.cause
            assert lure.seen[0][1]["X-Open"] == "${DRAGOMAN_KEY}"
            assert lure.seen[0][1]["Authorization"] == "Bearer ${DRAGOMAN_KEY}"
            assert CANARY not in str(lure.seen)


async def test_a_credential_that_a_user_brings_refers_to_nothing(tmp_path: Path) -> None:
    """Also where the operator gave the connector."""
    async with open_lure() as (_, lure), open_hub(tmp_path, multi_user=True) as hub:
        await hub.connectors.add(
            "given",
            url=f"{lure.url}/mcp",
            auth={"kind": "bearer"},
            personal=["auth"],
            connect=False,
            **quick(),
        )
        await hub.credentials.set("given", {"auth": SecretStr("${DRAGOMAN_KEY}")})
        await hub.connectors.connect("given")
        assert lure.seen[0][1]["Authorization"] == "Bearer ${DRAGOMAN_KEY}"
        assert CANARY not in str(lure.seen)


async def test_members_add_no_commands(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        wishes: list[dict[str, Any]] = [COMMAND, {**COMMAND, "cwd": "/"}, {"command": "no-such-program"}]
        for facts in wishes:
            error = await refusal(hub.acting_for(MEMBER).connectors.add("x", **facts))
            assert isinstance(error, Denied)
            assert "admin" in (error.hint or "")
        await hub.acting_for(MEMBER).connectors.add("mine", connect=False, url=REMOTE)
        assert isinstance(await refusal(hub.acting_for(MEMBER).connectors.update("mine", **COMMAND)), Denied)
        assert isinstance(await refusal(hub.acting_for(MEMBER).connectors.replace("mine", **COMMAND)), Denied)
        assert (await hub.acting_for(MEMBER).connectors.get("mine")).connector.configuration.command is None
        view = await hub.acting_for(ADMIN).connectors.add("tools", shared=True, **COMMAND)
        assert view.status.state == "connected", view.status.cause
        assert isinstance(
            await refusal(hub.acting_for(MEMBER).connectors.update("tools", args=["x"])), Denied
        )


async def test_an_admin_of_yesterday_changes_no_command_today(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        await hub.acting_for(ADMIN).connectors.add("tools", **COMMAND)
        demoted = Caller(workspace="acme", user="ada")
        assert isinstance(
            await refusal(hub.acting_for(demoted).connectors.update("tools", args=["x"])), Denied
        )
        await hub.acting_for(demoted).connectors.remove("tools")


@pytest.mark.parametrize(
    "place", ["/etc/passwd", "file:///etc/passwd", "openapi.json", "FILE:///etc/passwd", "~/x"]
)
async def test_only_the_operator_reads_files_of_the_server(tmp_path: Path, place: str) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        for caller in (MEMBER, ADMIN):
            assert isinstance(
                await refusal(hub.acting_for(caller).connectors.add("x", openapi=place)), Denied
            )
        await hub.acting_for(ADMIN).connectors.add("base", connect=False, openapi="https://x.test")
        assert isinstance(
            await refusal(hub.acting_for(ADMIN).connectors.update("base", openapi=place)), Denied
        )


async def test_a_file_that_got_in_all_the_same_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document("https://x.test")))
    async with open_hub(tmp_path) as hub:
        view = await hub.acting_for(MEMBER).connectors.add("old", openapi=str(file), **quick())
        assert view.status.state == "connected"
    async with open_hub(tmp_path, multi_user=True) as hub:
        view = await hub.acting_for(MEMBER).connectors.connect("old")
        assert "only the operator" in (view.status.cause or "")


async def test_an_import_follows_the_same_rules(tmp_path: Path) -> None:
    servers = {
        "run": {"command": COMMAND["command"], "args": COMMAND["args"]},
        "far": {"url": REMOTE},
        "key": {"url": REMOTE, "headers": {"X": "${DRAGOMAN_KEY}"}},
    }
    text = ImportText(text=json.dumps({"mcpServers": servers}))
    async with open_hub(tmp_path, multi_user=True) as hub:
        planned = {step.name: step.action for step in await hub.acting_for(MEMBER).imports.plan([text])}
        assert planned["run"] == "invalid"
        assert planned["far"] == "add"
        assert planned["key"] in ("invalid", "needs_input")
        await hub.acting_for(MEMBER).imports.apply([text], connect=False)
        added = [
            view.connector for view in await hub.acting_for(MEMBER).connectors.list() if view.connector.owner
        ]
        assert [(one.slug, one.origin) for one in added] == [("far", "people")]
        answered = await hub.acting_for(MEMBER).imports.apply(
            [text],
            inputs={"DRAGOMAN_KEY": "${DRAGOMAN_KEY}", "env:DRAGOMAN_KEY": "${DRAGOMAN_KEY}"},
            connect=False,
        )
        assert CANARY not in repr(answered)


async def test_where_an_operators_connector_leads_is_the_operators_to_change(tmp_path: Path) -> None:
    """An admin would have its secrets otherwise, and the reach of a trusted connector."""
    operator = Caller(workspace="acme", user="olga", role="operator")
    async with open_hub(tmp_path, multi_user=True) as hub:
        await hub.acting_for(operator).connectors.add(
            "given", shared=True, connect=False, url=REMOTE, bearer="secret"
        )
        changes: list[dict[str, Any]] = [
            {"url": "https://evil.test"},
            {"headers": {"X": "1"}},
            {"bearer": "mine"},
            COMMAND,
        ]
        for change in changes:
            assert isinstance(
                await refusal(hub.acting_for(ADMIN).connectors.update("given", **change)), Denied
            )
        error = await refusal(hub.acting_for(ADMIN).connectors.replace("given", url="https://evil.test"))
        assert isinstance(error, Denied)
        view = await hub.acting_for(ADMIN).connectors.update(
            "given", connect=False, description="ours", request_timeout=5
        )
        assert (view.connector.origin, view.connector.configuration.url) == ("operator", REMOTE)


async def test_what_people_gave_stays_theirs_when_the_operator_changes_it(tmp_path: Path) -> None:
    operator = Caller(workspace="acme", user="mia", role="operator")
    async with open_hub(tmp_path, multi_user=True) as hub:
        await hub.acting_for(MEMBER).connectors.add("mine", connect=False, url="http://10.0.0.1/mcp")
        view = await hub.acting_for(operator).connectors.update("mine", connect=False, description="checked")
        assert view.connector.origin == "people"


TOO_MUCH: list[dict[str, Any]] = [
    {"url": REMOTE, "description": "x" * 10_001},
    {"url": "https://x.test/" + "a" * 2_000},
    {"url": REMOTE, "headers": {f"X-{number}": "1" for number in range(101)}},
    {"url": REMOTE, "headers": {"X": "v" * 8_193}},
    {"url": REMOTE, "headers": {"X" * 201: "v"}},
    {"url": REMOTE, "bearer": "v" * 8_193},
    {"url": REMOTE, "aliases": [f"a{number}" for number in range(100)]},
    {"url": REMOTE, "personal": [f"header:X{number}" for number in range(101)]},
    {"openapi": "https://x.test/" + "a" * 2_000},
    {"openapi": "https://x.test", "server": "https://x.test/" + "a" * 2_000},
    {"openapi": "https://x.test", "select": {"tags": [str(number) for number in range(501)]}},
    {"command": "python3", "args": ["x"] * 201},
    {"command": "python3", "args": ["x" * 8_193]},
    {"command": "python3", "env": {f"V{number}": "1" for number in range(101)}},
    {"command": "python3", "env": {"V": "v" * 8_193}},
    {"command": "python3", "cwd": "/" * 8_193},
]


async def test_what_is_too_long_or_too_many_is_refused(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        for facts in TOO_MUCH:
            error = await refusal(hub.acting_for(ADMIN).connectors.add("x", connect=False, **facts))
            assert isinstance(error, InvalidConfig), facts
            assert "at most" in error.message or "valid" in error.message
        assert [view for view in await hub.acting_for(ADMIN).connectors.list() if view.connector.owner] == []


@pytest.mark.slow
async def test_a_user_has_no_more_connectors_than_they_may_whatever_they_do_at_once(tmp_path: Path) -> None:
    async def add(hub: Hub, index: int) -> bool:
        try:
            await hub.acting_for(MEMBER).connectors.add(f"c{index}", connect=False, url=REMOTE)
        except LimitReached:
            return False
        return True

    async with open_hub(tmp_path, multi_user=True) as hub:
        added = await asyncio.gather(*(add(hub, index) for index in range(MOST_CONNECTORS + 20)))
        assert sum(added) == MOST_CONNECTORS
        await hub.acting_for(MEMBER).connectors.remove("c0")
        assert await add(hub, 9999)
        await hub.acting_for(ADMIN).connectors.add("others", connect=False, url=REMOTE)


async def test_one_user_alone_may_do_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(document("https://x.test")))
    async with open_lure() as (_, lure), open_hub(tmp_path) as hub:
        url = f"{lure.url}/mcp"
        view = await hub.connectors.add("mine", url=url, headers={"X": "${DRAGOMAN_KEY}"}, **quick())
        assert view.status.state == "connected"
        assert lure.seen[0][1]["X"] == CANARY
        assert (await hub.connectors.add("api", openapi=str(file), **quick())).status.state == "connected"
        assert (await hub.connectors.add("run", **COMMAND)).status.state == "connected"
        assert LOCAL_CALLER.role == "operator"


@pytest.mark.parametrize("is_multi_user", [True, False])
async def test_nobody_adds_a_second_way_to_the_apps_own_functions(
    tmp_path: Path, is_multi_user: bool
) -> None:
    """It would lead past what was set for them: off, approval, capabilities."""
    async with open_hub(tmp_path, multi_user=is_multi_user) as hub:

        @hub.tool
        async def pay(amount: int) -> str:
            return f"paid {amount}"

        await hub.tools.disable("pay")
        await hub.acting_for(MEMBER).connectors.add("mine", connect=False, url=REMOTE)
        for wish in (
            hub.acting_for(MEMBER).connectors.add("more", kind="native"),
            hub.acting_for(MEMBER).connectors.add("more", kind="native", url=REMOTE),
            hub.acting_for(MEMBER).connectors.update("mine", kind="native"),
            hub.acting_for(MEMBER).connectors.replace("mine", kind="native"),
        ):
            assert isinstance(await refusal(wish), InvalidConfig)
        output = await hub.acting_for(MEMBER).call("pay", {"amount": 3})
        assert output.error is not None
        assert output.error.code == "tool_disabled"


async def test_the_tools_of_one_directory_are_not_for_many_users(tmp_path: Path) -> None:
    for tool in ("read_file", "terminal"):
        with pytest.raises(InvalidConfig) as told:
            async with open_hub(tmp_path, multi_user=True, native_tools=(tool,), tools_root=tmp_path):
                pass
        assert "DRAGOMAN_NATIVE_TOOLS" in (told.value.hint or "")
