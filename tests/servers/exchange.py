"""One JSON-RPC request in, one answer out, for the test servers that live on asyncio.

Knows no transport and no session: who hosts it says for which session it asks and in which era.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import protocol
from toolbox import Json, Log, Toolbox, is_open, text

Tell = Callable[[Json], Awaitable[None]]


class Exchange:
    """Answers requests from the toolbox; counts what reached it."""

    def __init__(self, tools: Toolbox, log: Log, page: int = 0, answer_after: float = 0) -> None:
        self._tools = tools
        self._log = log
        self._page = page
        self._answer_after = answer_after

    async def answer(self, message: Json, session: str, is_modern: bool, tell: Tell) -> Json:
        method, request_id, params = message["method"], message["id"], message.get("params") or {}
        if method == "initialize" and not is_modern:
            return protocol.answer(request_id, protocol.initialize(params))
        if method == "server/discover" and is_modern:
            return protocol.answer(request_id, protocol.discover())
        if method == "ping" and not is_modern:
            return protocol.answer(request_id, {})
        if method == "tools/list":
            tools = self._tools.definitions()
            listed = protocol.tools_list(tools, params.get("cursor"), self._page, is_modern)
            return protocol.answer(request_id, listed)
        if method == "tools/call":
            result = await self._call(params, session, tell)
            return protocol.answer(request_id, protocol.stamped(result) if is_modern else result)
        return protocol.error(request_id, -32601, "Method not found", method)

    async def _call(self, params: Json, session: str, tell: Tell) -> Json:
        name, given = params.get("name", ""), params.get("arguments") or {}
        try:
            if name in ("sleep", "sleep_send"):
                return await self._sleep(name, given, session)
            if name == "progress":
                return await self._progress(given["n"], params, tell)
            result = self._tools.run(name, given, session)
            if name == "send":
                await asyncio.sleep(random.uniform(0, self._answer_after))
            return result
        except KeyError:
            return text(f"Unknown tool: {name}", isError=True)
        except TypeError as wrong:
            return text(str(wrong), isError=True)

    async def _sleep(self, name: str, given: Json, session: str) -> Json:
        self._log.write("sleeps", tool=name)
        gate: str | None = given.get("gate")
        try:
            loop = asyncio.get_running_loop()
            until = loop.time() + given["seconds"]
            while (left := until - loop.time()) > 0 and not is_open(gate):
                await asyncio.sleep(min(left, 0.01) if gate else left)
        except asyncio.CancelledError:
            self._log.write("cancelled", tool=name)
            raise
        if name == "sleep":
            return text(f"slept {given['seconds']}")
        return self._tools.run("send", {"text": given["text"]}, session)

    async def _progress(self, steps: int, params: Json, tell: Tell) -> Json:
        token: Any = (params.get("_meta") or {}).get("progressToken")
        for done in range(steps):
            if token is not None:
                await tell(protocol.progress(token, done + 1, steps))
        return text(f"{steps} steps, {'told' if token is not None else 'untold'}")


def event(message: Json) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"
