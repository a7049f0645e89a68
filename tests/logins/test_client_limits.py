"""Limits of one client or key: they count for it alone, and what is allowed for longer holds for it alone."""

from pathlib import Path
from typing import Any

import pytest

from api.live import Live, open_service
from budgets.crowd import away_from_the_end_of_the_hour
from logins.client_flow import Client, Person, message_of
from servers.processes import stdio

pytestmark = pytest.mark.anyio


async def two_clients(live: Live) -> tuple[Client, Client, Person]:
    person = await Person.signed_in(live)
    one, other = Client(live), Client(live)
    for client, name in ((one, "Cursor"), (other, "Codex")):
        await client.register(client_name=name)
        await client.log_in(person)
    return one, other, person


async def id_of(live: Live, name: str) -> str:
    return next(key.id for key in await live.hub.clients.list() if key.name == name)


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    return message_of(await client.ask("tools/call", name=tool, arguments=arguments))["result"]


async def is_done(client: Client) -> bool:
    return not (await called(client, "mcp_mail_echo", text="hi")).get("isError")


async def test_limits_of_a_client_count_what_comes_through_it_and_nothing_else(tmp_path: Path) -> None:
    await away_from_the_end_of_the_hour()
    async with open_service(tmp_path, defer_tools="never") as live:
        await live.hub.connectors.add("mail", shared=True, **stdio())
        one, other, person = await two_clients(live)
        path = f"/api/clients/{await id_of(live, 'Cursor')}"
        limits = {"calls_per_hour": 2, "tokens_per_day": 1000}
        changed = await live.ask("PATCH", path, {"limits": limits})
        assert {name: changed.value["limits"][name] for name in limits} == limits
        assert await is_done(one)
        assert await is_done(one)
        refused = str(await called(one, "mcp_mail_echo", text="hi"))
        assert "the limit of 2 calls an hour is reached" in refused
        assert "set by the client 'Cursor'" in refused
        assert await is_done(other)
        assert (await live.call("mcp_mail_echo", text="hi"))["ok"], "another way is not counted with it"
        (usage,) = (await live.ask("GET", "/api/usage")).value["keys"]
        used = {use["name"]: (use["used"], use["limit"]) for use in usage["uses"]}
        assert (usage["name"], usage["is_client"], used["calls_per_hour"]) == ("Cursor", True, (2, 2))
        assert 0 < used["tokens_per_day"][0] < 100

        await Client(live, id=one.id).log_in(person)  # anew: it has the limits that it had
        its = [key.limits.calls_per_hour for key in await live.hub.clients.list() if key.name == "Cursor"]
        assert its == [2, 2]
        await live.ask("PATCH", path, {"limits": None})
        assert await is_done(one)


async def test_calls_of_a_run_count_for_the_key_that_began_it(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("mail", shared=True, **stdio())
        made, key = await live.hub.people.add_key("script", limits={"calls_per_hour": 0})
        own = {"Authorization": f"Bearer {key}"}
        begun = await live.ask("POST", "/api/messages", {"text": "hello"}, **own)
        run = await live.hub.runs.get(begun.value["run"]["id"])
        assert run.caller.key == made.id
        output = await live.hub.acting_for(run.caller).call("mcp_mail_echo", {"text": "hi"})
        assert output.error is not None
        assert (output.error.code, "the key 'script'" in str(output.error.hint)) == ("limit_reached", True)
        direct = await live.ask("POST", "/api/call", {"tool": "mcp_mail_echo", "arguments": {}}, **own)
        assert not direct.value["ok"]


async def test_a_key_with_limits_makes_no_key_and_lifts_no_limit(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:
        await live.hub.people.add_user("ann")
        made, key = await live.hub.people.add_key(
            "laptop", user="ann", scopes=("read", "call", "manage"), limits={"calls_per_hour": 5}
        )
        own = {"Authorization": f"Bearer {key}"}
        assert (await live.ask("POST", "/api/keys", {"name": "more"}, **own)).status == 403
        path = f"/api/keys/{made.id}"
        for limits in ({"calls_per_hour": 6}, {"calls_per_hour": None}, None):
            assert (await live.ask("PATCH", path, {"limits": limits}, **own)).status == 403, limits
        assert (await live.ask("PATCH", path, {"limits": {"calls_per_hour": 4}}, **own)).status == 200
        client = Client(live)
        await client.register()
        assert (await (await Person.signed_in(live, key)).answer(client.query())).status == 403


async def test_what_is_allowed_for_longer_through_a_client_is_allowed_to_it_alone(tmp_path: Path) -> None:
    async with open_service(tmp_path, defer_tools="never", approval_wait=0.01) as live:
        await live.hub.connectors.add("mail", shared=True, **stdio())
        one, other, _ = await two_clients(live)
        assert "approval_pending" in str(await called(one, "mcp_mail_add", a=1, b=2))
        (question,) = await live.hub.approvals.list()
        await live.hub.approvals.answer(question.approval.id, "always")
        assert not (await called(one, "mcp_mail_add", a=3, b=4)).get("isError")
        assert "approval_pending" in str(await called(other, "mcp_mail_add", a=1, b=2))
        (allowed,) = (await live.ask("GET", "/api/approvals/allowed")).value["allowed"]
        assert allowed["key"] == await id_of(live, "Cursor")
