"""Agents, queries to connectors and models by REST, and whose they are."""

from pathlib import Path
from typing import Any

import pytest
from live import Live, Reply
from scripted import open_conversations

from dragoman.web.scopes import needed_scope
from servers.hubs import QUICK
from servers.processes import stdio

pytestmark = pytest.mark.anyio
ALL = ["read", "call", "manage", "approve", "admin"]


async def added(live: Live, name: str) -> None:
    reply = await live.ask("POST", "/api/connectors", {"name": name, **QUICK, **stdio()})
    assert reply.status == 201, reply.body


async def test_a_worker_lives_from_creation_to_removal(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        await added(live, "email_mcp")
        new = {
            "name": "Mailer",
            "instructions": "Reads mail.",
            "model": "scripted",
            "fallbacks": ["scripted"],
        }
        made = await live.ask("POST", "/api/agents", new)
        assert (made.status, made.headers["Location"]) == (201, "/api/agents/Mailer")
        assert (made.value["kind"], made.value["status"], made.value["connectors"]) == (
            "worker",
            "active",
            [],
        )
        one = "/api/agents/mailer"
        assert (await live.ask("PUT", f"{one}/connectors/email_mcp")).value["connectors"] == ["email-mcp"]
        assert (await live.ask("PUT", f"{one}/connectors/email-mcp")).value["connectors"] == ["email-mcp"]
        changed = await live.ask("PATCH", one, {"description": "reads", "model": None, "capabilities": ["a"]})
        assert (changed.value["description"], changed.value["model"]) == ("reads", None)
        assert (changed.value["capabilities"], changed.value["instructions"]) == (["a"], "Reads mail.")
        assert (await live.ask("POST", f"{one}/stop")).value["status"] == "stopped"
        assert (await live.ask("POST", f"{one}/start")).value["status"] == "active"
        await live.ask("POST", "/api/messages?wait=true", {"text": "@mailer hello"})
        shown = (await live.ask("GET", one)).value
        assert (shown["numbers"]["runs"], shown["numbers"]["errors"]) == (1, 0)
        assert shown["numbers"]["last_used"]
        listed = (await live.ask("GET", "/api/agents")).value["agents"]
        assert [(agent["name"], agent["kind"]) for agent in listed] == [
            ("assistant", "assistant"),
            ("Mailer", "worker"),
            ("email-mcp", "connector"),
        ]
        assert (await live.ask("DELETE", f"{one}/connectors/email-mcp")).value["connectors"] == []
        assert (await live.ask("DELETE", one)).status == 204
        assert (await live.ask("GET", one)).status == 404


async def test_the_names_that_people_already_use_are_understood(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        await added(live, "email_mcp")
        await live.ask("POST", "/api/agents", {"name": "mailer"})
        spellings: list[dict[str, Any]] = [
            {"agent_name": "mailer", "server_name": "email_mcp"},
            {"agentName": "mailer", "serverName": "email-mcp"},
            {"agent": "mailer", "action_server": "email_mcp", "reason": "because"},
            {"agent_id": "mailer", "actionServerName": "email_mcp"},
        ]
        for body in spellings:
            given = await live.ask("POST", "/agents/assign-action-server", body)
            assert (given.status, given.value["agent"]["connectors"]) == (200, ["email-mcp"]), given.body
            taken = await live.ask("POST", "/agents/remove-action-server", body)
            assert (taken.status, taken.value["agent"]["connectors"]) == (200, []), taken.body
        for body, status in (
            ({"agent_name": "nobody", "server_name": "email_mcp"}, 404),
            ({"agent_name": "mailer", "server_name": "nothing"}, 404),
            ({"agent_name": "mailer"}, 422),
        ):
            assert (await live.ask("POST", "/agents/assign-action-server", body)).status == status
        for body in spellings[:2]:
            await live.ask("POST", "/agents/assign-action-server", body)
            taken = await live.ask("POST", "/agents/remove-action-server", {"agent_name": "mailer"})
            assert (taken.status, taken.value["agent"]["connectors"]) == (200, []), taken.body
        await live.hub.agents.create("reader", connectors=None)
        taken = await live.ask("POST", "/agents/remove-action-server", {"agent_name": "reader"})
        assert (taken.status, taken.value["agent"]["connectors"]) == (200, []), taken.body
        servers = (await live.ask("GET", "/action-servers/available")).value["action_servers"]
        assert [server["name"] for server in servers] == ["email_mcp"]


async def test_bad_agents_are_refused_with_a_hint(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        await live.ask("POST", "/api/agents", {"name": "mailer"})
        expected: list[tuple[str, str, Any, int, str]] = [
            ("POST", "/api/agents", {"name": "MAILER"}, 409, "conflict"),
            ("POST", "/api/agents", {"name": "assistant"}, 422, "invalid_name"),
            ("POST", "/api/agents", {"name": "everyone"}, 422, "invalid_name"),
            ("POST", "/api/agents", {"name": "a@b.c"}, 422, "invalid_name"),
            ("POST", "/api/agents", {"name": ""}, 422, "invalid_name"),
            ("POST", "/api/agents", {"name": "a", "model": "nothing"}, 422, "invalid_config"),
            ("POST", "/api/agents", {"name": "a", "fallbacks": ["nothing"]}, 422, "invalid_config"),
            ("POST", "/api/agents", {"name": "a", "connectors": ["nothing"]}, 404, "not_found"),
            ("POST", "/api/agents", {"name": "a", "instructions": "x" * 20_001}, 422, "invalid_request"),
            ("POST", "/api/agents", {"name": "a", "modle": "x"}, 422, "invalid_request"),
            ("PATCH", "/api/agents/mailer", {"model": "nothing"}, 422, "invalid_config"),
            ("PATCH", "/api/agents/mailer", {"name": "other"}, 422, "invalid_request"),
            ("PATCH", "/api/agents/assistant", {"connectors": []}, 422, "invalid_arguments"),
            ("PATCH", "/api/agents/nobody", {"model": "nothing"}, 404, "not_found"),
            ("PUT", "/api/agents/mailer/connectors/nothing", None, 404, "not_found"),
            ("DELETE", "/api/agents/mailer/connectors/nothing", None, 404, "not_found"),
            ("DELETE", "/api/agents/assistant", None, 422, "invalid_arguments"),
            ("POST", "/api/agents/assistant/stop", None, 422, "invalid_arguments"),
            ("POST", "/api/agents/nobody/start", None, 404, "not_found"),
            ("GET", "/api/agents/mailr", None, 404, "not_found"),
        ]
        for method, path, body, status, code in expected:
            reply = await live.ask(method, path, body)
            where = (method, path, str(body)[:80], reply.body)
            assert (reply.status, reply.value.get("code")) == (status, code), where
            assert reply.value["hint"], where
        assert [one["name"] for one in (await live.ask("GET", "/api/agents")).value["agents"]] == [
            "assistant",
            "mailer",
        ]


async def test_a_connector_is_asked_in_the_one_form(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        await added(live, "raw")
        answered = await live.ask("POST", "/api/connectors/raw/query", {"query": "hello", "maxTools": 3})
        assert (answered.status, set(answered.value)) == (200, {"status", "data", "metadata"})
        assert answered.value["status"] == "success"
        facts = answered.value["metadata"]
        assert facts["connector_name"] == "raw"
        assert {"connector_id", "plan", "tools_used", "contexts", "answer", "usage"} <= set(facts)
        run = (await live.ask("GET", f"/api/runs/{facts['run']}")).value["run"]
        assert (run["status"], run["thread"], run["options"]["max_tools"]) == ("done", None, 3)
        for name in ("connector_id", "connectorId"):
            body = {name: facts["connector_id"], "query": "hello", "plan_only": True}
            assert (await live.ask("POST", "/api/query_mcp_connector", body)).value["status"] == "success"
        for path, body in (
            ("/api/connectors/nothing/query", {"query": "hello"}),
            ("/api/query_mcp_connector", {"connector_id": "nothing", "query": "hello"}),
        ):
            missing = await live.ask("POST", path, body)
            assert (missing.status, missing.value["status"]) == (200, "error"), "the call was understood"
            assert missing.value["error"]["code"] == "CONNECTOR_NOT_FOUND"
        for body in ({}, {"query": " "}, {"query": "x", "max_tools": 0}, {"query": "x", "odd": 1}):
            assert (await live.ask("POST", "/api/connectors/raw/query", body)).status == 422


async def test_a_query_that_is_not_waited_for_tells_its_run_at_once_and_its_answer_later(
    tmp_path: Path, database_url: str
) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        await added(live, "raw")
        waited = await live.ask("POST", "/api/connectors/raw/query", {"query": "hello"})
        begun = await live.ask("POST", "/api/connectors/raw/query?wait=false", {"query": "hello"})
        run = begun.value["run"]["id"]
        assert (begun.status, begun.headers["Location"]) == (202, f"/api/runs/{run}")
        async for _ in live.hub.runs.follow(run):
            pass
        answer = await live.ask("GET", f"/api/connectors/raw/query/{run}")
        assert (answer.status, answer.value["data"]) == (200, waited.value["data"])
        assert (answer.value["metadata"]["run"], set(answer.value)) == (run, set(waited.value))
        nobody = await live.ask("POST", "/api/connectors/nothing/query?wait=false", {"query": "hello"})
        assert (nobody.status, nobody.value["error"]["code"]) == (200, "CONNECTOR_NOT_FOUND")
        said = await live.ask("POST", "/api/messages", {"text": "hello"})
        for path in (f"nothing/query/{run}", "raw/query/run_none", f"raw/query/{said.value['run']['id']}"):
            assert (await live.ask("GET", f"/api/connectors/{path}")).status == 404, path


async def test_models_are_listed_with_the_default(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        models = (await live.ask("GET", "/api/models")).value["models"]
        assert [one["model"] for one in models if one["is_default"]] == ["scripted"]
        assert models[-1]["model"] == "offline"


async def test_a_key_that_may_not_manage_does_not_by_its_assistant(tmp_path: Path) -> None:
    async with open_conversations(tmp_path, multi_user=True) as (live, _):
        await live.ask("POST", "/api/users", {"name": "ada", "role": "member"})
        for scopes in (["read", "call"], ["read", "call", "manage"]):
            wish = {"name": "key", "user": "ada", "scopes": scopes}
            key = f"Bearer {(await live.ask('POST', '/api/keys', wish)).value['key']}"
            asked = {"text": "hire somebody"}
            reply = await live.ask("POST", "/api/messages?wait=true", asked, Authorization=key)
            assert reply.value["run"]["status"] == "done", reply.body
            agents = (await live.ask("GET", "/api/agents", Authorization=key)).value["agents"]
            assert ("hired" in [one["name"] for one in agents]) == ("manage" in scopes)


async def test_what_is_anothers_does_not_exist(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url, multi_user=True) as (live, _):
        keys: list[str] = []
        for workspace, user in (("acme", "ada"), ("acme", "bob"), ("other", "eve")):
            await live.ask("POST", "/api/workspaces", {"name": workspace})
            await live.ask("POST", "/api/users", {"name": user, "role": "member", "workspace": workspace})
            wish = {"name": user, "user": user, "workspace": workspace, "scopes": ALL[:4]}
            keys.append((await live.ask("POST", "/api/keys", wish)).value["key"])

        async def ask(number: int, method: str, path: str, body: Any = None) -> Reply:
            return await live.ask(method, path, body, Authorization=f"Bearer {keys[number]}")

        assert (await ask(0, "POST", "/api/agents", {"name": "helper"})).status == 201
        run = (await ask(0, "POST", "/api/messages?wait=true", {"text": "which one"})).value["run"]
        (question,) = (await ask(0, "GET", "/api/questions")).value["questions"]
        assert run["status"] == "waiting"
        asks: list[tuple[str, str, Any]] = [
            ("GET", f"/api/threads/{run['thread']}/messages", None),
            ("POST", f"/api/threads/{run['thread']}/messages", {"text": "red"}),
            ("GET", f"/api/threads/{run['thread']}/events", None),
            ("GET", f"/api/runs/{run['id']}", None),
            ("GET", f"/api/runs/{run['id']}/timeline", None),
            ("GET", f"/api/runs/{run['id']}/prompts", None),
            ("GET", f"/api/runs/{run['id']}/events", None),
            ("GET", f"/api/runs/{run['id']}/events?after=1", None),
            ("POST", f"/api/runs/{run['id']}/cancel", None),
            ("POST", f"/api/runs/{run['id']}/thumb", {"thumb": -1}),
            ("GET", f"/api/questions/{question['id']}", None),
            ("POST", f"/api/questions/{question['id']}", {"answer": "red"}),
            ("GET", "/api/agents/helper", None),
            ("PATCH", "/api/agents/helper", {"instructions": "x"}),
            ("DELETE", "/api/agents/helper", None),
            ("POST", "/api/agents/helper/stop", None),
        ]
        for stranger in (1, 2):
            for method, path, body in asks:
                reply = await ask(stranger, method, path, body)
                assert (reply.status, reply.value["code"]) == (404, "not_found"), (stranger, path, reply.body)
            for path in ("/api/runs", "/api/questions?status=all", f"/api/runs?thread={run['thread']}"):
                assert run["id"].encode() not in (await ask(stranger, "GET", path)).body
            assert b"helper" not in (await ask(stranger, "GET", "/api/agents")).body
        assert (await ask(1, "POST", "/api/agents", {"name": "x", "shared": True})).status == 403
        assert (await ask(2, "POST", "/api/agents", {"name": "helper"})).status == 201, "names do not meet"
        kept = (await ask(0, "GET", f"/api/runs/{run['id']}")).value["run"]
        assert kept["status"] == "waiting"


def test_each_request_needs_the_scope_of_what_it_does() -> None:
    expected = {
        "read": [
            ("GET", "/api/runs"),
            ("GET", "/api/connectors/c/query/r"),
            ("GET", "/api/threads/t/events"),
            ("GET", "/api/models"),
        ],
        "call": [
            ("POST", "/api/messages"),
            ("POST", "/api/threads/t/messages"),
            ("POST", "/api/runs/r/cancel"),
            ("POST", "/api/runs/r/thumb"),
            ("POST", "/api/connectors/c/query"),
            ("POST", "/api/query_mcp_connector"),
        ],
        "approve": [("POST", "/api/questions/q")],
        "manage": [
            ("POST", "/api/agents"),
            ("PATCH", "/api/agents/a"),
            ("PUT", "/api/agents/a/connectors/c"),
            ("POST", "/api/agents/a/stop"),
            ("POST", "/agents/assign-action-server"),
            ("POST", "/api/threads"),
        ],
    }
    for scope, requests in expected.items():
        for method, path in requests:
            assert needed_scope(method, path) == scope, (method, path)
