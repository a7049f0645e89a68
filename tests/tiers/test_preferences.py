"""What a user prefers: a default set of their own, and limits that narrow what others allow, never widen."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller
from dragoman.errors import InvalidArguments, NotFound
from dragoman.people import UserLimits
from tiers.people import ADA, BOB, open_team

pytestmark = pytest.mark.anyio


async def test_a_user_narrows_what_admin_and_workspace_allow_and_never_widens_it(
    tmp_path: Path, database_url: str
) -> None:
    workspace = UserLimits(calls_per_hour=100, cost_per_day=2.5)
    admins = UserLimits(calls_per_hour=50)
    async with open_team(tmp_path, database_url, limits=workspace, admin_limits=admins) as hub:
        before = await hub.acting_for(ADA).preferences.get()
        assert (before.above.calls_per_hour, before.above.cost_per_day) == (50, 2.5)
        for wrong in (UserLimits(calls_per_hour=51), UserLimits(cost_per_day=2.51)):
            with pytest.raises(InvalidArguments, match="may be at most"):
                await hub.acting_for(ADA).preferences.update(limits=wrong)
        assert await hub.acting_for(ADA).preferences.get() == before, "nothing of a refused change is kept"
        after = await hub.acting_for(ADA).preferences.update(
            limits={"calls_per_hour": 50, "cost_per_day": 1, "tokens_per_day": 1000}
        )
        assert after.in_force == UserLimits(calls_per_hour=50, cost_per_day=1.0, tokens_per_day=1000)
        assert (await hub.acting_for(BOB).preferences.get()).in_force == workspace
        await hub.acting_for(ADA).preferences.update(limits={"calls_per_hour": None})
    async with open_team(tmp_path / "again", database_url, limits=workspace, admin_limits=admins) as hub:
        await hub.acting_for(ADA).preferences.update(limits={"tokens_per_day": 7})
        assert (await hub.acting_for(ADA).preferences.get()).in_force == UserLimits(
            calls_per_hour=50, cost_per_day=2.5, tokens_per_day=7
        )


@pytest.mark.parametrize(
    "limits",
    [
        {"calls_per_hour": -1},
        {"calls_per_hour": 1.5},
        {"calls_per_hour": True},
        {"cost_per_day": float("nan")},
        {"cost_per_day": float("inf")},
        {"calls_per_our": 1},
    ],
)
async def test_a_limit_that_makes_no_sense_is_refused(tmp_path: Path, sqlite_url: str, limits: Any) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        with pytest.raises(InvalidArguments) as caught:
            await hub.acting_for(ADA).preferences.update(limits=limits)
        assert caught.value.hint
        assert (await hub.acting_for(ADA).preferences.get()).preferences.limits == UserLimits()


async def test_a_default_set_holds_what_exists_and_keeps_the_rest_of_the_user(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_team(tmp_path, sqlite_url, admin_limits=UserLimits(calls_per_hour=5)) as hub:
        with pytest.raises(NotFound, match="nothing-such"):
            await hub.acting_for(ADA).preferences.update(connectors=["nothing-such"])
        view = await hub.acting_for(ADA).preferences.update(connectors=["native", "native"])
        assert view.preferences.connectors == ("native",)
        assert view.above.calls_per_hour == 5
        assert (await hub.acting_for(ADA).preferences.update(connectors=None)).preferences.connectors is None
        with pytest.raises(NotFound, match="no record"):
            await hub.acting_for(Caller("north", "somebody")).preferences.update(auto_load=False)


async def test_the_librarys_old_keyword_is_understood_with_a_warning(tmp_path: Path, sqlite_url: str) -> None:
    async with open_team(tmp_path, sqlite_url) as hub:
        given: dict[str, Any] = {"bounds": UserLimits(calls_per_hour=5)}
        with pytest.warns(DeprecationWarning, match="limits="):
            bob = await hub.people.add_user("bob", **given)
        with pytest.warns(DeprecationWarning, match="limits="):
            await hub.people.update_workspace("local", **given)
        given = {"bounds": {"calls_per_hour": 4}}
        with pytest.warns(DeprecationWarning, match="limits="):
            mine = await hub.preferences.update(**given)
        assert bob.limits == bob.bounds == UserLimits(calls_per_hour=5)
        assert (mine.above.calls_per_hour, mine.in_force.calls_per_hour) == (5, 4)
