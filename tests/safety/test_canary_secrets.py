"""After a journey over every door no secret is anywhere but in the vault, sealed.

Two answers are there to tell one, and are looked at by themselves: a new API key, and the arguments in a
question to the person who has to answer it. That the search finds every canary is shown by a leak of each,
made on purpose.
"""

import asyncio
import json
import traceback
from pathlib import Path
from typing import Any, cast

import pytest
from canaries import Flock, master_key_traces
from canary_journey import Journey, open_journey
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr
from tattler import KEPT, Tattler, open_tattler

from dragoman.api.credentials import NewCredential
from dragoman.api.requests import NewConnector
from dragoman.connector import Configuration, SplitConfiguration
from dragoman.errors import DragomanError
from dragoman.settings import Settings
from dragoman.telemetry.redaction import Redactor
from dragoman.vault import Key, KeyFile, KeyRing
from patience import patient
from servers.hubs import open_hub, quick, until
from servers.processes import stdio

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
_NAMES = (
    *("bearer", "header", "variable", "query", "basic", "personal", "replaced", "client", "refused"),
    *("jwt", "field", "argument", "question", "imported", "imported_header", "by_command", "unreachable"),
    *("in_argument", "in_address", "in_variable", "as_user"),
)
_USED = (
    *("bearer", "header", "query", "basic", "personal", "replaced", "client", "refused"),
    *("imported_header", "by_command", "in_address", "as_user"),
)


@pytest.mark.timeout(300)
async def test_no_canary_is_found_after_a_journey_over_every_door(tmp_path: Path) -> None:
    flock = Flock(*_NAMES)
    async with open_tattler() as tattler, open_journey(tmp_path) as journey:
        flock.watch("service token", journey.token.encode())
        flock.watch("master key", *master_key_traces((journey.home / "key").read_bytes()))
        admin, member = await _people(journey, flock)
        events = asyncio.create_task(journey.follow_events(admin))
        await until(lambda: "events" in journey.said)
        await _add(journey, flock, tattler, admin)
        await _import(journey, flock, tattler, admin, tmp_path)
        await _bring(journey, flock, member)
        await _call(journey, flock, admin)
        await _have_them_echoed(journey, admin)
        await _ask_people(journey, flock, admin, member)
        await _send_what_is_wrong(journey, flock, admin)
        await _look(journey, admin, member)
        await _rotate(journey, flock)
        await _look_by_command(journey, admin, member)
        found = flock.leaks(journey.files() | journey.said)  # with the database's journal
        assert not found
        used = flock.found_in(" ".join(tattler.seen).encode())
        assert used >= set(_USED)
        events.cancel()
    found = flock.leaks({**journey.files(), **journey.said})
    assert not found
    assert b"bearer" in journey.said["events"]


async def test_each_canary_is_found_where_nothing_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof of the search itself: the same servers with every mask taken off, one after the other."""
    names = ("bearer", "header", "query", "basic", "in_address", "as_user", "in_argument", "in_variable")

    async def echoed(home: Path) -> set[str]:
        shown: list[Any] = []
        async with open_tattler() as tattler, open_hub(home) as hub:
            mcp, service = f"{tattler.origin}/mcp", f"{tattler.origin}/service"
            words = stdio("--label", f"postgresql://root:{flock.in_argument.heart}@db/x")
            wanted: dict[str, dict[str, Any]] = {
                "bearer": {"url": mcp, "bearer": flock.bearer.token},
                "header": {"url": mcp, "headers": {"X-Secret": flock.header.word}},
                "query": {
                    "openapi": service,
                    "api_key": flock.query.word,
                    "api_key_in": "query",
                    "api_key_header": "key",
                },
                "basic": {"openapi": service, "basic": f"ada:{flock.basic.word}"},
                "address": {
                    "url": f"{mcp}?token={flock.in_address.heart}",
                    "headers": {"X-Secret": "of nobody"},
                },
                "user": {"url": mcp.replace("://", f"://ada:{flock.as_user.heart}@")},
                "words": {**words, "env": {"DATABASE": f"redis://:{flock.in_variable.heart}@db/x"}},
            }
            for name, facts in wanted.items():
                shown.append(await hub.connectors.add(name, **quick(), **facts))
            for tool in ("bearer_whoami", "header_whoami", "query_look", "basic_look", "address_whoami"):
                shown.append(await hub.call(f"mcp_{tool}"))
            shown += [await hub.call("mcp_user_whoami"), await hub.call("mcp_words_environment")]
            assert all(output.ok for output in shown[len(wanted) :])
        return flock.found_in(repr(shown).encode())

    flock = Flock(*names)
    assert await echoed(tmp_path / "masked") == set()
    monkeypatch.setattr("dragoman.telemetry.redaction.Redactor.clean_message", _uncleaned)
    assert await echoed(tmp_path / "echoing") == set(names)
    monkeypatch.undo()
    monkeypatch.setattr(
        "dragoman.hub.connector_input.split_secrets",
        _unsplit,
    )
    assert await echoed(tmp_path / "open") >= {"header", "in_address", "in_argument", "in_variable"}


async def _people(journey: Journey, flock: Flock) -> tuple[str, str]:
    workspace = (await journey.ask("POST", "/api/workspaces", {"name": "acme"}))["id"]
    keys: list[str] = []
    for name, role in (("ada", "admin"), ("max", "member")):
        user = {"name": name, "role": role, "workspace": workspace}
        await journey.ask("POST", "/api/users", user)
        scopes = ["read", "call", "manage", "approve", *(["admin"] if role == "admin" else [])]
        wish = {"name": name, "user": name, "workspace": workspace, "scopes": scopes}
        keys.append((await journey.ask("POST", "/api/keys", wish, kept=False))["key"])
    words = ("keys", "add", "third", "--user", "max", "-w", "acme")
    _, made = await journey.command(*words, kept=False)
    keys.append(made.decode().strip())
    for number, key in enumerate(keys):
        assert key.startswith("drk_")
        flock.watch(f"key {number}", key.encode(), key[-24:].encode())
    return keys[0], keys[1]


async def _add(journey: Journey, flock: Flock, tattler: Tattler, admin: str) -> None:
    mcp, service = f"{tattler.origin}/mcp", f"{tattler.origin}/service"
    grant = {"kind": "oauth", "flow": "client_credentials", "client_id": "ours", "issuer": tattler.origin}
    wanted: dict[str, dict[str, Any]] = {
        "bearer": {"url": mcp, "bearer": flock.bearer.token},
        "header": {"url": mcp, "headers": {"X-Secret": flock.header.word}},
        "local": {**stdio(sandbox="auto"), "env": {"PLAIN": flock.variable.word}, "secret": ["env:PLAIN"]},
        "query": {
            "openapi": service,
            "api_key": flock.query.word,
            "api_key_in": "query",
            "api_key_header": "key",
        },
        "basic": {"openapi": service, "basic": f"ada:{flock.basic.word}"},
        "mine": {"url": mcp, "auth": {"kind": "bearer"}, "personal": ["auth"]},
        "grant": {"url": mcp, "auth": grant, "oauth_client_secret": flock.client.word},
        "refused": {"url": f"{mcp}?wrong", "bearer": flock.refused.token},
        "gone": {"url": "http://127.0.0.1:9/mcp", "bearer": flock.unreachable.token},
        "words": {
            **stdio("--label", f"postgresql://root:{flock.in_argument.heart}@db/x", sandbox="auto"),
            "env": {"DATABASE_URL": f"postgresql://root:{flock.in_variable.heart}@db/x"},
        },
        "address": {"url": f"{mcp}?token={flock.in_address.heart}", "headers": {"X-Secret": "of nobody"}},
        "user": {"url": mcp.replace("://", f"://ada:{flock.as_user.heart}@")},
    }
    for name, facts in wanted.items():
        body = {"name": name, "shared": True, **quick(max_result_bytes=KEPT), **facts}
        added = await journey.ask("POST", "/api/connectors", body, by=admin)
        assert added.get("slug") == name, added
    words = ("connectors", "add", "typed", "--shared", "--url", mcp, "--bearer-env", "WORD", "--json")
    code, _ = await journey.command(*words, by=admin, WORD=flock.by_command.token)
    assert code == 0, journey.said
    for change in ({"description": "changed"}, {"headers": {"X-Secret": flock.header.word, "X-More": "1"}}):
        await journey.ask("PATCH", "/api/connectors/header", change, by=admin)


async def _import(journey: Journey, flock: Flock, tattler: Tattler, admin: str, folder: Path) -> None:
    server = stdio(sandbox="auto")
    servers = {
        "taken": {**server, "env": {"API_TOKEN": flock.imported.word}},
        "taken-too": {
            "url": f"{tattler.origin}/mcp",
            "headers": {"Authorization": f"Bearer {flock.imported_header.token}"},
        },
        "bad": {"url": 7, "headers": {"X-Secret": flock.imported.word}},
    }
    file = folder / "claude.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    await journey.command("import", str(file), "--dry-run", "--json", by=admin)
    await journey.command("import", str(file), by=admin)
    text = file.read_text()
    for body in (text, text[:-9], f'{{"mcpServers": "{flock.imported.heart}"}}'):
        await journey.ask("POST", "/api/import", {"files": [{"text": body}], "replace": True}, by=admin)


async def _bring(journey: Journey, flock: Flock, member: str) -> None:
    values = {"values": {"auth": flock.replaced.token}}
    assert (await journey.ask("PUT", "/api/credentials/mine", values, by=member))["state"] == "ready"
    await journey.ask("DELETE", "/api/credentials/mine", by=member)
    words = ("credentials", "set", "mine", "auth", "--json")
    code, _ = await journey.command(*words, by=member, given=flock.personal.token + "\n")
    assert code == 0


async def _call(journey: Journey, flock: Flock, admin: str) -> None:
    for slug in ("bearer", "header", "typed"):
        for tool in ("fail", "fault", "crash", "refuse", "odd"):
            body = {"tool": f"mcp_{slug}_{tool}", "arguments": {"text": "x"}}
            assert not (await journey.ask("POST", "/api/call", body, by=admin))["ok"]
    for tool in ("mcp_query_look", "mcp_basic_look"):
        assert (await journey.ask("POST", "/api/call", {"tool": tool}, by=admin))["ok"]
    for tool in ("query_break", "query_hang_up", "basic_break", "refused_fail", "gone_fail", "grant_fail"):
        body = {"tool": f"mcp_{tool}", "timeout": patient(3)}
        assert not (await journey.ask("POST", "/api/call", body, by=admin)).get("ok")
    # A child that writes its own secret to stderr, and that fails with it.
    for tool in ("stderr", "fail"):
        body = {"tool": f"mcp_local_{tool}", "arguments": {"text": f"it is {flock.variable.word}!"}}
        await journey.ask("POST", "/api/call", body, by=admin, kept=tool == "fail")
    for arguments in ({"text": 5, "count": flock.argument.word}, {"text": [flock.argument.word]}):
        body = {"tool": "mcp_bearer_fail", "arguments": arguments}
        answer = await journey.ask("POST", "/api/call", body, by=admin)
        assert answer["error"]["code"] == "invalid_arguments"
    await journey.ask("POST", "/mcp", _message("mcp_bearer_fail"), by=admin)
    for tool in ("environment", "stderr"):
        body = {"tool": f"mcp_words_{tool}", "arguments": {"text": "x"} if tool == "stderr" else {}}
        assert (await journey.ask("POST", "/api/call", body, by=admin))["ok"]
    for words in (("mcp_bearer_fail", "text=x"), ("mcp_header_fault",), ("mcp_query_break",)):
        await journey.command("call", *words, "--json", by=admin)
        await journey.command("call", *words, by=admin)


async def _have_them_echoed(journey: Journey, admin: str) -> None:
    """By servers that give back what they were brought, through every door, in all that can be asked."""
    slugs = ("bearer", "header", "typed", "taken-too", "address", "user")
    for slug in slugs:
        for tool in ("whoami", "large", "stream"):
            name = f"mcp_{slug}_{tool}"
            answer = await journey.ask("POST", "/api/call", {"tool": name}, by=admin)
            assert answer["ok"], answer
            if tool == "large" and slug in ("bearer", "header", "address", "user"):
                handle = answer["metadata"]["handle"]
                await journey.ask("GET", f"/api/results/{handle}", by=admin)
            message = _message(name)
            message["params"]["_meta"] = {"progressToken": 7}
            await journey.ask("POST", "/mcp", message, by=admin)
        for method, params in (
            ("resources/list", {}),
            ("resources/read", {"uri": "told://1"}),
            ("prompts/list", {}),
            ("prompts/get", {"name": f"{slug}_told"}),
        ):
            message = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
            await journey.ask("POST", "/mcp", message, by=admin)
        code = f"await mcp_{slug.replace('-', '_')}.whoami()"
        await journey.ask("POST", "/api/code", {"code": code}, by=admin)
        await journey.command("call", f"mcp_{slug}_whoami", by=admin)
    for path in ("tools", "tools/search?q=whoami", "tools/mcp_bearer_whoami", "calls", "audit", "connectors"):
        await journey.ask("GET", f"/api/{path}", by=admin)
    pages = ("/connectors", "/tools", "/log", "/audit", "/tools/mcp_bearer_whoami", "/connectors/words/edit")
    await journey.browse(admin, *pages, *(f"/connectors/{slug}" for slug in (*slugs, "words")))


def _message(tool: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def _ask_people(journey: Journey, flock: Flock, admin: str, member: str) -> None:
    async def question() -> str | None:
        listed = await journey.ask("GET", "/api/approvals", by=admin, kept=False)
        return listed["approvals"][0]["id"] if listed["approvals"] else None

    found: list[str | None] = []

    async def is_asked() -> bool:
        found.append(await question())
        return found[-1] is not None

    for answer in ("once", "no"):
        body = {"tool": "mcp_mine_note", "arguments": {"text": flock.question.word}, "agent": "robot"}
        waiting = asyncio.create_task(journey.ask("POST", "/api/call", body, by=member))
        await until(is_asked, within=10)
        asked = found[-1]
        shown = await journey.ask("GET", f"/api/approvals/{asked}", by=admin, kept=False)
        assert flock.found_in(json.dumps(shown).encode()) == {"question"}
        leaks = flock.leaks(journey.files())  # while it waits
        assert not leaks
        wrong = {"answer": flock.field.word}
        await journey.ask("POST", f"/api/approvals/{asked}/answer", wrong, by=admin)
        given = {"answer": answer}
        await journey.ask("POST", f"/api/approvals/{asked}/answer", given, by=admin, kept=False)
        assert (await waiting)["ok"] == (answer == "once")


async def _send_what_is_wrong(journey: Journey, flock: Flock, admin: str) -> None:
    word = flock.field.word
    wrong: list[tuple[str, str, Any]] = [
        ("POST", "/api/connectors", {"name": "x", "bearer": [word]}),
        ("POST", "/api/connectors", {"name": "x", "bearer": {"token": word}}),
        ("POST", "/api/connectors", {"name": "x", "url": word}),
        ("POST", "/api/connectors", {"name": "x", "url": f"http://ada:{flock.field.heart}@127.0.0.1/mcp"}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "auth": {"kind": word}}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "auth": word}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "retry": word}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "transport": word}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "toekn": word}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "api_key_in": word}),
        ("POST", "/api/connectors", {"name": "x", "url": "http://127.0.0.1/mcp", "personal": [word]}),
        ("POST", "/api/connectors", {"name": "x", "command": "x", "env": {"A": {"b": word}}}),
        (
            "POST",
            "/api/connectors",
            {"name": "x", "openapi": "http://127.0.0.1:9", "basic": flock.field.heart},
        ),
        ("POST", "/api/connectors", f'{{"name": "{word}'.encode()),
        ("PATCH", "/api/connectors/bearer", {"bearer": [word]}),
        ("PATCH", "/api/connectors/bearer", {"request_timeout": word}),
        ("PUT", "/api/credentials/mine", {"values": {"auth": [word]}}),
        ("PUT", "/api/credentials/mine", {"values": word}),
        ("PUT", "/api/credentials/mine", {"auth": word}),
        ("PUT", "/api/credentials/bearer", {"values": {"auth": word}}),
        ("PUT", "/api/credentials/mine", {"values": {"oauth": word}}),
        ("POST", "/api/credentials/rotate", {"forget_old": word}),
        ("POST", "/api/keys", {"name": "x", "scopes": [word]}),
        ("POST", "/api/keys", {"name": "x", "way": word}),
        ("POST", "/api/users", {"name": "x", "role": word}),
        ("POST", "/api/import", {"files": word}),
        ("POST", "/api/import", {"files": [{"text": [word]}]}),
        ("POST", "/api/call", {"tool": "mcp_bearer_fail", "arguments": word}),
        ("POST", "/api/call", {"tool": "mcp_bearer_fail", "timeout": word}),
        ("POST", "/api/call", f'{{"tool": "{word}'.encode()),
        ("POST", "/api/code", {"code": [word]}),
        ("PATCH", "/api/preferences", {"max_connectors_per_thread": word}),
        ("PATCH", "/api/tools/mcp_bearer_fail", {"approval": word}),
        ("GET", f"/api/approvals?status={flock.field.heart}", None),
        ("GET", f"/api/calls?limit={flock.field.heart}", None),
        ("GET", f"/api/me?access_token={flock.field.heart}", None),
        ("GET", f"/oauth/callback?code={flock.field.heart}&state={flock.field.heart}", None),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": 7, "params": word}),
    ]
    for method, path, body in wrong:
        heard = await journey.ask(method, path, body, by=admin)
        # Paths are names that people chose; what is said of a request must not repeat its values.
        assert heard is not None
        journey.said = {label.replace(flock.field.heart, "…"): text for label, text in journey.said.items()}
    for stranger in (flock.jwt.jwt, f"drk_{flock.jwt.heart}", flock.jwt.word):
        assert (await journey.ask("GET", "/api/me", by=stranger))["code"] == "unauthenticated"
        await journey.command("whoami", by=stranger)
        await journey.command("whoami", "--json", by=stranger)


async def _look(journey: Journey, admin: str, member: str) -> None:
    for path in (
        *("connectors", "connectors/bearer", "connectors/local", "connectors/refused", "connectors/grant"),
        *("tools", "tools/mcp_bearer_fail", "tools/search?q=fail", "calls", "audit", "audit/verify"),
        *("audit/export", "usage", "credentials", "credentials/mine", "approvals/allowed", "threads"),
        *("preferences", "me", "keys", "users", "export", "export?format=mcpServers", "openapi.json"),
    ):
        for by in (admin, member):
            await journey.ask("GET", f"/api/{path}", by=by)
    for path in ("/metrics", "/health", "/ready"):
        await journey.ask("GET", path)
    for slug in ("bearer", "refused", "gone", "grant", "local", "query"):
        for action in ("refresh", "disconnect", "connect", "disable", "enable"):
            await journey.ask("POST", f"/api/connectors/{slug}/{action}", by=admin)


async def _rotate(journey: Journey, flock: Flock) -> None:
    code, _ = await journey.command("credentials", "rotate", "--json")
    assert code == 0
    flock.watch("new master key", *master_key_traces((journey.home / "key").read_bytes()))


async def _look_by_command(journey: Journey, admin: str, member: str) -> None:
    shown: list[tuple[str, ...]] = [
        *(("connectors", "list"), ("connectors", "show", "bearer"), ("connectors", "show", "refused")),
        *(("connectors", "show", "local"), ("tools", "show", "mcp_bearer_fail"), ("calls", "list")),
        *(("credentials", "list"), ("export",), ("audit", "list"), ("audit", "export"), ("keys", "list")),
    ]
    runs = [journey.command(*words, *more, by=admin) for words in shown for more in ((), ("--json",))]
    runs += [journey.command("credentials", "list", "--json", by=member), journey.command("doctor")]
    runs += [journey.command("doctor", "--json"), journey.command("whoami", "--json", by=member)]
    runs.append(journey.command("approvals", "allowed", "--json", by=admin))
    runs.append(journey.command("usage", "show", "--json", by=member))
    runs.append(journey.command("credentials", "remove", "mine", "--yes", "--json", by=member))
    await asyncio.gather(*runs)


async def test_no_canary_is_in_a_span_an_error_or_a_representation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = Flock("bearer", "header", "variable", "personal", "database", "argument", "field")
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    shown: dict[str, bytes] = {}

    def show(name: str, value: Any) -> None:
        facts = getattr(value, "__dict__", None)
        shown[f"{len(shown)} {name}"] = f"{value!r} {value} {facts!r}".encode()

    async with open_tattler() as tattler, open_hub(tmp_path) as hub:
        flock.watch("master key", *master_key_traces((tmp_path / "key").read_bytes()))
        mcp = f"{tattler.origin}/mcp"
        show("added", await hub.connectors.add("bearer", url=mcp, bearer=flock.bearer.token, **quick()))
        headers = {"X-Secret": flock.header.word}
        show("added", await hub.connectors.add("header", url=mcp, headers=headers, **quick()))
        env = {"API_TOKEN": flock.variable.word}
        show("added", await hub.connectors.add("local", **stdio(), env=env, **quick()))
        personal: dict[str, Any] = {"auth": {"kind": "bearer"}, "personal": ["auth"]}
        await hub.connectors.add("mine", url=mcp, shared=True, connect=False, **personal, **quick())
        show("set", await hub.credentials.set("mine", {"auth": SecretStr(flock.personal.token)}))
        for tool in ("fail", "fault", "crash", "refuse", "odd", "absent"):
            show("output", await hub.call(f"mcp_bearer_{tool}", {"text": "x"}))
            show("output", await hub.call(f"mcp_mine_{tool}", {"text": "x"}))
        show("output", await hub.call("mcp_bearer_fail", {"count": flock.argument.word}))
        assert (await hub.call("mcp_bearer_whoami", {"text": flock.argument.word})).ok
        wrong: dict[str, Any] = {"url": flock.field.word}
        cases: list[dict[str, Any]] = [
            wrong,
            {"url": mcp, "auth": {"kind": flock.field.word}},
            {"command": mcp, "env": wrong},
        ]
        for facts in cases:
            try:
                await hub.connectors.add("wrong", **facts, transport=cast(Any, flock.field.word))
            except DragomanError as error:
                show("error", error)
                shown[f"{len(shown)} traceback"] = "".join(traceback.format_exception(error)).encode()
        for listed in (await hub.connectors.list(), await hub.credentials.list(), hub.tools.list()):
            show("list", listed)
        for part in (hub, hub.connectors, hub.credentials, hub.settings, hub.caller, hub.tools, hub.audit):
            shown[f"{len(shown)} {type(part).__name__}"] = repr(part).encode()
    address = f"postgresql://ada:{flock.database.heart}@127.0.0.1/x"
    show("settings", Settings(home=tmp_path, database_url=address, key=flock.database.word))
    key = KeyFile(tmp_path / "key").get()
    for value in (key, KeyRing(key), KeyFile(tmp_path / "key"), Key(bytes(32))):
        shown[f"{len(shown)} key"] = repr(value).encode()
    shown["request"] = repr(NewConnector(name="x", bearer=SecretStr(flock.bearer.token))).encode()
    shown["values"] = repr(NewCredential(values={"auth": SecretStr(flock.personal.token)})).encode()
    spans = exporter.get_finished_spans()
    assert len(spans) >= 13
    shown["spans"] = " ".join(span.to_json() for span in spans).encode()
    assert flock.found_in(" ".join(tattler.seen).encode()) >= {"bearer", "personal"}
    assert flock.leaks(shown) == []


def _uncleaned(_: Redactor, message: Any) -> Any:
    return message


def _unsplit(configuration: Configuration, marked: frozenset[str] = frozenset()) -> SplitConfiguration:
    return SplitConfiguration(configuration, {})
