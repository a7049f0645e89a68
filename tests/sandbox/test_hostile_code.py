"""Hostile code against a hub with a real server: none reaches the host, and the hub serves on."""

import asyncio
import resource
from pathlib import Path

import pytest
from coding import Pauses, as_caller, journal_of, open_workshop
from hostile_snippets import SNIPPETS

from dragoman import Caller
from dragoman.hub.code import Code
from dragoman.sandbox import CodeOutput
from patience import deadline, patient
from servers.hubs import quick
from servers.processes import journal, stdio

pytestmark = pytest.mark.anyio
CANARY = "canary-5f1e"
EVE = Caller(user="eve", role="member")


def faults_of(name: str, output: CodeOutput) -> list[str]:
    _, expected = SNIPPETS[name]
    code = output.error.code if output.error else None
    # On a busy machine the time may be over before the memory is full.
    is_wrong = expected is not None and code not in expected | {"code_timeout"}
    found = [f"{name}: ended in {code}"] if is_wrong else []
    shown = f"{output.printed} {output.result}"
    if CANARY in shown or "root:" in shown:
        found.append(f"{name}: saw the host: {shown[:200]}")
    if output.error and not (output.error.message and len(output.error.message) < 3000):
        found.append(f"{name}: has no good message")
    return found


@pytest.mark.slow
async def test_hostile_code_reaches_nothing_and_the_hub_serves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_CANARY", CANARY)
    target = tmp_path / "target"
    target.mkdir()
    assert len(SNIPPETS) >= 60
    async with open_workshop(tmp_path / "home") as (hub, code):
        await hub.acting_for(EVE).connectors.add("secret", **quick(**stdio()))
        assert (await as_caller(code, EVE).run("await secret.echo(text='mine')")).result == "mine"
        found: list[str] = []

        async def attack(names: list[str], user: str, code: Code) -> None:
            for name in names:
                text = SNIPPETS[name][0].replace("/tmp/CANARY", str(target / "file"))
                output = await as_caller(code, Caller(user=user)).run(text)
                found.extend(faults_of(name, output))

        names = list(SNIPPETS)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(attack(names[number::2], f"attacker-{number}", code))
        assert found == []
        assert list(target.iterdir()) == []
        assert journal(journal_of(hub)) == []
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024
        assert (await code.run("await raw.echo(text='still here')")).result == "still here"
        assert (await hub.call("mcp_raw_echo", {"text": "me too"})).result == "me too"
    assert "x" * 100 not in capfd.readouterr().out


@pytest.mark.slow
async def test_others_are_not_slowed_while_one_burns_its_limits(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        await code.run("await raw.echo(text='warm')")
        pauses = Pauses()
        burning = (
            "while True: pass",
            "x = [0] * 1000\ny = [x] * 1000\nz = [y] * 1000\nz",
            "while True: print('x' * 1000)",
            "x = []\nwhile True: x.append('y' * 1000)",
        )
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(pauses.watch())
            fires = [group.create_task(as_caller(code, Caller(user="mallory")).run(text)) for text in burning]
            while not all(fire.done() for fire in fires):
                async with deadline(2):
                    output = await as_caller(code, Caller(user="alice")).run("await raw.echo(text='x')")
                    assert output.ok
                    assert (await hub.call("mcp_raw_echo", {"text": "x"})).ok
            watching.cancel()
        assert not any(fire.result().ok for fire in fires)
        assert pauses.longest < patient(0.3)


async def test_a_destructive_tool_is_not_called_before_a_person_says_yes(tmp_path: Path) -> None:
    async with open_workshop(tmp_path / "home", approval_wait=0.2) as (hub, code):
        path = journal_of(hub)
        await hub.tools.configure("mcp_raw_send", allowed_callers=["code"])
        output = await code.run("await raw.send(text='now')")
        assert output.error
        assert "approval_pending" in output.error.message
        assert journal(path) == []
        pending = await hub.approvals.list()
        await hub.approvals.answer(pending[0].approval.id, "once")
        assert (await code.run("await raw.send(text='now')")).result == "sent now"
        assert journal(path) == ["now"]
        assert not (await code.run("await raw.send(text='now')")).ok
