"""Nodes that execute runs, each a fork of this process with an identity of its own: as if on another host.

Reads orders from stdin, one JSON object a line, and answers each with the process id of the new node. A node
joins the cluster, says in `ready` that it works, posts a message once there is a file `go`, and may kill or
freeze itself at a chosen write of the journal. What it wrote of runs after it was frozen is in `wrote_after`.
It ends with SIGTERM, as a service does. What is heavy is imported once.
"""

import asyncio
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman import Hub
from dragoman.runs import workers
from dragoman.settings import Settings
from dragoman.store.records import JournalBatch
from runs import kill_program

LAST_CALLS = 3.0


async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """What `kill_program` does, on the ledger that the message names; to anything else a word."""
    asked = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                asked = str(part.content)
    if not asked.startswith("do it on "):
        yield "Hello."
        return
    async for part in kill_program.script(asked.removeprefix("do it on "))(messages, info):
        yield part


def halt_at(hub: Hub, folder: Path, number: int, moment: str, number_of_signal: int) -> None:
    """The process is killed or frozen at its n-th write of the journal: before it is on disk, or right after.

    What it writes after it was frozen is noted: nothing may be, once another has the run.
    """
    rows = hub._runtime.store.runs  # pyright: ignore[reportPrivateUsage]
    write, writes, halted = rows.write_held, 0, False

    def halt() -> None:
        nonlocal halted
        halted = True
        (folder / "halted").write_text(repr(time.time()))
        os.kill(os.getpid(), number_of_signal)

    async def counted(batch: JournalBatch, worker: str) -> frozenset[str]:
        nonlocal writes
        writes += 1
        if writes == number and moment == "before":
            halt()
        was_halted = halted
        lost = await write(batch, worker)
        if was_halted:
            named = {run.id for run in batch.runs} | {step.run for step in batch.steps}
            with (folder / "wrote_after").open("a") as file:
                file.write(f"{sorted(named - lost)}\n")
        if writes == number and moment == "after":
            halt()
        return lost

    rows.write_held = counted  # type: ignore[method-assign]


async def node(order: dict[str, Any]) -> None:
    folder = Path(order["folder"])
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    settings = Settings(home=folder / "home", model="scripted", **order["settings"])
    async with Hub(settings) as hub:
        hub.models.register("scripted", FunctionModel(stream_function=answer))
        if order.get("prepare"):
            await hub.connectors.add("ledger", url=order["prepare"], approval="never")
            await hub.tools.configure("mcp_ledger_pay", approval="always")
            await hub.open_engine()
            return
        if order.get("halt_at"):
            halt_at(hub, folder, order["halt_at"], order["moment"], signal.Signals[order["signal"]])
        dispatch = await hub.open_engine()
        (folder / "ready").write_text(dispatch.worker)
        if order.get("message"):
            while not (folder / "go").exists():
                await asyncio.sleep(0.01)
            run = (await hub.messages.post(order["message"])).run
            (folder / "posted").write_text(run.id)
        await stopped.wait()
        await hub.drain(LAST_CALLS)
        (folder / "drained").write_text(repr(time.time()))


def live(order: dict[str, Any]) -> int:
    try:
        asyncio.run(node(order))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        if order.get("prepare"):
            # Here and not in a fork: what is loaded on the way is loaded for all nodes.
            print(json.dumps({"ended": live(order)}), flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever ended is gone
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            # Nobody can see whether a process on another host lives.
            workers._place.cache_clear()  # pyright: ignore[reportPrivateUsage]
            place = f"host-of-{folder.name}:boot:1"
            workers._place = lambda place=place: place  # type: ignore[assignment]
            os._exit(live(order))
        print(json.dumps({"pid": pid}), flush=True)


if __name__ == "__main__":
    main()
