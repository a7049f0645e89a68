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
from servers.hubs import runtime_of, until
from servers.processes import journal

pytestmark = pytest.mark.anyio
CANARY = "canary-91be07aa"


async def test_an_agent_waits_for_the_yes_of_its_person(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        assert (await hub.acting_for(AGENT).call(READS, {"text": "x"})).ok, "what only reads runs"
        assert (await hub.acting_for(ANNA).call(DESTROYS, {"text": "by hand"})).ok, "who calls has consented"
        call = tasks.create_task(hub.acting_for(AGENT).call(DESTROYS, {"text": "hello"}))
        [asked] = await questions(hub, caller=ANNA)
        assert journal(log) == ["by hand"]
        assert asked.asked.arguments == {"text": "hello"}
        assert asked.asked.description == "The tool send"
        assert (asked.approval.binding.agent, asked.approval.binding.way) == ("mailer", "agent")
        assert asked.answers == ("once", "no")
        await hub.acting_for(ANNA).approvals.answer(asked.approval.id, "once")
        async with deadline(5):
            assert (await call).result == "sent hello"
        assert journal(log) == ["by hand", "hello"]
        assert (await hub.acting_for(ANNA).approvals.get(asked.approval.id)).status == "used"
        entries = await hub.audit.list(action="approval.answered")
        assert [(entry.user, entry.details["answer"]) for entry in entries] == [("anna", "once")]


async def test_a_no_is_a_refusal_and_nothing_runs(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.acting_for(AGENT).call(DESTROYS, {"text": "hello"}))
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "no")
        assert code(await call) == "approval_refused"
        assert journal(log) == []


async def test_who_got_no_answer_in_time_calls_again_after_a_restart(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url, wait=0.05) as hub:
        output = await hub.acting_for(AGENT).call(WRITES, SUM)
        asked = await question(hub)
        assert output.error is not None
        assert (output.error.code, output.error.retryable) == ("approval_pending", True)
        assert asked in output.error.message
        assert f'hub.approvals.answer("{asked}", "once")' in (output.error.hint or "")
        again = await hub.acting_for(AGENT).call(WRITES, SUM)
        assert asked in (again.error.message if again.error else ""), "the same question, not another"
    async with open_asking(tmp_path, database_url, wait=0.05) as hub:
        await hub.acting_for(ANNA).approvals.answer(asked, "once")
        assert (await hub.acting_for(AGENT).call(WRITES, SUM)).result == {"sum": 3}
        assert code(await hub.acting_for(AGENT).call(WRITES, SUM)) == "approval_pending", "used once"


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
        await hub.acting_for(AGENT).call(WRITES, SUM)
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "once")
        for what, (arguments, caller) in OTHERS.items():
            assert code(await hub.acting_for(caller).call(WRITES, arguments)) == "approval_pending", what
        assert (await hub.acting_for(AGENT).call(WRITES, {"b": 2, "a": 1})).ok, (
            "the order of names is nothing"
        )


async def test_of_two_alike_one_yes_lets_one_run(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, database_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(hub.acting_for(AGENT).call(DESTROYS, {"text": "x"})) for _ in range(2)]
        first = await question(hub)
        await hub.acting_for(ANNA).approvals.answer(first, "once")
        done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(waiting), journal(log)) == (1, 1, ["x"])
        second = await question(hub)
        assert second != first
        await hub.acting_for(ANNA).approvals.answer(second, "once")
        await asyncio.wait(waiting)
        assert journal(log) == ["x", "x"]


async def test_a_wider_yes_holds_for_its_thread_or_for_all(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        here, there = in_thread(AGENT, "t1"), in_thread(AGENT, "t2")
        await hub.acting_for(here).call(WRITES, SUM)
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "thread")
        assert (await hub.acting_for(here).call(WRITES, {"a": 5, "b": 5})).ok
        assert (await hub.acting_for(replace(here, agent="other")).call(WRITES, SUM)).ok
        for other in (there, AGENT, replace(here, user="bert")):
            assert code(await hub.acting_for(other).call(WRITES, SUM)) == "approval_pending"
        waiting = {one.approval.binding.thread: one for one in await questions(hub, 2, ANNA)}
        assert waiting[None].answers == ("once", "always", "no")
        with pytest.raises(InvalidArguments, match="no thread"):
            await hub.acting_for(ANNA).approvals.answer(waiting[None].approval.id, "thread")
        await hub.acting_for(ANNA).approvals.answer(waiting[None].approval.id, "always")
        assert await hub.acting_for(ANNA).approvals.list("pending") == [], (
            "what is allowed now is asked no more"
        )
        assert (await hub.acting_for(there).call(WRITES, SUM)).ok
        allowed = await hub.acting_for(ANNA).approvals.allowances()
        assert [one.thread for one in allowed] == ["", "t1"]
        assert await hub.acting_for(BERT).approvals.allowances() == []
        for one in allowed:
            await hub.acting_for(ANNA).approvals.withdraw(one.approval_id)
        assert code(await hub.acting_for(here).call(WRITES, SUM)) == "approval_pending"
        with pytest.raises(NotFound):
            await hub.acting_for(ANNA).approvals.withdraw(allowed[0].approval_id)


async def test_an_always_lets_everything_go_on_that_waits_for_the_same(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url) as hub, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(hub.acting_for(AGENT).call(WRITES, {"a": n, "b": 0})) for n in range(3)]
        first, *_ = await questions(hub, 3)
        await hub.acting_for(ANNA).approvals.answer(first.approval.id, "always")
        async with deadline(5):
            assert [(await call).result for call in calls] == [{"sum": n} for n in range(3)]


async def test_a_new_version_ends_every_yes(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "always")
        await hub.acting_for(AGENT).call(DESTROYS, {"text": "x"})
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "once")
        assert (await hub.acting_for(AGENT).call(WRITES, SUM)).ok
        for name in ("add", "send"):
            assert (await hub.call("mcp_raw_change_tool", {"name": name})).ok
        await until(lambda: {hub.tools.get(name).version for name in (WRITES, DESTROYS)} == {2})
        assert code(await hub.acting_for(AGENT).call(WRITES, SUM)) == "approval_pending"
        assert code(await hub.acting_for(AGENT).call(DESTROYS, {"text": "x"})) == "approval_pending"


async def test_a_tool_that_changes_while_a_person_thinks_does_not_run(
    tmp_path: Path, sqlite_url: str
) -> None:
    log = tmp_path / "journal"
    async with open_asking(tmp_path, sqlite_url, journal=log) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.acting_for(AGENT).call(DESTROYS, {"text": "x"}))
        asked = await question(hub)
        await hub.call("mcp_raw_change_tool", {"name": "send"})
        await until(lambda: hub.tools.get(DESTROYS).version == 2)
        await hub.acting_for(ANNA).approvals.answer(asked, "once")
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
        await hub.acting_for(caller).call(tool, arguments)
        asked = await question(hub)
        for wide in ("thread", "always"):
            with pytest.raises(InvalidArguments, match="only be allowed once"):
                await hub.acting_for(ANNA).approvals.answer(asked, wide)
        await hub.acting_for(ANNA).approvals.answer(asked, "once")
        assert (await hub.acting_for(caller).call(tool, arguments)).ok
        assert code(await hub.acting_for(caller).call(tool, arguments)) == "approval_pending"


async def test_an_older_always_does_not_serve_a_tool_that_is_to_ask_each_time(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "always")
        await hub.tools.configure(WRITES, approval="always")
        assert code(await hub.acting_for(AGENT).call(WRITES, SUM)) == "approval_pending"
        assert code(await hub.acting_for(ANNA).call(WRITES, SUM)) == "approval_pending", "a person too"
        await hub.tools.configure(WRITES, approval="never")
        assert (await hub.acting_for(replace(AGENT, user="bert")).call(WRITES, {"a": 9, "b": 9})).ok


async def test_policies_of_connector_and_workspace_are_in_force(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01, approval="always") as hub:
        assert code(await hub.acting_for(ANNA).call(READS, {"text": "x"})) == "approval_pending"
        await hub.connectors.update("raw", approval="never")
        assert (await hub.acting_for(AGENT).call(DESTROYS, {"text": "x"})).ok
        await hub.connectors.update("raw", approval="default")
        assert code(await hub.acting_for(AGENT).call(DESTROYS, {"text": "y"})) == "approval_pending"


async def test_the_policy_of_the_workspace_holds_where_nothing_nearer_does(
    tmp_path: Path, database_url: str
) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.people.update_workspace("local", approval="always")
        assert code(await hub.acting_for(ANNA).call(READS, {"text": "z"})) == "approval_pending"
        await hub.connectors.update("raw", approval="never")
        assert (await hub.acting_for(AGENT).call(DESTROYS, {"text": "z"})).ok


async def test_the_answer_comes_from_another_process(tmp_path: Path, postgres_url: str) -> None:
    async with open_asking(tmp_path, postgres_url) as hub, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(hub.acting_for(AGENT).call(WRITES, SUM))
        asked = await question(hub)
        async with open_asking(tmp_path, postgres_url) as other:
            await other.acting_for(ANNA).approvals.answer(asked, "once")
            async with deadline(3):
                assert (await call).ok


async def test_two_processes_take_one_yes_once(tmp_path: Path, postgres_url: str) -> None:
    async with (
        open_asking(tmp_path, postgres_url, wait=0.01) as one,
        open_asking(tmp_path, postgres_url, wait=0.01) as two,
    ):
        for n in range(5):
            arguments = {"a": n, "b": 0}
            await one.acting_for(AGENT).call(WRITES, arguments)
            await one.acting_for(ANNA).approvals.answer(await question(one), "once")
            calls = [hub.acting_for(AGENT).call(WRITES, arguments) for hub in (one, two) for _ in range(4)]
            outputs = await asyncio.gather(*calls)
            assert sum(output.ok for output in outputs) == 1
            assert {code(output) for output in outputs} == {None, "approval_pending"}
            await one.acting_for(ANNA).approvals.answer(await question(one), "no")


async def test_only_a_person_answers(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        asked = await question(hub)
        nobody = [AGENT, replace(AGENT, agent=None), replace(ANNA, agent="x")]
        nobody += [replace(ANNA, way="code"), replace(ADMIN, way="mcp")]
        for caller in nobody:
            for given in ("once", "no"):
                with pytest.raises(Denied):
                    await hub.acting_for(caller).approvals.answer(asked, given)
            with pytest.raises(Denied):
                await hub.acting_for(caller).approvals.withdraw(asked)
        # Nor by way of the policy.
        with pytest.raises(Denied):
            await hub.acting_for(replace(ADMIN, way="agent")).tools.configure(WRITES, approval="never")
        assert (await hub.acting_for(ANNA).approvals.get(asked)).status == "pending"


async def test_what_is_anothers_does_not_exist(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        asked = await question(hub)
        strangers = [
            BERT,
            replace(ANNA, workspace="other"),
            replace(ADMIN, workspace="other"),
            ANNA.narrowed(["mcp_mail"]),
            replace(ADMIN, agent="helper", way="agent"),
        ]
        for stranger in strangers:
            assert await hub.acting_for(stranger).approvals.list(None) == []
            with pytest.raises(NotFound):
                await hub.acting_for(stranger).approvals.get(asked)
            with pytest.raises((NotFound, Denied)):
                await hub.acting_for(stranger).approvals.answer(asked, "once")
        answered = await hub.acting_for(ADMIN).approvals.answer(asked, "once")
        assert (answered.status, answered.approval.answered_by) == ("approved", "zoe")


async def test_a_second_answer_is_a_conflict(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        asked = await question(hub)
        with pytest.raises(InvalidArguments, match="no answer"):
            await hub.acting_for(ANNA).approvals.answer(asked, "perhaps")
        with pytest.raises(InvalidArguments, match="no status"):
            await hub.acting_for(ANNA).approvals.list("pendign")
        given = [hub.acting_for(ANNA).approvals.answer(asked, answer) for answer in ("no", "always", "once")]
        outcomes = await asyncio.gather(*given, return_exceptions=True)
        assert sum(isinstance(one, Conflict) for one in outcomes) == 2, outcomes


async def test_questions_and_answers_expire(tmp_path: Path, database_url: str) -> None:
    async with open_asking(tmp_path, database_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, SUM)
        late = await question(hub)
        await age(hub, late)
        assert await hub.acting_for(ANNA).approvals.list("pending") == []
        assert (await hub.acting_for(ANNA).approvals.get(late)).status == "expired"
        with pytest.raises(Conflict, match="expired"):
            await hub.acting_for(ANNA).approvals.answer(late, "once")
        await hub.acting_for(AGENT).call(WRITES, SUM)
        fresh = await question(hub)
        assert fresh != late
        lasts = (
            await hub.acting_for(ANNA).approvals.answer(fresh, "once")
        ).approval.expires_at - datetime.now(UTC)
        assert timedelta(minutes=59) < lasts <= timedelta(hours=1)
        await age(hub, fresh)
        assert code(await hub.acting_for(AGENT).call(WRITES, SUM)) == "approval_pending"
        await runtime_of(hub).tidy()
        noted = {one.approval.id for one in await hub.acting_for(ANNA).approvals.list("expired")}
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
        await hub.acting_for(ANNA).approvals.answer(await question(hub), "once")
        assert (await hub.acting_for(AGENT).call(WRITES, SUM)).ok


async def test_events_tell_the_user_and_nobody_else(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub, asyncio.TaskGroup() as tasks:
        heard = {user: tasks.create_task(told(hub, Caller(user=user))) for user in ("anna", "bert")}
        await until(lambda: len(runtime_of(hub).events._listeners) == 2)
        for user, arguments in (("anna", SUM), ("bert", {"a": 8, "b": 8})):
            await hub.acting_for(replace(AGENT, user=user)).call(WRITES, arguments)
            [asked] = await hub.acting_for(Caller(user=user)).approvals.list("pending")
            await hub.acting_for(Caller(user=user)).approvals.answer(asked.approval.id, "no")
        for user, task in heard.items():
            asked_event, answered_event = await task
            assert (asked_event.kind, answered_event.kind) == ("approval.requested", "approval.answered")
            assert {asked_event.user, answered_event.user} == {user}
            assert asked_event.data["tool"] == WRITES
            assert answered_event.data["answer"] == "no"
            assert "arguments" not in asked_event.data


async def told(hub: Hub, caller: Caller) -> list[Event]:
    seen: list[Event] = []
    async with aclosing(hub.acting_for(caller).events()) as events:  # type: ignore[type-var]
        async for event in events:
            if event.kind.startswith("approval."):
                seen.append(event)
            if len(seen) == 2:
                break
    return seen


async def test_arguments_are_nowhere_in_the_clear(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path / "home", sqlite_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(DESTROYS, {"text": CANARY})
        assert (await questions(hub))[0].asked.arguments == {"text": CANARY}
    searched = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in searched)
    for file in searched:
        assert CANARY.encode() not in file.read_bytes(), file


async def test_arguments_moved_to_another_question_do_not_open(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(DESTROYS, {"text": "one"})
        await hub.acting_for(AGENT).call(DESTROYS, {"text": "two"})
        one, two = (asked.approval for asked in await questions(hub, 2))
        with pytest.raises(Exception, match="moved"):
            runtime_of(hub).approvals.open(replace(one, arguments=two.arguments))


async def test_exact_numbers_are_shown(tmp_path: Path, sqlite_url: str) -> None:
    async with open_asking(tmp_path, sqlite_url, wait=0.01) as hub:
        await hub.acting_for(AGENT).call(WRITES, {"a": 2**63 + 1, "b": 0.1})
        assert (await questions(hub))[0].asked.arguments == {"a": 2**63 + 1, "b": 0.1}


async def test_the_direct_path_asks_nothing_of_the_store(tmp_path: Path, sqlite_url: str) -> None:
    """Broken rows prove it: whoever touched them would fail."""
    async with open_asking(tmp_path, sqlite_url) as hub:
        runtime_of(hub).approvals._rows = None  # type: ignore[assignment]
        assert (await hub.acting_for(ANNA).call(DESTROYS, {"text": "x"})).ok
        assert (await hub.acting_for(AGENT).call(READS, {"text": "x"})).ok
        assert code(await hub.acting_for(AGENT).call(WRITES, SUM)) == "internal"
