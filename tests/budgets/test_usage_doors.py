"""What was used, by library, REST and command; and what a refused call looks like over REST."""

import asyncio
import json
from pathlib import Path

import pytest
from crowd import ADA, away_from_the_end_of_the_hour, put_user

from api.live import open_service
from cli.command_line import Command
from dragoman import Caller, Hub, Settings
from dragoman.errors import NotFound
from dragoman.scope import LOCAL_CALLER

pytestmark = pytest.mark.anyio
LIMITS = ["calls_per_hour", "tokens_per_day", "cost_per_day", "calls_per_minute", "max_concurrency"]


def work() -> str:
    return "done"


async def test_a_refused_call_says_over_rest_when_to_come_again(tmp_path: Path, database_url: str) -> None:
    await away_from_the_end_of_the_hour()
    await put_user(database_url, LOCAL_CALLER, calls_per_hour=2, tokens_per_day=1000)
    async with open_service(tmp_path, database_url=database_url) as live:
        live.hub.add_tool(work)
        assert (await live.call("work"))["ok"]
        assert (await live.call("work"))["ok"]
        output = await live.call("work")
        assert (output["ok"], output["error"]["code"]) == (False, "limit_reached")
        assert 0 < output["error"]["retry_after"] <= 3600
        usage = (await live.ask("GET", "/api/usage")).value
        by_name = {use["name"]: use for use in usage["uses"]}
        assert set(by_name) == {*LIMITS, "max_connectors_per_thread"}
        assert by_name["calls_per_hour"]["used"] == by_name["calls_per_hour"]["limit"] == 2
        assert by_name["calls_per_hour"]["set_by"] == "an admin"
        assert by_name["calls_per_hour"]["resets_at"]
        assert 0 < by_name["tokens_per_day"]["used"] < 10
        assert by_name["cost_per_day"] == {
            **dict.fromkeys(("name", "bound"), "cost_per_day"),
            **dict.fromkeys(("used", "limit", "set_by", "resets_at")),
        }
        assert (await live.ask("GET", "/api/usage?user=nobody")).status == 404


async def test_admins_ask_for_anybody_of_their_workspace_and_members_for_themselves(
    tmp_path: Path, database_url: str
) -> None:
    await put_user(database_url, ADA, calls_per_hour=2)
    async with Hub(Settings(home=tmp_path, database_url=database_url)) as hub:
        hub.add_tool(work)
        await hub.acting_for(ADA).call("work")
        await hub.acting_for(ADA).calls()  # writes the records
        admin = Caller(workspace="acme", user="root", role="admin")
        view = await hub.acting_for(admin).usage.show("ada")
        assert (view.user, view.calls_last_hour, view.calls_last_day) == ("ada", 1, 1)
        assert (await hub.acting_for(admin).usage.show()).calls_last_day == 0
        for caller in (
            Caller(workspace="acme", user="bob"),
            Caller(workspace="other", user="root", role="admin"),
        ):
            with pytest.raises(NotFound):
                await hub.acting_for(caller).usage.show("ada")


def test_the_command_shows_limits_and_what_is_used(dragoman: Command, home: Path) -> None:
    asyncio.run(put_user(f"sqlite:///{home}/dragoman.db", LOCAL_CALLER, calls_per_hour=1200))
    shown = [dragoman("usage", "show", *words).out for words in ([], ["--json"])]
    assert "calls per hour" in shown[0]
    assert "1,200" in shown[0]
    assert "an admin" in shown[0]
    assert json.loads(shown[1])["user"] == "owner"
