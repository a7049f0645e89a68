"""Tasks of MCP servers: a call that is answered with a task is followed until the task ends.

In the 2026 era tasks are an extension: `tasks/get` brings the result, and what the server asks meanwhile is
answered by `tasks/update`. In the 2025 era they are experimental: `tasks/result` waits for the end, and the
server asks during that request. Each look moves the call's deadline on, as progress does. Keeps nothing
itself: the channel remembers the task for a call that is entered again after a restart.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, ServerCapabilities

from dragoman.connections.deadline import Deadline
from dragoman.connections.source import SourceChannel
from dragoman.connections.wire import Message, is_object, raise_error
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Era

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
DECLARED: Message = {"extensions": {EXTENSION: {}}}
"""The capability of a client that takes a task in place of a result, in the 2026 era."""
_USUAL_PAUSE, _SHORTEST, _LONGEST = 1.0, 0.05, 20.0  # seconds between two looks
_LONGEST_ID = 1_000
_CANCEL_WITHIN = 2.0
_UNDER_WAY = ("working", "input_required")
_ENDED = ("completed", "failed", "cancelled")
Send = Callable[[str, Message], Awaitable[Message]]
"""One request about a task, stamped for its era."""


def makes_tasks(capabilities: ServerCapabilities | None, era: Era) -> bool:
    """Whether the server says that it answers calls of tools with tasks."""
    if capabilities is None:
        return False
    if era == "2026":
        return EXTENSION in (capabilities.extensions or {})
    requests = capabilities.tasks.requests if capabilities.tasks else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None


def wants_task(tool: Message) -> bool:
    """Whether a tool of the 2025 era may be called as a task, as its server lists it."""
    execution = tool.get("execution")
    return is_object(execution) and execution.get("taskSupport") in ("optional", "required")


def is_task_needed(error: MCPError) -> bool:
    """A server of the 2025 era refuses so what it would only do as a task; nothing was done."""
    return error.error.code == METHOD_NOT_FOUND


def created_task(raw: Message, era: Era) -> Message | None:
    """The task that came in place of a result; None for a result."""
    if era == "2026":
        return raw if raw.get("resultType") == "task" else None
    task = raw.get("task")
    return task if is_object(task) and "content" not in raw else None


@dataclass(frozen=True, slots=True)
class FollowedTask:
    """One task of a server, as it was `begun`, and the call that it belongs to.

    `wait` is for the request in which the server may ask.
    """

    id: str
    begun: Message
    channel: SourceChannel
    deadline: Deadline
    send: Send
    wait: Send

    @classmethod
    def of(
        cls, task: Message, channel: SourceChannel, deadline: Deadline, send: Send, wait: Send
    ) -> "FollowedTask":
        found = task.get("taskId")
        if not isinstance(found, str) or not 0 < len(found) <= _LONGEST_ID:
            raise WireFault("no_result", "the server began a task without an id that can be used")
        return cls(found, task, channel, deadline, send, wait)

    async def result(self, era: Era) -> Message:
        """What the call is answered with. Cancelled together with the call, unless that is entered again."""
        try:
            return await (self._by_looking() if era == "2026" else self._by_waiting())
        except asyncio.CancelledError:
            if not self.channel.is_left or self.deadline.left <= 0:
                await self._cancel()
            raise

    async def _by_looking(self) -> Message:
        answered: set[str] = set()
        for look in range(1, 1_000_000):
            task = await self._look(look)
            status = task["status"]
            if status == "completed":
                if not is_object(result := task.get("result")):
                    raise WireFault("no_result", "the server ended a task without a result")
                return {**result, "resultType": "complete"}
            if status == "failed":
                raise_error(task.get("error") or {"message": _words(task) or "the task failed"})
            if status == "cancelled":
                raise _cancelled(task)
            if status == "input_required":
                await self._answer(task, answered)
            await asyncio.sleep(self._pause(task))
        raise WireFault("no_result", "the task of the server never ends")

    async def _by_waiting(self) -> Message:
        waiting = asyncio.get_running_loop().create_task(self._awaited())
        look, pause = 0, self._pause(self.begun)
        try:
            while not (await asyncio.wait([waiting], timeout=pause))[0]:
                look += 1
                task = await self._look(look)
                if task["status"] == "cancelled" and not waiting.done():
                    raise _cancelled(task)
                pause = self._pause(task)
            result = await waiting
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        meta = result.get("_meta")
        kept = {name: value for name, value in meta.items() if name != RELATED} if is_object(meta) else {}
        return {**{name: value for name, value in result.items() if name != "_meta"}, "_meta": kept}

    async def _awaited(self) -> Message:
        return await self.wait("tasks/result", {"taskId": self.id})

    async def _look(self, look: int) -> Message:
        """How it is, told as progress: the server works on it, and the call goes on."""
        try:
            task = await self.send("tasks/get", {"taskId": self.id})
        except MCPError as error:
            said = error.error.message
            raise WireFault("no_result", f"the server does not know its task any more: {said}") from None
        if task.get("taskId") != self.id:
            raise WireFault("no_result", "the server answered for one task with another")
        if task.get("status") not in (*_UNDER_WAY, *_ENDED):
            raise WireFault("no_result", "the server's task has no status that can be read")
        if task["status"] in _UNDER_WAY:
            await self.channel.progress(look, None, _words(task))
        return task

    def _pause(self, task: Message) -> float:
        said: Any = task.get("pollIntervalMs", task.get("pollInterval"))
        wanted = said / 1000 if isinstance(said, int | float) and not isinstance(said, bool) else _USUAL_PAUSE
        longest = max(_SHORTEST, min(_LONGEST, self.deadline.left / 2))
        return min(max(wanted, _SHORTEST), longest)

    async def _answer(self, task: Message, answered: set[str]) -> None:
        """What it asks, once each: until the server has taken an answer, it goes on asking."""
        asked: Any = task.get("inputRequests")
        if not is_object(asked):
            raise WireFault("no_result", "the server's task asks for input without saying for which")
        answers: Message = {}
        for name in [name for name in asked if name not in answered]:
            facts = cast("Message", asked[name]) if is_object(asked[name]) else {}
            answers[name] = await self.channel.ask(str(facts.get("method")), facts.get("params") or {})
            answered.add(name)
        if answers:
            await self.send("tasks/update", {"taskId": self.id, "inputResponses": answers})

    async def _cancel(self) -> None:
        with suppress(MCPError, WireFault, TimeoutError):
            async with asyncio.timeout(_CANCEL_WITHIN):
                await self.send("tasks/cancel", {"taskId": self.id})


def _words(task: Message) -> str | None:
    said = task.get("statusMessage")
    return said if isinstance(said, str) else None


def _cancelled(task: Message) -> MCPError:
    return MCPError(code=-32800, message=_words(task) or "the server cancelled the task")
