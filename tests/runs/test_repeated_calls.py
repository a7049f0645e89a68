"""A run whose model asks for the same again and again: it is told that it has it, and then the run ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.function import FunctionModel

from agents.exposed import Call, Listening, Seen, in_turn, open_exposed
from dragoman import Hub
from dragoman.run import Run
from dragoman.tool import Annotations
from patience import deadline
from runs.scripted import model_of, open_scripted
from servers.hubs import until
from servers.processes import journal

pytestmark = pytest.mark.anyio
READS = Annotations(read_only=True)
HAVE_IT = "You already have this result"
LOOK, SEND, NOTE = (("look", {"text": "a"}), ("send", {"text": "a"}), ("note", {"text": "a"}))


async def add_tools(hub: Hub) -> list[str]:
    """`look` and `poll` only read; `poll` sees a change at the fifth look. What was called, in order."""
    made: list[str] = []

    async def look(text: str) -> str:
        made.append(f"look {text}")
        return f"saw {text}"

    async def poll() -> str:
        made.append("poll")
        return "done" if made.count("poll") > 4 else "pending"

    async def send(text: str) -> str:
        made.append(f"send {text}")
        return "sent"

    async def note(text: str) -> str:
        made.append(f"note {text}")
        return "noted"

    for tool in (look, poll):
        hub.add_tool(tool, annotations=READS)
    for tool in (send, note):
        hub.add_tool(tool)
        await hub.tools.configure(tool.__name__, approval="never")
    return made


async def ended(home: Path, model: FunctionModel) -> tuple[Run, list[str], list[Any]]:
    """The run, what was really called, and what the model was told of each call."""
    async with open_scripted(home, model) as hub:
        made = await add_tools(hub)
        run = await hub.ask("go")
        return run, made, [brought(one["content"]) for one in await replies(hub, run)]


async def test_a_third_time_is_told_and_a_sixth_ends_the_run(tmp_path: Path) -> None:
    run, made, told = await ended(tmp_path, model_of(*[SEND] * 9))
    assert made == ["send a"] * 2, "what changes something is not done again"
    assert told[:2] == ["sent"] * 2
    assert [text.split(":")[0] for text in told[2:]] == [HAVE_IT] * 3
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.code == "limit_reached"
    assert run.error.message.startswith("the agent called send 6 times with the same arguments")
    assert run.usage.calls == 2


async def test_the_model_goes_on_with_the_result_that_it_has(tmp_path: Path) -> None:
    run, made, told = await ended(tmp_path, model_of(LOOK, LOOK, LOOK, SEND, "that is all"))
    assert (run.status, run.answer) == ("done", "that is all")
    assert made == ["look a"] * 3 + ["send a"]
    assert told[2].startswith(HAVE_IT)
    assert "(result call_" in told[2], "the handle of the call that brought it"


async def test_a_circle_of_calls_ends_as_well(tmp_path: Path) -> None:
    run, made, told = await ended(tmp_path, model_of(*[SEND, NOTE, LOOK] * 9))
    assert run.error is not None
    assert run.error.code == "limit_reached"
    assert (made.count("send a"), made.count("note a")) == (2, 2)
    assert [text.startswith(HAVE_IT) for text in told] == [False] * 6 + [True] * 9


async def test_the_same_call_six_times_at_once_is_a_repetition_too(tmp_path: Path) -> None:
    run, made, _ = await ended(tmp_path, model_of([SEND] * 6))
    assert made == ["send a"] * 2
    assert run.error is not None
    assert run.error.code == "limit_reached"


async def test_who_polls_sees_the_change(tmp_path: Path) -> None:
    run, made, told = await ended(tmp_path, model_of(*[("poll", {})] * 6, "it is done"))
    assert (run.status, run.answer) == ("done", "it is done")
    assert len(made) == 6
    assert [told[0], told[1], told[4], told[5]] == ["pending", "pending", "done", "done"]
    assert told[2].startswith(HAVE_IT)


async def test_after_something_new_was_done_the_same_look_is_no_repetition(tmp_path: Path) -> None:
    edits = [turn for number in range(8) for turn in (("note", {"text": f"edit {number}"}), LOOK)]
    run, made, told = await ended(tmp_path, model_of(*edits, "all edited"))
    assert run.status == "done"
    assert made.count("look a") == 8
    assert not any(text.startswith(HAVE_IT) for text in told)


async def test_other_arguments_are_another_call_whatever_their_order(tmp_path: Path) -> None:
    turns = [("look", {"text": f"{number}"}) for number in range(7)]
    run, made, _ = await ended(tmp_path, model_of(*turns, "seven"))
    assert (run.answer, len(made)) == ("seven", 7)


EXPOSURES: dict[str, Call] = {
    "direct": ("mcp_box_send", {"text": "x"}),
    "search": ("mcp_box_send", {"text": "x"}),
    "code": ("run_code", {"code": "await box.send(text='x')"}),
    "delegate": ("query_mcp_connector", {"connector_id": "box", "query": "send x"}),
}


@pytest.mark.parametrize("exposure", EXPOSURES)
async def test_in_every_exposure(tmp_path: Path, exposure: str) -> None:
    call = EXPOSURES[exposure]

    def script(seen: Seen) -> list[Call] | str:
        if seen.is_child:
            return in_turn([EXPOSURES["direct"]], "It is sent [c1].")(seen)
        first: list[Call] = [("search_tools", {"query": "send a text"})]
        return in_turn(*([first] if exposure == "search" else []), [call])(seen)

    listening = Listening(script)
    async with open_exposed(tmp_path, listening) as hub:
        await hub.tools.configure(
            "mcp_box_send", approval="never", allowed_callers=["direct", "agent", "code"]
        )
        run = await hub.messages.ask("send x", options={"exposure": exposure})
        assert run.error is not None
        assert run.error.message.startswith(f"the agent called {call[0]} 6 times")
        assert journal(tmp_path / "journal") == ["x", "x"]
        told = [seen for seen in listening.requests if not seen.is_child][-1].told
        assert [HAVE_IT in text for text in told[-5:]] == [False, False, True, True, True]


@pytest.mark.parametrize("before", [2, 5])
async def test_taken_up_again_it_decides_as_before(tmp_path: Path, before: int) -> None:
    """The run is left after so many of the same call; whoever goes on knows only its journal."""
    turns = [[SEND]] * (before - 1) + [[SEND, ("gate", {})]] + [[SEND]] * 9
    is_open, is_reached = asyncio.Event(), asyncio.Event()

    async def gate() -> str:
        is_reached.set()
        await is_open.wait()
        return "open"

    async with open_scripted(tmp_path, model_of(*turns)) as hub:
        made = await add_tools(hub)
        hub.add_tool(gate, annotations=READS)
        run = (await hub.messages.post("go")).run
        async with deadline(15):
            await is_reached.wait()
        await until(lambda: is_told(hub, run, before), within=15)
    is_open.set()
    async with open_scripted(tmp_path, model_of(*turns)) as hub:
        again = await add_tools(hub)
        hub.add_tool(gate, annotations=READS)
        run = await hub.runs.finished(run)
        told = await replies(hub, run)
    assert run.error is not None
    assert run.error.message.startswith("the agent called send 6 times")
    codes = [one.get("code") for one in told if one["tool"] == "send"]
    assert codes == [None, None, *["repeated"] * 3]
    assert (made, again) == (["send a"] * 2, [])


async def is_told(hub: Hub, run: Run, times: int) -> bool:
    return len(await replies(hub, run)) >= times


async def replies(hub: Hub, run: Run) -> list[Any]:
    return [step.content for step in (await hub.runs.view(run.id)).steps if step.kind == "call.finished"]


def brought(content: Any) -> Any:
    """Without the name by which it can be cited."""
    return content["result"] if isinstance(content, dict) and "source" in content else content
