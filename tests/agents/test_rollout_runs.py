"""A rollout at work: arms, figures, the way back, and what survives a restart. On both databases."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from exposed import Call, Listening, Seen, in_turn, open_exposed

from api.live import open_service
from dragoman import Caller, Hub
from dragoman.errors import Denied, NotFound
from dragoman.events import Event
from dragoman.settings import Settings
from dragoman.store import open_store
from dragoman.store.records import RolloutSample
from patience import patient
from servers.hubs import runtime_of, until

pytestmark = pytest.mark.anyio
ADA = Caller(user="ada")


async def inject(hub: Hub, arm: str, runs: int, *, errors: int = 0, milliseconds: float = 100.0) -> None:
    """Finished runs of one arm, as they would be counted."""
    async with open_store(hub.settings.store_url) as store:
        start = len(await store.rollout.samples(datetime(2020, 1, 1, tzinfo=UTC)))
        for number in range(runs):
            await store.rollout.add(
                RolloutSample(
                    run=f"run_{start + number}",
                    workspace="local",
                    user="ada",
                    arm=arm,
                    ok=number >= errors,
                    milliseconds=milliseconds,
                    tokens=100,
                    cost=0.01,
                    at=datetime.now(UTC),
                )
            )


async def test_errors_and_then_latency_switch_the_arm_off_and_it_stays_off(
    tmp_path: Path, database_url: str
) -> None:
    settings = Settings(home=tmp_path, database_url=database_url, rollout_users=("ada",))
    async with Hub(settings) as hub:
        assert await runtime_of(hub).rollout.way_of(ADA) == ("agents", True)
        await inject(hub, "direct", 50)
        await inject(hub, "agents", 100, errors=4, milliseconds=140)
        assert (await hub.rollout.status()).is_active  # 4 % and +40 % are fine
        await hub.rollout.set(share=50)
        await inject(hub, "agents", 100, errors=6)
        heard = asyncio.ensure_future(_next_change(hub))
        await asyncio.sleep(0)
        status = await hub.rollout.status()
        assert (status.is_active, status.is_rolled_back) == (False, True)
        assert status.rollback is not None
        assert "6 of 100 runs failed: 6.0 %" in status.rollback.reason
        assert await runtime_of(hub).rollout.way_of(ADA) == ("direct", False)
        assert (await heard).data == {"what": "rolled_back"}
        (entry,) = await hub.audit.list(action="rollout.rolled_back")
        assert "6.0 %" in entry.details["reason"]
    async with Hub(settings) as hub:
        assert await runtime_of(hub).rollout.way_of(ADA) == ("direct", False)
        assert (await hub.rollout.status()).rollback == status.rollback
        again = await hub.rollout.set()
        assert (again.is_active, again.plan.share, again.arms["agents"].runs) == (True, 50, 0)
        assert again.rollback == status.rollback  # the last one is still told
        await inject(hub, "direct", 20, milliseconds=100)
        await inject(hub, "agents", 20, milliseconds=160)
        slow = await hub.rollout.status()
        assert slow.is_rolled_back
        assert slow.rollback is not None
        assert "+60 %" in slow.rollback.reason
    async with Hub(settings) as hub:
        assert (await hub.rollout.status()).rollback == slow.rollback
        reset = await hub.rollout.reset()
        assert (reset.is_active, reset.source, reset.plan.share) == (True, "environment", None)


async def _next_change(hub: Hub) -> Event:
    async for event in hub.events():
        if event.kind == "rollout.changed":
            return event
    raise AssertionError("the hub has closed")


async def test_several_processes_agree(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=database_url)
    async with Hub(settings) as one, Hub(settings) as other:
        assert await runtime_of(other).rollout.way_of(ADA) == ("agents", False)
        await one.rollout.set(users=["ada"])

        async def other_has(arm: str, is_counted: bool) -> bool:
            return await runtime_of(other).rollout.way_of(ADA) == (arm, is_counted)

        await until(lambda: other_has("agents", True))
        await inject(other, "agents", 20, errors=20)
        await runtime_of(other).rollout.judge()
        assert (await one.rollout.status()).is_rolled_back
        await until(lambda: other_has("direct", False))


async def test_runs_go_through_their_arm_are_counted_and_bring_it_down(
    tmp_path: Path, database_url: str
) -> None:
    def script(seen: Seen) -> list[Call] | str:
        if seen.is_child:
            raise RuntimeError("the connector's agent is broken")
        if seen.turn == 0 and "query_mcp_connector" in seen.tools and "mcp_box_echo" not in seen.tools:
            return [("query_mcp_connector", {"connector_id": "box", "query": "say it"})]
        return "done"

    async with open_exposed(tmp_path, Listening(script), database_url, rollout_sample=3) as hub:
        assert (await hub.ask("before")).arm is None
        await hub.rollout.set(users=["local/owner"])
        forced = await hub.messages.ask("forced", options={"exposure": "direct"})
        assert (forced.exposure, forced.arm) == ("direct", None)
        runs = [await hub.ask("do it") for _ in range(3)]
        assert {(run.status, run.exposure, run.arm) for run in runs} == {("done", "delegate", "agents")}
        status = await hub.rollout.status()
        assert status.is_rolled_back  # the assistant went on without the answers, but each had failed
        figures = status.arms["agents"]
        assert (figures.runs, figures.errors) == (3, 3)
        assert figures.latency_ms > 0
        after = await hub.ask("after")
        assert (after.exposure, after.arm) == ("direct", None)


async def test_the_other_arm_works_directly_and_waiting_for_people_is_no_latency(tmp_path: Path) -> None:
    listening = Listening(
        in_turn([("mcp_box_echo", {"text": "hi"}), ("ask_person", {"question": "ok?"})], "done")
    )
    async with open_exposed(tmp_path, listening) as hub:
        await hub.rollout.set(users=["somebody else"])
        accepted = await hub.messages.post("do it")

        async def is_asked() -> bool:
            return bool(await hub.runs.questions())

        await until(is_asked)
        await asyncio.wait([asyncio.ensure_future(hub.runs.finished(accepted.run))], timeout=patient(1))
        (question,) = await hub.runs.questions()
        await hub.runs.answer(question.id, "yes")
        run = await hub.runs.finished(accepted.run)
        assert (run.exposure, run.arm) == ("direct", "direct")
        figures = (await hub.rollout.status()).arms["direct"]
        assert (figures.runs, figures.errors) == (1, 0)
        assert figures.unpriced == run.usage.unpriced == 2, "nobody knows what a scripted model costs"
        assert run.finished_at is not None
        assert run.started_at is not None
        elapsed = (run.finished_at - run.started_at).total_seconds() * 1000
        assert 0 < figures.latency_ms < elapsed - patient(900)


async def test_thumbs_are_counted_and_a_run_is_rated_by_its_owner_only(tmp_path: Path) -> None:
    async with open_exposed(tmp_path, Listening(in_turn("done"))) as hub:
        await hub.rollout.set(share=100)
        run = await hub.ask("do it")
        await hub.runs.thumb(run.id, 1)
        assert (await hub.rollout.status()).arms["agents"].thumbs_up == 1
        await hub.runs.thumb(run.id, -1)
        figures = (await hub.rollout.status()).arms["agents"]
        assert (figures.thumbs_up, figures.thumbs_down) == (0, 1)
        assert (await hub.messages.list(run.thread))[-1].details["thumb"] == -1
        with pytest.raises(NotFound):
            await hub.acting_for(ADA).runs.thumb(run.id, 1)


async def test_only_the_operator_looks_and_sets(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        rollout = hub.acting_for(Caller(user="ada", role="admin")).rollout
        for ask in (rollout.status, rollout.reset):
            with pytest.raises(Denied):
                await ask()
        with pytest.raises(Denied):
            await rollout.set(share=100)


async def test_the_operator_sets_it_over_rest(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        first = (await live.ask("GET", "/api/rollout")).value
        assert (first["state"], first["source"]) == ("off", "environment")
        assert first["thresholds"] == {
            "errors": 5.0,
            "slower": 50.0,
            "sample": 20,
            "runs": 200,
            "hours": 24.0,
        }
        wish: dict[str, Any] = {"share": 25, "users": ["ada"]}
        found = (await live.ask("PUT", "/api/rollout", wish)).value
        assert (found["state"], found["source"], found["set_by"]) == ("on", "operator", "owner")
        assert found["plan"] == {"share": 25, "workspaces": [], "users": ["ada"]}
        assert len(found["notes"]) == 2
        assert (await live.ask("PUT", "/api/rollout", {"share": 101})).status == 422
        assert (await live.ask("DELETE", "/api/rollout")).value["state"] == "off"
