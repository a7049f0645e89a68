"""A store or NATS that is away for a moment is waited for; no agent is told of it as what its call gave."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.errors import ClusterUnavailable, DragomanError, StoreUnavailable
from dragoman.run import Question
from dragoman.settings import Settings
from runs.scripted import model_of
from servers.hubs import quick, until
from servers.processes import journal, stdio
from store.memory_store import MemoryRuns, MemoryUsage, Tables, memory_store

pytestmark = pytest.mark.anyio


class AwayUsage(MemoryUsage):
    """Does not answer the first times that it is asked whether a call is within its limits."""

    def __init__(self, times: int, fault: type[DragomanError]) -> None:
        super().__init__(Tables())
        self.times = times
        self.fault = fault

    async def take(self, meters: Sequence[Any], leases: Sequence[Any], now: Any) -> Any:
        self.times -= 1
        if self.times >= 0:
            raise self.fault("something does not answer", hint="see whether it runs")
        return await super().take(meters, leases, now)


@pytest.mark.parametrize(
    ("tool", "fault"),
    [("echo", StoreUnavailable), ("send", StoreUnavailable), ("send", ClusterUnavailable)],
)
async def test_a_call_is_made_once_when_what_was_away_is_back(
    tmp_path: Path, tool: str, fault: type[DragomanError]
) -> None:
    usage = AwayUsage(2, fault)
    store = replace(memory_store(), usage=usage)
    async with Hub(Settings(home=tmp_path / "home", model="scripted", rollout_share=0.0), store=store) as hub:
        hub.models.register("scripted", model_of((f"mcp_box_{tool}", {"text": "hello"})))
        await hub.connectors.add(
            "box",
            calls_per_minute=100,
            approval="never",
            **quick(**stdio("--journal", str(tmp_path / "journal"))),
        )
        run = await hub.ask("do it")
        assert (run.status, usage.times) == ("done", -1), run.error
        assert "hello" in (run.answer or "")
        assert "does not answer" not in (run.answer or "")
        assert journal(tmp_path / "journal") == (["hello"] if tool == "send" else [])


class AwayQuestions(MemoryRuns):
    """Does not answer the next `times` that a question is looked for."""

    times = 0

    async def find_question(self, workspace: str, user: str, question: str) -> Question | None:
        if self.times:
            self.times -= 1
            raise StoreUnavailable("the store does not answer", hint="see whether it runs")
        return await super().find_question(workspace, user, question)


async def test_a_run_that_waits_for_an_answer_after_a_restart_does_not_mind_that_the_store_is_away(
    tmp_path: Path,
) -> None:
    runs = AwayQuestions(Tables())
    store = replace(memory_store(), runs=runs)
    settings = Settings(home=tmp_path / "home", model="scripted")
    model = model_of(("ask_person", {"question": "Which one?"}))
    async with Hub(settings, store=store) as hub:
        hub.models.register("scripted", model)
        run = (await hub.messages.post("ask")).run

        async def is_asked() -> bool:
            return bool(await hub.runs.questions())

        await until(is_asked, within=15)
    runs.times = 1
    async with Hub(settings, store=store) as hub:
        hub.models.register("scripted", model)
        dispatch = await hub.open_engine()
        await until(lambda: not runs.times, within=15)
        assert dispatch.held == frozenset({run.id}), "it is not given up"
        (question,) = await hub.runs.questions()
        await hub.runs.answer(question.id, "this")
        assert (await hub.runs.finished(run)).answer == '["this"]'
        kinds = [event.kind async for event in hub.runs.follow(run.id)]
        assert kinds.count("run.resumed") == 1
