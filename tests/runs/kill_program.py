"""A process that works on one run and kills itself at a chosen write of the journal: a fork for every life.

Reads orders from stdin, one JSON object a line; each life is a fork, so what is heavy is imported once. A
life opens a hub on a home, posts the message or finds the run that was left, says yes to whatever is asked,
and writes what came of it to `result.json`. It knows nothing of the tests that order it.
"""

import asyncio
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from dragoman import Hub
from dragoman.hub.attachments import Attachment
from dragoman.run import Run
from dragoman.settings import Settings
from dragoman.store.records import JournalBatch

PATIENCE = 40.0
SMALL = "openai-chat:gpt-4"  # a window of 8,192 tokens, a third of it for what came before
TALK = "word " * 500
LONG = "a long story"
FILE = "The hat is blue."

_FENCE = re.compile(r"^<data \w+>\n|\n</data \w+>$")  # around what a tool gave


def script(ledger: str) -> Any:
    """Three calls in a row, each with what the one before brought, three at once, one that needs a yes."""

    def call(tool: str, text: str, call_id: str) -> DeltaToolCall:
        arguments = json.dumps({"text": text, "ledger": ledger})
        return DeltaToolCall(name=f"mcp_ledger_{tool}", json_args=arguments, tool_call_id=call_id)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        turn, told = _situation(messages)
        asked = _asked(messages)
        if asked == "repeat":
            yield {0: call("post", "the same", "1")}
            return
        if asked.endswith("look"):
            yield "Looked." if turn else {0: call("look", "a", "1")}
            return
        if asked == TALK:
            yield "ok"
            return
        if is_cut(messages):
            yield "The first half, "
            return
        if LONG in asked:
            yield {0: DeltaToolCall("mcp_asking_greet", "{}", tool_call_id="1")}
            return
        if asked.startswith("Your answer was cut"):
            heard = str(messages)
            yield f"and the second{', the file' if FILE in heard else ''}"
            yield f"{', the summary' if 'They talked.' in heard else ''}."
            return
        before = told[-1][1] if told else ""
        if turn == 0:
            yield "First "
            yield "I look. "
            yield {0: call("look", "a", "1")}
        elif turn == 1:
            yield {0: call("post", f"b after <{before}>", "1")}
        elif turn == 2:
            yield {0: call("look", f"c after <{before}>", "1")}
        elif turn == 3:
            yield "Now three at once. "
            yield {1: call("look", "d", "x"), 2: call("post", "e", "y"), 3: call("post", "f", "z")}
        elif turn == 4:
            yield {0: call("pay", "g", "1")}
        else:
            yield "All of it: "
            yield json.dumps(told)

    return answer


def is_cut(messages: list[ModelMessage]) -> bool:
    """Whether the answer now is one that is too long: what the server that asks has brought is told."""
    turn, told = _situation(messages)
    return turn == 1 and "Hello, Ann!" in told[-1][1]


async def sum_up(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("They talked.")])


class CutAnswers(WrapperModel):
    """Says of an answer that it is as long as it may be."""

    @asynccontextmanager
    async def request_stream(self, *given: Any, **named: Any) -> AsyncGenerator[Any]:
        async with super().request_stream(*given, **named) as response:
            messages = given[0] if given else named["messages"]
            response.finish_reason = "length" if is_cut(messages) else "stop"
            yield response


def _asked(messages: list[ModelMessage]) -> str:
    """What the person wrote last."""
    parts = [part for message in messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)][-1]


def _situation(messages: list[ModelMessage]) -> tuple[int, list[tuple[str, str]]]:
    """How many answers there are to the last message of a person, and what the tools told since."""
    turn, told = 0, list[tuple[str, str]]()
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                turn, told = 0, []
            told += [
                (part.tool_call_id, _brought(part.content))
                for part in message.parts
                if isinstance(part, ToolReturnPart)
            ]
    return turn, told


def _brought(content: Any) -> str:
    """Without the fence, and without the name by which it can be cited."""
    is_named = isinstance(content, dict) and "source" in content
    return _FENCE.sub("", str(content["result"] if is_named else content))


def die_at(hub: Hub, number: int, moment: str) -> None:
    """The process is gone at its n-th write of the journal: before it is on disk, or right after."""
    rows = hub._runtime.store.runs  # pyright: ignore[reportPrivateUsage]
    write, writes = rows.write_held, 0

    async def counted(batch: JournalBatch, worker: str) -> frozenset[str]:
        nonlocal writes
        writes += 1
        if writes == number and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        lost = await write(batch, worker)
        if writes == number and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return lost

    rows.write_held = counted  # type: ignore[method-assign]


def die_at_recipe(hub: Hub, number: int) -> None:
    """The same right after the n-th write of what keeps and shares a recipe: its rows, and the trail."""
    store, writes = hub._runtime.store, 0  # pyright: ignore[reportPrivateUsage]

    def counted(write: Any) -> Any:
        async def written(*given: Any) -> Any:
            nonlocal writes
            done = await write(*given)
            writes += 1
            if writes == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return written

    store.recipes.put = counted(store.recipes.put)  # type: ignore[method-assign]
    store.audit.append = counted(store.audit.append)  # type: ignore[method-assign]


async def keep_and_share(hub: Hub, number: int) -> dict[str, Any]:
    """Of the run that was left; what there is of recipes and of the trail then."""
    die_at_recipe(hub, number)
    (run,) = await hub.runs.list()
    (kept,) = await hub.recipes.keep(run.id)
    await hub.recipes.share(kept.recipe.id, text="1. look twice")
    recipes = {one.recipe.id.partition("_")[0]: one.recipe.text for one in await hub.recipes.list()}
    return {"recipes": recipes, "is_whole": (await hub.audit.verify()).is_whole}


async def say_yes(hub: Hub, home: Path) -> None:
    while True:
        for question in await hub.approvals.list():
            with (home / "yes").open("a") as file:
                file.write(question.approval.id + "\n")
            await hub.approvals.answer(question.approval.id, "once")
        for question in await hub.runs.questions():
            await hub.runs.answer(question.id, {"name": "Ann"})
        await asyncio.sleep(0.02)


async def worked(order: dict[str, Any]) -> dict[str, Any]:
    home = Path(order["home"])
    request = order.get("request", "do it")
    name = SMALL if request == LONG else "scripted"
    settings = Settings(home=home, database_url=order.get("database"), model=name)
    async with Hub(settings) as hub:
        hub.models.register(name, CutAnswers(FunctionModel(sum_up, stream_function=script(order["ledger"]))))
        if order.get("prepare"):
            await hub.connectors.add("ledger", url=order["url"], approval="never")
            await hub.tools.configure("mcp_ledger_pay", approval="always")
            await hub.people.update_workspace("local", recipes=True)
            await hub.open_engine()
            return {}
        if "recipe" in order:
            return await keep_and_share(hub, order["recipe"])
        if order.get("talk"):
            await hub.connectors.add("asking", url=order["url"], approval="never")
            thread = (await hub.ask(TALK)).thread
            for _ in range(2):
                await hub.ask(TALK, thread=thread)
            return {}
        if order.get("die_at"):
            die_at(hub, order["die_at"], order["moment"])
        runs = [one for one in await hub.runs.list() if one.request != TALK]
        run = runs[0] if runs else await posted(hub, request)
        yes = asyncio.ensure_future(say_yes(hub, home))
        async with asyncio.timeout(PATIENCE * float(os.environ.get("TEST_PATIENCE") or 1)):
            run = await hub.runs.finished(run)
        yes.cancel()
        await asyncio.wait([yes])
        return await result(hub, run)


async def posted(hub: Hub, request: str) -> Run:
    """What is to be long is said in the thread that there is, with a file."""
    if request != LONG:
        return (await hub.messages.post(request)).run
    (listed,) = await hub.threads.list()
    attached = [Attachment(name="hat.txt", data=FILE.encode())]
    return (await hub.messages.post(request, thread=listed.thread.id, attachments=attached)).run


async def result(hub: Hub, run: Run) -> dict[str, Any]:
    view = await hub.runs.view(run.id)
    approvals = await hub.approvals.list(None)
    return {
        "status": run.status,
        "error": run.error.facts() if run.error else None,
        "answer": run.answer,
        "usage": [run.usage.requests, run.usage.calls],
        "events": [[event.number, event.kind] for event in view.events],
        "steps": [[step.kind, step.key] for step in view.steps],
        "messages": [[one.author, one.text] for one in await hub.messages.list(run.thread)],
        "questions": [one.status for one in await hub.runs.questions(status=None)],
        "approvals": [[one.approval.id, one.approval.status] for one in approvals],
    }


def live(order: dict[str, Any]) -> int:
    try:
        found = asyncio.run(worked(order))
    except BaseException:
        traceback.print_exc()
        return 1
    (Path(order["home"]) / "result.json").write_text(json.dumps(found))
    return 0


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if order.get("prepare"):
            # Here and not in a fork: what is loaded on the way is loaded for all lives.
            print(json.dumps({"ended": live(order)}), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(live(order))
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"ended": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
