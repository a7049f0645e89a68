"""Nodes as processes that only make calls: what is measured and killed when holders come and go.

A node is forked from a process that has imported what it needs, and asked over a socket, many calls at once.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from cluster.nodes import KEY
from dragoman import Hub
from dragoman.settings import Settings
from patience import deadline, until
from servers.hubs import runtime_of
from servers.processes import FORKS, end_with_parent

Did = Callable[[Hub, str, list[Any]], Awaitable[Any]]
"""What a node answers to a word and what comes with it; a function of a module, as processes are forked."""


class CallNode:
    """One node. A call through a node that dies meanwhile is answered with None."""

    def __init__(
        self, folder: Path, database: str, nats: str, did: Did | None = None, **settings: Any
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._address = folder / "socket"
        self._settings = {"home": str(folder), "database_url": database, "cluster_url": [nats], **settings}
        self._did = did or node_did
        self._process: ForkServerProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0

    async def start(self) -> None:
        self._address.unlink(missing_ok=True)
        self._process = FORKS.Process(
            target=_run, args=(self._settings, str(self._address), self._did), daemon=True
        )
        self._process.start()
        await until(self._address.exists, 30)
        reader, self._writer = await asyncio.open_unix_connection(str(self._address), limit=1 << 26)
        self._reading = asyncio.create_task(self._read(reader))
        self.facts: dict[str, Any] = await self.do("facts")

    @property
    def id(self) -> str:
        return self.facts["node"]

    @property
    def pid(self) -> int:
        return self.facts["pid"]

    @property
    def lives(self) -> bool:
        is_read = self._reading is not None and not self._reading.done()
        return is_read and self._process is not None and self._process.is_alive()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        return await self.do("call", tool, arguments)

    async def do(self, what: str, *words: Any) -> Any:
        """None where the node dies before it answers."""
        if self._reading is None or self._reading.done():
            return None
        self._count += 1
        number = self._count
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps([number, what, *words]).encode() + b"\n")
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                number, answer = json.loads(line)
                if (waiting := self._waiting.get(number)) and not waiting.done():
                    waiting.set_result(answer)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(None)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.join)
            self._process = None
            if self._reading is not None:
                await self._reading
                self._writer.close()

    async def stop(self) -> None:
        """As SIGTERM would: what it holds is closed."""
        if self._process is not None:
            self._writer.close()
            async with deadline(20):
                await asyncio.to_thread(self._process.join)
            self._process = None


def _run(settings: dict[str, Any], address: str, did: Did) -> None:
    end_with_parent()
    asyncio.run(_serve(settings, address, did))


async def _serve(settings: dict[str, Any], address: str, did: Did) -> None:
    facts: dict[str, Any] = {**settings, "home": Path(settings["home"]), "key": KEY}
    given = Settings(**facts)
    is_over = asyncio.Event()
    async with Hub(given) as hub:

        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with asyncio.TaskGroup() as tasks:
                with suppress(ConnectionError):  # an answer came after whoever asked was gone
                    while line := await reader.readline():
                        number, what, *words = json.loads(line)
                        tasks.create_task(answered(writer, number, what, words))
            is_over.set()

        async def answered(writer: asyncio.StreamWriter, number: int, what: str, words: list[Any]) -> None:
            answer = await did(hub, what, words)
            with suppress(ConnectionError):
                writer.write(json.dumps([number, answer], default=str).encode() + b"\n")

        server = await asyncio.start_unix_server(met, address + ".new", limit=1 << 26)
        os.rename(address + ".new", address)
        async with server:
            await is_over.wait()


async def node_did(hub: Hub, what: str, words: list[Any]) -> Any:
    match what:
        case "facts":
            return {"node": runtime_of(hub).cluster.node.id, "pid": os.getpid()}
        case "knows":
            return len(await runtime_of(hub).cluster.nodes())
        case "tools":
            return len(hub.tools.list(words[0])) if await _has(hub, words[0]) else 0
        case "add":
            return (await hub.connectors.add(words[0], **words[1])).connector.id
        case "places":
            places = runtime_of(hub).cluster.places
            assert places is not None
            return {one.connector: one.node for one in await places.list()}
        case "cpu":
            return time.process_time()
        case "add_quietly":
            return (await hub.connectors.add(words[0], command="true", connect=False)).connector.id
        case "disable":
            return (await hub.connectors.disable(words[0])).connector.enabled
        case "has":
            return await _has(hub, words[0])
        case "is_enabled":
            return (await hub.connectors.get(words[0])).connector.enabled
        case _:
            output = await hub.call(words[0], words[1])
            error = output.error
            return {
                "ok": output.ok,
                "code": error.code if error else None,
                "message": error.message if error else None,
                "result": output.result,
            }


async def _has(hub: Hub, slug: str) -> bool:
    return any(view.connector.slug == slug for view in await hub.connectors.list())
