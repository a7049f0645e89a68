"""One person's data, whole: exported by every door that has it, erased so that no file holds a word of it."""

from pathlib import Path
from typing import Any

import pytest
from population import Tenant, Town, open_town

from patience import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
CHOSEN = ("canarythread", "canarykey", "canaryagent", "canarylabel")


async def furnish_more(town: Town, tenant: Tenant) -> None:
    """What the town's people do not do: names of their own choice, allowances, preferences, a budget."""
    ask = town.ask
    assert (await ask(tenant, "POST", "/api/threads", {"id": CHOSEN[0], "title": "x"})).status == 201
    load = {"thread": CHOSEN[0], "tools": ["mcp_own_whoami"]}
    assert (await ask(tenant, "POST", "/api/tools/load", load)).status == 200
    assert (await ask(tenant, "POST", "/api/keys", {"name": CHOSEN[1]})).status == 201
    agent = {"name": CHOSEN[2], "instructions": CHOSEN[3], "connectors": ["own"]}
    assert (await ask(tenant, "POST", "/api/agents", agent)).status == 201
    bundle = {"name": "chosen", "title": CHOSEN[3], "tools": ["own"]}
    assert (await ask(tenant, "POST", "/api/bundles", bundle)).status == 201
    assert (await ask(tenant, "PATCH", "/api/preferences", {"limits": {"calls_per_hour": 500}})).status == 200
    for approval in tenant.ids["approval"]:
        answer = await ask(tenant, "POST", f"/api/approvals/{approval}/answer", {"answer": "always"})
        assert answer.status == 200, answer.body
    assert (await ask(tenant, "POST", "/api/call", {"tool": "mcp_own_whoami", "arguments": {}})).status == 200


def words_of(tenant: Tenant) -> list[str]:
    return [tenant.private, tenant.token, tenant.user, *CHOSEN]


def files_with(home: Path, words: list[str]) -> set[str]:
    """Words that stand in any file of the home."""
    return {
        word
        for word in words
        for file in home.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes()
    }


async def exported(town: Town, path: str, tenant: Tenant) -> dict[str, list[dict[str, Any]]]:
    reply = await town.ask(tenant, "GET", path)
    assert reply.status == 200, reply.body
    for run in reply.value.get("runs", ()):
        # One that waits for its person goes on being held, and is taken up anew where the machine is busy.
        for changing in ("lease_until", "worker", "status", "usage"):
            del run[changing]
    return reply.value


async def test_a_person_is_exported_whole_and_erased_without_a_trace(tmp_path: Path) -> None:
    async with open_town(tmp_path, seed=7, workspaces=1, users=2) as town:
        admin, member = town.tenants
        await furnish_more(town, member)
        name = f"{member.common}-user1"

        own = await exported(town, "/api/me/export", member)
        path = f"/api/users/{name}/export"
        assert (await town.ask(admin, "GET", path)).status == 403, "what a member keeps is not for an admin"
        by_operator = (await town.live.ask("GET", f"{path}?workspace={member.workspace}")).value
        assert {table: len(rows) for table, rows in own.items() if table != "audit"} == {
            table: len(rows) for table, rows in by_operator.items() if table != "audit"
        }
        assert {*own} >= {
            *("threads", "messages", "runs", "run_steps", "run_events", "questions", "calls", "results"),
            *("api_keys", "approvals", "allowances", "connectors", "tools", "secrets", "agents", "usage"),
            *("loaded_tools", "recipes", "bundles", "users", "audit"),
        }
        text = str(own)
        assert member.private in text
        assert own["approvals"][0]["asked"]["arguments"] == {"text": member.common}
        assert member.token not in text  # a secret is named, not told
        assert [one["name"] for one in own["secrets"]]
        assert admin.private not in text
        refused = await town.ask(member, "GET", f"/api/users/{admin.user}/export")
        assert refused.status in (403, 404)
        assert {member.private, *CHOSEN} <= files_with(tmp_path, words_of(member))

        async def are_at_rest() -> bool:
            runs = (await town.ask(admin, "GET", "/api/me/export")).value["runs"]
            return all(run["status"] not in ("queued", "running") for run in runs)

        await until(are_at_rest, within=30)  # they have ended, or wait for their person
        others = await exported(town, "/api/me/export", admin)
        refused = await town.ask(member, "POST", f"/api/users/{admin.user}/erase")
        assert refused.status in (403, 404)
        done = await town.ask(admin, "POST", f"/api/users/{name}/erase")
        assert done.status == 200, done.body
        assert (done.value["entries"] > 0, done.value["is_compact"]) == (True, True)
        left = files_with(tmp_path, [*words_of(member), name])
        assert left <= {member.user}  # in what processes tell each other, for an hour

        assert (await town.ask(member, "GET", "/api/me")).status == 401
        verdict = (await town.ask(admin, "GET", "/api/audit/verify")).value
        assert (verdict["is_whole"], verdict["erased"]) == (True, done.value["entries"])
        trail = (await town.ask(admin, "GET", "/api/audit?limit=1000")).value["entries"]
        assert {one["user"] for one in trail} >= {done.value["pseudonym"], admin.user}
        await until(are_at_rest, within=30)  # what was taken up again waits again
        after = await exported(town, "/api/me/export", admin)
        unchanged = {
            table: rows for table, rows in others.items() if table not in ("audit", "calls", "usage")
        }
        taken_up = {table: unchanged.pop(table) for table in ("run_events", "run_steps")}
        for there in (after, unchanged):  # renewed while runs wait, and with every request
            for row in (*there["runs"], *there["api_keys"]):
                row.pop("lease_until", None)
                row.pop("last_used_at", None)
        assert {table: after[table] for table in unchanged} == unchanged
        assert all(row in after[table] for table, rows in taken_up.items() for row in rows)
        gone = await town.ask(admin, "POST", f"/api/users/{name}/erase")
        assert gone.status == 404
