"""What a run costs over bare pydantic-ai with the same scripted model; many threads at once; many to resume.

Both do the same: the model is asked, calls a tool some times in a row, is told, and answers. Dragoman adds
the thread, the journal, the road, the records and the events. CPU is that of the process, deferred writes
included.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

import lab
import peers
from dragoman import Hub, Settings
from dragoman.run import Run
from dragoman.tool import Annotations

READS = Annotations(read_only=True)
CALLS = (0, 5, 20)
BARE, OURS = "bare pydantic-ai", "Dragoman"
PER_RUN, PER_CALL = 8.0, 2.0  # milliseconds of CPU
FIRST = 300.0  # milliseconds until a message is accepted
THREADS = 100
OPEN = 500


async def script(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """`calls N`: N calls, one after the other, then an answer. `ask`: a question to the person."""
    asked, turn = "", 0
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    asked, turn = str(part.content), 0
    if asked == "ask" and turn == 0:
        yield {0: DeltaToolCall("ask_person", '{"question": "Which one?"}', tool_call_id="ask")}
    elif asked.startswith("calls") and turn < int(asked.split()[1]):
        yield {
            0: DeltaToolCall("echo", json.dumps({"text": f"{turn} {peers.TEXT}"}), tool_call_id=f"c{turn}")
        }
    else:
        yield "That is "
        yield "all."


def model() -> FunctionModel:
    return FunctionModel(stream_function=script)


async def echo(text: str) -> str:
    return text


async def bare(calls: int) -> None:
    agent = Agent(model(), instructions="You help.", tools=[echo])
    async with agent.run_stream_events(f"calls {calls}") as events:
        async for _ in events:
            pass


async def overhead(report: lab.Report, rounds: int, runs: int) -> None:
    async with AsyncExitStack() as stack:
        hub = await opened(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))

        async def ours(calls: int) -> None:
            run = await hub.ask(f"calls {calls}")
            assert run.status == "done", run.error

        async def settle() -> None:
            await hub.calls(1)
            await hub.audit.list(limit=1)

        rows: list[list[object]] = []
        cpu: dict[tuple[str, int], float] = {}
        for calls in CALLS:
            contenders = [
                lab.Contender(name=BARE, call=lambda calls=calls: bare(calls)),
                lab.Contender(name=OURS, call=lambda calls=calls: ours(calls), settle=settle),
            ]
            found = await lab.compare(contenders, callers=1, calls=runs, rounds=rounds)
            for name, one in found.items():
                cpu[name, calls] = one.cpu
                rows.append([f"{calls:>2} calls × {name}", one.p50, one.p95, one.cpu])
        report.table("One run", ["", "p50 ms", "p95 ms", "CPU ms"], rows)
        few, many = CALLS[0], CALLS[-1]
        run = cpu[OURS, few] - cpu[BARE, few]
        call = (cpu[OURS, many] - cpu[BARE, many] - run) / (many - few)
        report.verdict(f"a run costs at most {PER_RUN:g} ms CPU more", f"{run:.2f} ms", met=run <= PER_RUN)
        report.verdict(
            f"a call costs at most {PER_CALL:g} ms CPU more", f"{call:.2f} ms", met=call <= PER_CALL
        )


async def crowd(report: lab.Report, threads: int) -> None:
    async with AsyncExitStack() as stack:
        hub = await opened(stack, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        await hub.ask("calls 1")
        places = [(await hub.threads.create()).thread.id for _ in range(threads)]
        started = time.perf_counter()
        accepted: list[float] = []
        first: list[float] = []

        async def one(thread: str) -> Run:
            begun = time.perf_counter()
            run = (await hub.messages.post("calls 3", thread=thread)).run
            accepted.append((time.perf_counter() - begun) * 1000)
            async for event in hub.runs.follow(run.id):
                if event.kind == "run.started":
                    first.append((time.perf_counter() - begun) * 1000)
            return await hub.runs.get(run.id)

        runs = await asyncio.gather(*map(one, places))
        seconds = time.perf_counter() - started
        assert all(run.status == "done" for run in runs)
        report.table(
            f"{threads} threads at once, three calls each",
            ["", "p50 ms", "p95 ms"],
            [
                ["accepted: on disk, and the caller told", *_percentiles(accepted)],
                ["begun: the first event of its work", *_percentiles(first)],
            ],
        )
        report.notes.append(
            f"{threads / seconds:.0f} runs a second, {4 * threads / seconds:.0f} model steps."
        )
        p95 = lab.percentile(accepted, 95)
        report.verdict(f"p95 of accepted under {FIRST:g} ms", f"{p95:.0f} ms", met=p95 < FIRST)


async def resumption(report: lab.Report, runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            hub = await opened(stack, Path(folder))
            for _ in range(runs):
                await hub.messages.post("ask")
            await _until_waiting(hub, runs)
        gc.collect()
        process = psutil.Process()
        before, cpu, started = process.memory_info().rss, time.process_time(), time.perf_counter()
        async with AsyncExitStack() as stack:
            hub = await opened(stack, Path(folder))
            dispatch = await hub.open_engine()
            while len(dispatch.held) < runs or dispatch.at_work:
                await asyncio.sleep(0.01)
            seconds, used = time.perf_counter() - started, time.process_time() - cpu
            grown = (process.memory_info().rss - before) / 1e6
            idle = time.process_time()
            await asyncio.sleep(3)
            idle = (time.process_time() - idle) / 3
            begun = time.perf_counter()
            answered = [hub.runs.answer(one.id, "this") for one in await hub.runs.questions(limit=runs)]
            await asyncio.gather(*answered)
            while dispatch.held:
                await asyncio.sleep(0.01)
            ended = time.perf_counter() - begun
    columns = ["seconds", "CPU ms each", "memory MB", "CPU while all wait", "seconds to answer all"]
    row = [seconds, used * 1000 / runs, grown, f"{idle:.1%}", ended]
    report.table(f"{runs} runs that wait for an answer, after a restart", columns, [row])
    report.verdict("all of them are taken up again", f"{runs} in {seconds:.1f} s", met=True)


async def _until_waiting(hub: Hub, runs: int) -> None:
    while len(await hub.runs.list(status="waiting", limit=runs)) < runs:
        await asyncio.sleep(0.05)


async def opened(stack: AsyncExitStack, home: Path) -> Hub:
    hub = await stack.enter_async_context(Hub(Settings(home=home, model="scripted")))
    hub.models.register("scripted", model())
    hub.add_tool(echo, annotations=READS)
    await hub.open_engine()
    return hub


def _percentiles(values: list[float]) -> list[float]:
    return [lab.percentile(values, 50), lab.percentile(values, 95)]


async def measure(rounds: int, runs: int, threads: int, waiting: int) -> lab.Report:
    report = lab.Report("runs")
    await overhead(report, rounds, runs)
    await crowd(report, threads)
    await resumption(report, waiting)
    return report


def main() -> None:
    given = lab.options(__doc__ or "", runs=(40, "runs of each contender in a round"), rounds=(5, "rounds"))
    peers.configure_logging("error")
    share = 10 if given.quick else 1
    report = asyncio.run(
        measure(1 if given.quick else given.rounds, max(5, given.runs // share), THREADS, OPEN // share)
    )
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
