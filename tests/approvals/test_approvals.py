"""A call that needs a yes, from the question to the answer, with a real server and on both databases."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asking import (
    ADMIN,
    AGENT,
    ANNA,
    BERT,
    DESTROYS,
    READS,
    SUM,
    WRITES,
    asks,
    code,
    in_thread,
    open_asking,
    question,
    questions,
)
from sqlalchemy import update

from dragoman import Caller, Hub
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.events import Event
from dragoman.store import tables
from dragoman.store.database import open_database
from dragoman.store.location import DatabaseLocation
from patience import deadline
from servers.hubs import until
from servers.processes import journal

pytestmark = pytest.mark.anyio
CANARY = "canary-91be07aa"


async def test_an_agent_waits_for_the_yes_of_its_person(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        assert (await hub.call(READS, {"text": "x"}, caller=AGENT)).ok, "what only reads runs"
        assert (await hub.call(DESTROYS, {"text": "by hand"}, caller=ANNA)).ok, "who calls has consented"
        call = tasks.create_task(hub.call(DESTROYS, {"text": "hello"}, caller=AGENT))
        [asked] = await questions(hub, caller=ANNA)
        assert journal(log) == ["by hand"]
        assert asked.asked.arguments == {"text": "hello"}
        assert asked.asked.description == "The tool send"
        assert (asked.approval.binding.agent, asked.approval.binding.way) == ("mailer", "agent")
        assert asked.answers == ("once", "no")
        await hub.approvals.answer(asked.approval.id, "once", ANNA)
        async with deadline(5):
            assert (await call).result == "sent hello"
        assert journal(log) == ["by hand", "hello"]
        assert (await hub.approvals.get(asked.approval.id, ANNA)).status == "used"
        entries = await hub._store.audit.read("local", action="approval.answered")
        assert [(entry.user, entry.details["answer"]) for entry in entries] == [("anna", "once")]


async def test_a_no_is_a_refusal_and_nothing_runs(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.call(DESTROYS, {"text": "hello"}, caller=AGENT))
        await hub.approvals.answer(await question(hub), "no", ANNA)
        assert code(await call) == "approval_refused"
        assert journal(log) == []


async def test_who_got_no_answer_in_time_calls_again_after_a_restart(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url, wait=0.05) as hub:
        output = await hub.call(WRITES, SUM, caller=AGENT)
        asked = await question(hub)
        assert output.error is not None
        assert (output.error.code, output.error.retryable) == ("approval_pending", True)
        assert asked in output.error.message
        assert f"dragoman approvals answer {asked} once" in (output.error.hint or "")
        again = await hub.call(WRITES, SUM, caller=AGENT)
        assert asked in (again.error.message if again.error else ""), "the same question, not another"
    async with open_asking(tmp_path, database_url, wait=0.05) as hub:
        await hub.approvals.answer(asked, "once", ANNA)
        assert (await hub.call(WRITES, SUM, caller=AGENT)).result == {"sum": 3}
        assert code(await hub.call(WRITES, SUM, caller=AGENT)) == "approval_pending", "used once"


OTHERS: dict[str, tuple[dict[str, Any], Caller]] = {
    "another character": ({"a": 1, "b": 3}, AGENT),
    "another thread": (SUM, in_thread(AGENT, "t2")),
    "another agent": (SUM, replace(AGENT, agent="mailer2")),
    "another way": (SUM, replace(AGENT, way="code")),
    "another user": (SUM, replace(AGENT, user="bert")),
}


async def test_once_is_for_exactly_one_call(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.tools.configure(WRITES, allowed_callers=["direct", "agent", "code"])
        await hub.call(WRITES, SUM, caller=AGENT)
        await hub.approvals.answer(await question(hub), "once", ANNA)
        for what, (arguments, caller) in OTHERS.items():
            assert code(await hub.call(WRITES, arguments, caller=caller)) == "approval_pending", what
        assert (await hub.call(WRITES, {"b": 2, "a": 1}, caller=AGENT)).ok, "the order of names is nothing"


async def test_of_two_alike_one_yes_lets_one_run(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(hub.call(DESTROYS, {"text": "x"}, caller=AGENT)) for _ in range(2)]
        first = await question(hub)
        await hub.approvals.answer(first, "once", ANNA)
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(waiting), journal(log)) == (1, 1, ["x"])
        second = await question(hub)
        assert second != first
        await hub.approvals.answer(second, "once", ANNA)
        await asyncio.wait(waiting)
        assert journal(log) == ["x", "x"]


async def test_a_wider_yes_holds_for_its_thread_or_for_all(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        here, there = in_thread(AGENT, "t1"), in_thread(AGENT, "t2")
        await hub.call(WRITES, SUM, caller=here)
        await hub.approvals.answer(await question(hub), "thread", ANNA)
        assert (await hub.call(WRITES, {"a": 5, "b": 5}, caller=here)).ok
        assert (await hub.call(WRITES, SUM, caller=replace(here, agent="other"))).ok
        for other in (there, AGENT, replace(here, user="bert")):
            assert code(await hub.call(WRITES, SUM, caller=other)) == "approval_pending"
        waiting = {one.approval.binding.thread: one for one in await questions(hub, 2, ANNA)}
        assert waiting[None].answers == ("once", "always", "no")
        with pytest.raises(InvalidArguments, match="no thread"):
            await hub.approvals.answer(waiting[None].approval.id, "thread", ANNA)
        await hub.approvals.answer(waiting[None].approval.id, "always", ANNA)
        assert await hub.approvals.list("pending", ANNA) == [], "what is allowed now is asked no more"
        assert (await hub.call(WRITES, SUM, caller=there)).ok
        allowed = await hub.approvals.allowances(ANNA)
        assert [one.thread for one in allowed] == ["", "t1"]
        assert await hub.approvals.allowances(BERT) == []
        for one in allowed:
            await hub.approvals.withdraw(one.approval_id, ANNA)
        assert code(await hub.call(WRITES, SUM, caller=here)) == "approval_pending"
        with pytest.raises(NotFound):
            await hub.approvals.withdraw(allowed[0].approval_id, ANNA)


async def test_an_always_lets_everything_go_on_that_waits_for_the_same(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url) as hub, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(hub.call(WRITES, {"a": n, "b": 0}, caller=AGENT)) for n in range(3)]
        first, *_ = await questions(hub, 3)
        await hub.approvals.answer(first.approval.id, "always", ANNA)
        async with deadline(5):
            assert [(await call).result for call in calls] == [{"sum": n} for n in range(3)]


async def test_a_new_version_ends_every_yes(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        await hub.approvals.answer(await question(hub), "always", ANNA)
        await hub.call(DESTROYS, {"text": "x"}, caller=AGENT)
        await hub.approvals.answer(await question(hub), "once", ANNA)
        assert (await hub.call(WRITES, SUM, caller=AGENT)).ok
        for name in ("add", "send"):
            assert (await hub.call("mcp_raw_change_tool", {"name": name})).ok
        await until(lambda: {hub.tools.get(name).version for name in (WRITES, DESTROYS)} == {2})
        assert code(await hub.call(WRITES, SUM, caller=AGENT)) == "approval_pending"
        assert code(await hub.call(DESTROYS, {"text": "x"}, caller=AGENT)) == "approval_pending"


async def test_a_tool_that_changes_while_a_person_thinks_does_not_run(
    tmp_path: Path, sqlite_url: str
) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, sqlite_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.call(DESTROYS, {"text": "x"}, caller=AGENT))
        asked = await question(hub)
        await hub.call("mcp_raw_change_tool", {"name": "send"})
        await until(lambda: hub.tools.get(DESTROYS).version == 2)
        await hub.approvals.answer(asked, "once", ANNA)
        assert code(await call) == "tool_changed"
        assert journal(log) == []


@pytest.mark.parametrize("policy", ["default", "always"])
async def test_what_destroys_or_always_asks_is_allowed_once_only(
    tmp_path: Path, database_url: str, policy: str
) -> None:
    tool, arguments = (DESTROYS, {"text": "x"}) if policy == "default" else (READS, {"text": "x"})
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.tools.configure(tool, approval=policy)
        caller = in_thread(AGENT, "t1")
        await hub.call(tool, arguments, caller=caller)
        asked = await question(hub)
        for wide in ("thread", "always"):
            with pytest.raises(InvalidArguments, match="only be allowed once"):
                await hub.approvals.answer(asked, wide, ANNA)
        await hub.approvals.answer(asked, "once", ANNA)
        assert (await hub.call(tool, arguments, caller=caller)).ok
        assert code(await hub.call(tool, arguments, caller=caller)) == "approval_pending"


async def test_an_older_always_does_not_serve_a_tool_that_is_to_ask_each_time(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        await hub.approvals.answer(await question(hub), "always", ANNA)
        await hub.tools.configure(WRITES, approval="always")
        assert code(await hub.call(WRITES, SUM, caller=AGENT)) == "approval_pending"
        assert code(await hub.call(WRITES, SUM, caller=ANNA)) == "approval_pending", "a person too"
        await hub.tools.configure(WRITES, approval="never")
        assert (await hub.call(WRITES, {"a": 9, "b": 9}, caller=replace(AGENT, user="bert"))).ok


async def test_policies_of_connector_and_workspace_are_in_force(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01, approval="always") as hub:
        assert code(await hub.call(READS, {"text": "x"}, caller=ANNA)) == "approval_pending"
        await hub.connectors.update("raw", approval="never")
        assert (await hub.call(DESTROYS, {"text": "x"}, caller=AGENT)).ok
        await hub.connectors.update("raw", approval="default")
        assert code(await hub.call(DESTROYS, {"text": "y"}, caller=AGENT)) == "approval_pending"


async def test_the_policy_of_the_workspace_holds_where_nothing_nearer_does(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        workspace = await hub._store.people.find_workspace("local")
        assert workspace is not None
        await hub._store.people.put_workspace(replace(workspace, approval="always"))
        hub._directory.forget("local")
        assert code(await hub.call(READS, {"text": "z"}, caller=ANNA)) == "approval_pending"
        await hub.connectors.update("raw", approval="never")
        assert (await hub.call(DESTROYS, {"text": "z"}, caller=AGENT)).ok


async def test_the_answer_comes_from_another_process(tmp_path: Path, postgres_url: str) -> None:
    async with open_asking(tmp_path, postgres_url) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.call(WRITES, SUM, caller=AGENT))
        asked = await question(hub)
        async with open_asking(tmp_path, postgres_url) as other:
            await other.approvals.answer(asked, "once", ANNA)
            async with deadline(3):
                assert (await call).ok


async def test_two_processes_take_one_yes_once(tmp_path: Path, postgres_url: str) -> None:
    async with (
        open_asking(tmp_path, postgres_url, wait=0.01) as one,
        open_asking(tmp_path, postgres_url, wait=0.01) as two,
    ):
        for n in range(5):
            arguments = {"a": n, "b": 0}
            await one.call(WRITES, arguments, caller=AGENT)
            await one.approvals.answer(await question(one), "once", ANNA)
            calls = [hub.call(WRITES, arguments, caller=AGENT) for hub in (one, two) for _ in range(4)]
            outputs = await asyncio.gather(*calls)
            assert sum(output.ok for output in outputs) == 1
            assert {code(output) for output in outputs} == {None, "approval_pending"}
            await one.approvals.answer(await question(one), "no", ANNA)


async def test_only_a_person_answers(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        asked = await question(hub)
        nobody = [AGENT, replace(AGENT, agent=None), replace(ANNA, agent="x")]
        nobody += [replace(ANNA, way="code"), replace(ADMIN, way="mcp")]
        for caller in nobody:
            for given in ("once", "no"):
                with pytest.raises(Denied):
                    await hub.approvals.answer(asked, given, caller)
            with pytest.raises(Denied):
                await hub.approvals.withdraw(asked, caller)
        # Nor by way of the policy.
        with pytest.raises(Denied):
            await hub.tools.configure(WRITES, approval="never", caller=replace(ADMIN, way="agent"))
        assert (await hub.approvals.get(asked, ANNA)).status == "pending"


async def test_what_is_anothers_does_not_exist(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        asked = await question(hub)
        strangers = [
            BERT,
            replace(ANNA, workspace="other"),
            replace(ADMIN, workspace="other"),
            ANNA.narrowed(["mcp_mail"]),
            replace(ADMIN, agent="helper", way="agent"),
        ]
        for stranger in strangers:
            assert await hub.approvals.list(None, stranger) == []
            with pytest.raises(NotFound):
                await hub.approvals.get(asked, stranger)
            with pytest.raises((NotFound, Denied)):
                await hub.approvals.answer(asked, "once", stranger)
        answered = await hub.approvals.answer(asked, "once", ADMIN)
        assert (answered.status, answered.approval.answered_by) == ("approved", "zoe")


async def test_a_second_answer_is_a_conflict(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        asked = await question(hub)
        with pytest.raises(InvalidArguments, match="no answer"):
            await hub.approvals.answer(asked, "perhaps", ANNA)
        with pytest.raises(InvalidArguments, match="no status"):
            await hub.approvals.list("pendign", ANNA)
        given = [hub.approvals.answer(asked, answer, ANNA) for answer in ("no", "always", "once")]
        outcomes = await asyncio.gather(*given, return_exceptions=True)
        assert sum(isinstance(one, Conflict) for one in outcomes) == 2, outcomes


async def test_questions_and_answers_expire(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.call(WRITES, SUM, caller=AGENT)
        late = await question(hub)
        await age(hub, late)
        assert await hub.approvals.list("pending", ANNA) == []
        assert (await hub.approvals.get(late, ANNA)).status == "expired"
        with pytest.raises(Conflict, match="expired"):
            await hub.approvals.answer(late, "once", ANNA)
        await hub.call(WRITES, SUM, caller=AGENT)
        fresh = await question(hub)
        assert fresh != late
        lasts = (await hub.approvals.answer(fresh, "once", ANNA)).approval.expires_at - datetime.now(UTC)
        assert timedelta(minutes=59) < lasts <= timedelta(hours=1)
        await age(hub, fresh)
        assert code(await hub.call(WRITES, SUM, caller=AGENT)) == "approval_pending"
        await hub.approvals.tidy()
        noted = {one.approval.id for one in await hub.approvals.list("expired", ANNA)}
        assert noted == {late, fresh}


async def age(hub: Hub, approval_id: str) -> None:
    """As if its time were over: written past the hub, as the clock would."""
    rows = tables.approvals
    over = datetime.now(UTC) - timedelta(seconds=1)
    change = update(rows).where(rows.c.id == approval_id).values(expires_at=over)
    location = DatabaseLocation.of(hub.settings.store_url)
    async with open_database(location, busy_timeout=5) as database, database.write() as connection:
        await connection.execute(change)


async def test_a_caller_that_goes_leaves_the_question(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url) as hub:
        assert await asks(hub, WRITES, SUM, AGENT)
        await hub.approvals.answer(await question(hub), "once", ANNA)
        assert (await hub.call(WRITES, SUM, caller=AGENT)).ok


async def test_events_tell_the_user_and_nobody_else(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub, asyncio.TaskGroup() as tasks:
        heard = {user: tasks.create_task(told(hub, Caller(user=user))) for user in ("anna", "bert")}
        await until(lambda: len(hub._events._listeners) == 2)
        for user, arguments in (("anna", SUM), ("bert", {"a": 8, "b": 8})):
            await hub.call(WRITES, arguments, caller=replace(AGENT, user=user))
            [asked] = await hub.approvals.list("pending", Caller(user=user))
            await hub.approvals.answer(asked.approval.id, "no", Caller(user=user))
        for user, task in heard.items():
            asked_event, answered_event = await task
            assert (asked_event.kind, answered_event.kind) == ("approval.requested", "approval.answered")
            assert {asked_event.user, answered_event.user} == {user}
            assert asked_event.data["tool"] == WRITES
            assert answered_event.data["answer"] == "no"
            assert "arguments" not in asked_event.data


async def told(hub: Hub, caller: Caller) -> list[Event]:
    seen: list[Event] = []
    async with aclosing(hub.events(caller=caller)) as events:  # type: ignore[type-var]
        async for event in events:
            if event.kind.startswith("approval."):
                seen.append(event)
            if len(seen) == 2:
                break
    return seen


async def test_arguments_are_nowhere_in_the_clear(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path / "home", sqlite_url, wait=0.01) as hub:
        await hub.call(DESTROYS, {"text": CANARY}, caller=AGENT)
        assert (await questions(hub))[0].asked.arguments == {"text": CANARY}
    searched = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in searched)
    for file in searched:
        assert CANARY.encode() not in file.read_bytes(), file


async def test_arguments_moved_to_another_question_do_not_open(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.call(DESTROYS, {"text": "one"}, caller=AGENT)
        await hub.call(DESTROYS, {"text": "two"}, caller=AGENT)
        one, two = (asked.approval for asked in await questions(hub, 2))
        with pytest.raises(Exception, match="moved"):
            hub._approvals.open(replace(one, arguments=two.arguments))


async def test_exact_numbers_are_shown(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.call(WRITES, {"a": 2**63 + 1, "b": 0.1}, caller=AGENT)
        assert (await questions(hub))[0].asked.arguments == {"a": 2**63 + 1, "b": 0.1}


async def test_the_direct_path_asks_nothing_of_the_store(tmp_path: Path, sqlite_url: str) -> None:
    """Broken rows prove it: whoever touched them would fail."""
    async with open_asking(tmp_path, sqlite_url) as hub:
        hub._approvals._rows = None  # type: ignore[assignment]
        assert (await hub.call(DESTROYS, {"text": "x"}, caller=ANNA)).ok
        assert (await hub.call(READS, {"text": "x"}, caller=AGENT)).ok
        assert code(await hub.call(WRITES, SUM, caller=AGENT)) == "internal"
