"""Calls from code wait for a person like any other, and after a crash nothing is done twice."""

import asyncio
from pathlib import Path

import pytest
from exposed import Listening, in_turn, open_exposed

from dragoman import Hub
from dragoman.sandbox import CodeLimits
from patience import patient
from sandbox.coding import open_coding
from servers.hubs import until
from servers.processes import journal

pytestmark = pytest.mark.anyio
CODE = "await box.send(text='one')\nawait box.echo(text='two')"


async def open_send(hub: Hub) -> None:
    """Code may call it, and a person is asked each time."""
    await hub.tools.configure("mcp_box_send", allowed_callers=["direct", "agent", "code"], approval="always")


async def asked(hub: Hub) -> str:
    async def is_asked() -> bool:
        return bool(await hub.approvals.list())

    await until(is_asked)
    return (await hub.approvals.list())[0].approval.id


async def test_a_run_waits_while_a_call_from_code_waits_for_a_yes(tmp_path: Path, database_url: str) -> None:
    listening = Listening(in_turn([("run_code", {"code": CODE})], "done"))
    async with open_exposed(tmp_path, listening, database_url) as hub:
        await open_send(hub)
        accepted = await hub.messages.post("do it", options={"exposure": "code"})
        approval = await asked(hub)

        async def is_waiting() -> bool:
            return (await hub.runs.get(accepted.run.id)).status == "waiting"

        await until(is_waiting)
        assert journal(tmp_path / "journal") == []
        await hub.approvals.answer(approval, "once")
        run = await hub.runs.finished(accepted.run)
        assert run.status == "done"
        assert "two" in listening.requests[-1].told[0]
        assert journal(tmp_path / "journal") == ["one"]
        kinds = [step.kind for step in (await hub.runs.view(run.id)).steps]
        assert kinds.count("call.departed") == 1  # found so after a crash, it is uncertain and not run again


async def test_a_no_reaches_the_code_and_the_model(tmp_path: Path) -> None:
    listening = Listening(in_turn([("run_code", {"code": CODE})], "done"))
    async with open_exposed(tmp_path, listening) as hub:
        await open_send(hub)
        accepted = await hub.messages.post("do it", options={"exposure": "code"})
        await hub.approvals.answer(await asked(hub), "no")
        run = await hub.runs.finished(accepted.run)
        assert run.status == "done"
        assert "said no" in listening.requests[-1].told[0]
        assert journal(tmp_path / "journal") == []


async def test_the_time_of_code_stands_still_while_a_person_is_asked(tmp_path: Path) -> None:
    async with open_exposed(tmp_path, Listening(in_turn("done"))) as hub:
        await open_send(hub)
        async with open_coding(hub, CodeLimits(wall=patient(1))) as code:
            running = asyncio.ensure_future(code.run(CODE))
            approval = await asked(hub)
            await asyncio.wait([running], timeout=patient(1.2))  # longer than the code has
            assert not running.done()
            await hub.approvals.answer(approval, "once")
            output = await running
            assert output.ok, output.error


async def test_code_that_only_read_is_not_held_back_after_a_crash(tmp_path: Path) -> None:
    listening = Listening(in_turn([("run_code", {"code": "await box.echo(text='read')"})], "done"))
    async with open_exposed(tmp_path, listening) as hub:
        run = await hub.messages.ask("do it", options={"exposure": "code"})
        kinds = [step.kind for step in (await hub.runs.view(run.id)).steps]
        assert "call.finished" in kinds
        assert "call.departed" not in kinds
