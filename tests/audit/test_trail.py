"""The audit trail of real hubs: what is in it, who sees it, and that whoever changes it is noticed."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trail import ADA, ADMIN, dumped, echo, out_of, tamper, writing_process

from dragoman import Caller, Hub, Settings
from dragoman.calls import Auditor
from dragoman.errors import Denied, NotFound
from dragoman.hub.audit import forget_entries
from dragoman.people import User, Workspace
from dragoman.scope import LOCAL_CALLER
from dragoman.store import open_store
from dragoman.store.audit_chain import verify
from dragoman.tool import arguments_hash
from patience import deadline

pytestmark = pytest.mark.anyio
CANARY = "canary-5b1f77"
OPERATOR = LOCAL_CALLER


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path, database_url=database_url)


async def fail(text: str) -> str:
    raise ValueError(f"not {text}")


async def test_a_call_leaves_who_what_and_how_it_ended_but_never_its_arguments(
    settings: Settings, database_url: str
) -> None:
    caller = Caller(workspace="acme", user="ada", agent="mailer", way="agent")
    async with Hub(settings) as hub:
        hub.add_tool(echo)
        hub.add_tool(fail)
        arguments = {"text": CANARY}
        output = await hub.acting_for(ADA).call("echo", arguments)
        assert output.result == CANARY
        await hub.acting_for(ADA).call("fail", arguments)
        await hub.acting_for(caller).call("absent", arguments)
        absent, failed, done = await hub.acting_for(ADMIN).audit.list()
    assert (done.user, done.way, done.action, done.subject, done.outcome) == (
        *("ada", "direct", "call", "echo", "ok"),
    )
    assert done.arguments_hash == arguments_hash(arguments)
    assert done.details["call"] == output.metadata.request_id
    assert (done.details["connector"], done.details["version"], done.details["thread"]) == ("native", 1, None)
    assert done.details["duration_ms"] > 0
    assert failed.outcome == "tool_failed"
    assert (absent.outcome, absent.agent, absent.way) == ("not_found", "mailer", "agent")
    assert CANARY not in dumped(database_url)


async def test_entries_are_found_by_their_time(settings: Settings, database_url: str) -> None:
    async with Hub(settings) as hub:
        hub.add_tool(echo)
        for text in ("one", "two", "three"):
            await hub.acting_for(ADA).call("echo", {"text": text})
        three, two, one = await hub.acting_for(ADMIN).audit.list()
        assert list(await hub.acting_for(ADMIN).audit.list(since=two.time, until=three.time)) == [two]
        assert list(await hub.acting_for(ADMIN).audit.list(until=two.time)) == [one]
        assert list(await hub.acting_for(ADMIN).audit.list(since=two.time, after=three.number)) == [two]


async def test_thousands_of_entries_by_two_writers_make_one_chain(
    settings: Settings, database_url: str
) -> None:
    async with Hub(settings) as hub, Hub(settings) as other:
        for one in (hub, other):
            one.add_tool(echo)

        async def work(one: Hub, number: int) -> None:
            for turn in range(100):
                await one.acting_for(ADA).call("echo", {"text": f"{number} {turn}"})

        async with deadline(60):
            await asyncio.gather(*(work(one, number) for number in range(10) for one in (hub, other)))
        await other.acting_for(ADMIN).audit.list(limit=1)
        verdict = await hub.acting_for(ADMIN).audit.verify()
        assert (verdict.is_whole, verdict.count, verdict.number, verdict.problem) == (True, 2000, 2000, None)
        page = await hub.acting_for(ADMIN).audit.list(after=verdict.number + 1, limit=1)
        assert (page[0].number, page[0].hash) == (2000, verdict.head)
        calls: set[str] = set()
        for after in (0, 1000):
            exported = await hub.acting_for(ADMIN).audit.export(after=after, limit=1000)
            calls |= {entry.details["call"] for entry in exported}
    assert len(calls) == 2000


CHANGES = {
    **{
        f"{column} changed": ([f"UPDATE audit SET {column} = 'x' WHERE number = 3"], "entry 3 was changed")
        for column in ("agent", "way", "action", "subject", "outcome", "arguments_hash", "hash")
    },
    "user changed": (["""UPDATE audit SET "user" = 'eve' WHERE number = 3"""], "entry 3 was changed"),
    "details changed": (
        ["""UPDATE audit SET details = '{"n": 4}' WHERE number = 3"""],
        "entry 3 was changed",
    ),
    "time changed": (
        ["UPDATE audit SET time = '2020-01-01 00:00:00.000000' WHERE number = 3"],
        "entry 3 was changed",
    ),
    "previous changed": (
        ["UPDATE audit SET previous = 'x' WHERE number = 3"],
        "entry 3 does not follow entry 2",
    ),
    "first deleted": (["DELETE FROM audit WHERE number = 1"], "entry 1 is missing"),
    "middle deleted": (["DELETE FROM audit WHERE number = 4"], "entry 4 is missing"),
    "last deleted": (["DELETE FROM audit WHERE number = 6"], "entry 6 is missing"),
    "all deleted": (["DELETE FROM audit"], "entry 1 is missing"),
    "renumbered over a gap": (
        ["DELETE FROM audit WHERE number = 4", "UPDATE audit SET number = 4 WHERE number = 5"],
        "entry 4 does not follow entry 3",
    ),
    "swapped": (
        [
            "UPDATE audit SET number = 100 WHERE number = 3",
            "UPDATE audit SET number = 3 WHERE number = 4",
            "UPDATE audit SET number = 4 WHERE number = 100",
        ],
        "entry 3 does not follow entry 2",
    ),
    "head changed": (
        ["UPDATE audit_heads SET hash = 'x' WHERE workspace = 'acme'"],
        "entry 6 is not the one that was written",
    ),
}


async def write_six(url: str) -> None:
    async with open_store(url) as store:
        auditor = Auditor(store.audit)
        for number in range(6):
            await auditor.done(ADA, "connector.updated", f"c{number}", details={"n": number})


async def test_whatever_is_changed_or_taken_out_is_noticed_and_named(
    settings: Settings, database_url: str
) -> None:
    await write_six(database_url)
    async with Hub(settings) as hub:
        assert (await hub.acting_for(ADMIN).audit.verify()).count == 6
        async with open_store(database_url) as store:
            entries = await store.audit.read("acme")
    found: dict[str, str | None] = {}
    for name, (statements, _) in CHANGES.items():
        tamper(database_url, *statements)
        async with Hub(settings) as hub:
            verdict = await hub.acting_for(ADMIN).audit.verify()
            found[name] = verdict.problem
            assert verdict.is_whole is (verdict.problem is None)
        tamper(database_url, "DELETE FROM audit_heads WHERE workspace = 'acme'")
        async with open_store(database_url) as store:
            if await store.audit.read("acme"):
                tamper(database_url, "DELETE FROM audit WHERE workspace = 'acme'")
            await store.audit.append(entries)
    assert found == {name: problem for name, (_, problem) in CHANGES.items()}


async def test_what_is_left_after_forgetting_still_verifies(settings: Settings, database_url: str) -> None:
    await write_six(database_url)
    async with open_store(database_url) as store:
        fourth = (await store.audit.read("acme"))[3]
    async with Hub(settings) as hub:
        async with open_store(hub.settings.store_url) as store:
            assert await forget_entries(store.audit, fourth.time) == 3
        verdict = await hub.acting_for(ADMIN).audit.verify()
        assert (verdict.is_whole, verdict.count, verdict.number) == (True, 3, 6)
        await hub.acting_for(ADA).call("absent")
        assert (await hub.acting_for(ADMIN).audit.verify()).number == 7
        async with open_store(hub.settings.store_url) as store:
            assert await forget_entries(store.audit, datetime.now(UTC) + timedelta(days=1)) == 4
        verdict = await hub.acting_for(ADMIN).audit.verify()
        assert (verdict.is_whole, verdict.count, verdict.number) == (True, 0, 7)
        await hub.acting_for(ADA).call("absent")
        assert (await hub.acting_for(ADMIN).audit.verify()).number == 8
        await hub.acting_for(ADA).call("absent")
        await hub.acting_for(ADMIN).audit.list()
    tamper(database_url, "DELETE FROM audit WHERE number = 8")
    async with Hub(settings) as hub:
        assert (await hub.acting_for(ADMIN).audit.verify()).problem == "entry 8 is missing"


async def test_strange_values_are_hashed_as_the_database_gives_them_back(database_url: str) -> None:
    strange: dict[str, Any] = {
        "nul": "a\x00b",
        "half": "\ud800",
        "wide": 2**70,
        "not": math.nan,
        "moment": datetime(2026, 1, 1, tzinfo=UTC),
        "pair": (1, 2.5),
        "small": 1e-7,
        "large": 1e22,
    }
    async with open_store(database_url) as store:
        auditor = Auditor(store.audit)
        await auditor.done(ADA, "key.added", "\x00\ud800é", details={"one": 1})
        for name, value in strange.items():
            await auditor.done(ADA, "key.added", name, details={name: value})
        verdict = verify(await store.audit.read("acme"), await store.audit.anchor("acme"))
    assert (verdict.is_whole, verdict.problem, verdict.count) == (True, None, len(strange) + 1)


async def test_members_see_their_own_admins_their_workspace_the_operator_any(
    settings: Settings, database_url: str
) -> None:
    async with open_store(database_url) as store:
        for id in ("w1", "w2"):
            await store.people.put_workspace(Workspace(id=id, name=f"name of {id}"))
            await store.people.put_user(User(id=f"ada-{id}", workspace=id, name="ada"))
    async with Hub(settings) as hub:
        for workspace in ("w1", "w2"):
            for user in (f"ada-{workspace}", "bob"):
                await hub.acting_for(Caller(workspace=workspace, user=user)).call("absent")
        member = Caller(workspace="w1", user="bob")
        admin = Caller(workspace="w1", user="root", role="admin")
        assert [entry.user for entry in await hub.acting_for(member).audit.list()] == ["bob"]
        assert [entry.user for entry in await hub.acting_for(member).audit.export()] == ["bob"]
        assert [entry.user for entry in await hub.acting_for(admin).audit.list()] == ["bob", "ada-w1"]
        assert [entry.user for entry in await hub.acting_for(admin).audit.list(user="ada")] == ["ada-w1"]
        assert [entry.user for entry in await hub.acting_for(admin).audit.export()] == ["ada-w1", "bob"]
        found = await hub.acting_for(OPERATOR).audit.list(workspace="name of w2")
        assert {entry.workspace for entry in found} == {"w2"}
        assert (await hub.acting_for(OPERATOR).audit.verify(workspace="w2")).count == 2
        assert [entry.number for entry in await hub.acting_for(admin).audit.list(after=2)] == [1]
        assert not await hub.acting_for(admin).audit.list(action="key.added")
        for caller in (member, admin):
            audit = hub.acting_for(caller).audit
            for ask in (audit.list, audit.export):
                with pytest.raises(NotFound):
                    await ask(workspace="w2")
        with pytest.raises(NotFound):
            await hub.acting_for(member).audit.list(user="ada-w1")
        with pytest.raises(NotFound):
            await hub.acting_for(OPERATOR).audit.list(workspace="nowhere")
        with pytest.raises(Denied):
            await hub.acting_for(member).audit.verify()
        with pytest.raises(NotFound):
            await hub.acting_for(admin).audit.verify(workspace="w2")


@pytest.mark.slow
async def test_a_killed_process_loses_about_a_second_and_leaves_a_whole_chain(
    settings: Settings, tmp_path: Path, database_url: str
) -> None:
    with writing_process(tmp_path, database_url, 300) as process:
        lines = out_of(process)
        assert lines.readline().strip() == "made"
        called = 0
        while called < 120:  # more than two seconds of calls, so that some batches were written
            assert lines.readline().strip() == "called"
            called += 1
        process.kill()
        called += lines.read().count("called")
    async with Hub(settings) as hub:
        verdict = await hub.acting_for(ADMIN).audit.verify()
    assert verdict.is_whole
    lost = 300 + called - verdict.count
    assert -1 <= lost <= 75, "there are at most 50 calls a second"
