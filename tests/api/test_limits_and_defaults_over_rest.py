"""People call them limits, and null sets back to the default: workspaces, users, preferences, agents."""

from pathlib import Path
from typing import Any

import pytest
from live import open_service

pytestmark = pytest.mark.anyio


async def test_limits_are_told_and_taken_by_both_names_for_one_version(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:
        new = {"name": "ann", "limits": {"calls_per_hour": 5}}
        ann = (await live.ask("POST", "/api/users", new)).value
        assert ann["limits"] == ann["bounds"]
        assert ann["limits"]["calls_per_hour"] == 5
        changed = await live.ask("PATCH", "/api/users/ann", {"bounds": {"cost_per_day": 2.5}})
        assert (changed.value["limits"]["calls_per_hour"], changed.value["limits"]["cost_per_day"]) == (
            5,
            2.5,
        )
        place = await live.ask("PATCH", "/api/workspaces/local", {"limits": {"calls_per_minute": 9}})
        assert place.value["limits"]["calls_per_minute"] == 9
        mine = await live.ask("PATCH", "/api/preferences", {"limits": {"calls_per_minute": 4}})
        assert (mine.value["limits"]["calls_per_minute"], mine.value["above"]["calls_per_minute"]) == (4, 9)
        assert (await live.ask("GET", "/api/me")).value["limits"]["calls_per_minute"] == 4
        uses = (await live.ask("GET", "/api/usage")).value["uses"]
        assert {use["name"]: use["limit"] for use in uses}["calls_per_minute"] == 4


async def test_null_sets_back_to_the_default(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:

        async def patched(path: str, changes: dict[str, Any]) -> Any:
            reply = await live.ask("PATCH", f"/api/{path}", changes)
            assert reply.status == 200, reply.body
            return reply.value

        new = {"name": "ann", "role": "admin", "capabilities": ["mcp_time"], "limits": {"calls_per_hour": 5}}
        await live.ask("POST", "/api/users", new)
        kept = await patched("users/ann", {"is_active": True})
        assert (kept["role"], kept["capabilities"], kept["limits"]["calls_per_hour"]) == (
            "admin",
            ["mcp_time"],
            5,
        )
        back = await patched("users/ann", {"role": None, "capabilities": None, "limits": None})
        assert (back["role"], back["capabilities"]) == ("member", ["mcp_integration"])
        assert {*back["limits"].values()} == {None}
        await patched("workspaces/local", {"approval": "always", "limits": {"calls_per_hour": 7}})
        place = await patched("workspaces/local", {"approval": None, "limits": {"calls_per_hour": None}})
        assert (place["approval"], place["limits"]["calls_per_hour"]) == ("default", None)
        await patched("preferences", {"auto_load": False, "limits": {"calls_per_hour": 7}})
        mine = await patched("preferences", {"auto_load": None, "limits": None})
        assert (mine["auto_load"], mine["limits"]["calls_per_hour"]) == (True, None)
        worker = {"name": "w", "description": "d", "exposure": "search", "capabilities": ["mcp_time"]}
        await live.ask("POST", "/api/agents", {**worker, "model": "offline"})
        settings = ("description", "exposure", "capabilities", "model", "fallbacks")
        agent = await patched("agents/w", dict.fromkeys(settings))
        assert [agent[name] for name in settings] == ["", "auto", None, None, []]


async def test_a_member_sets_nothing_of_a_user_back(tmp_path: Path) -> None:
    """What takes away a limit is a right to widen."""
    async with open_service(tmp_path, multi_user=True) as live:
        await live.ask("POST", "/api/users", {"name": "ann", "limits": {"calls_per_hour": 5}})
        key = await live.ask("POST", "/api/keys", {"name": "k", "user": "ann", "scopes": ["read", "manage"]})
        for changes in ({"limits": None}, {"capabilities": None}, {"limits": {"calls_per_hour": None}}):
            reply = await live.ask(
                "PATCH", "/api/users/ann", changes, Authorization=f"Bearer {key.value['key']}"
            )
            assert reply.status == 403, reply.body
