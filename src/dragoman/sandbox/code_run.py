"""One run of code: what it prints, the calls it makes, and when it is stopped. Belongs to that run alone.

The sandbox invokes `print_text` and the methods of groups on threads of its own; everything else happens on
the event loop. Calls are tasks of the sandbox's library, which cancels none of them: `end` does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import Any

import orjson

from dragoman.errors import DragomanError
from dragoman.hints import worded
from dragoman.sandbox.faults import FIND_IT, too_many_calls, too_much_output
from dragoman.sandbox.namespace import Namespace
from dragoman.sandbox.outcome import CodeError, CodeLimits, CodeServices, CountTokens
from dragoman.sandbox.plain_json import NotPlain, ValueTooLarge, plain
from dragoman.sandbox.signature import arguments_of, stub
from dragoman.scope import Caller
from dragoman.tool import CallObserver, Json, Tool, ToolOutput, json_bytes

_ARGUMENTS_HINT = "give dicts, lists, text and numbers"


class CodeRun:
    def __init__(
        self,
        ways: CodeServices,
        namespace: Namespace,
        caller: Caller,
        limits: CodeLimits,
        count: CountTokens,
        observer: CallObserver | None = None,
    ) -> None:
        self._ways = ways
        self._observer = observer
        self._name = observer.name if observer is not None else f"code:{token_hex(8)}"
        self._waits = 0
        self._left: float | None = None
        self._namespace = namespace
        self._caller = caller
        self._limits = limits
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._clock: asyncio.Timeout | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_over = False
        self._parts: list[str] = []
        self._room = limits.output
        self.calls = 0
        self.cost = 0.0
        self.tokens = 0
        self.fault: CodeError | None = None

    @property
    def printed(self) -> str:
        return "".join(self._parts)

    @property
    def room(self) -> int:
        """Bytes that may still be printed or returned."""
        return max(self._room, 0)

    @property
    def is_flooded(self) -> bool:
        return self._room < 0

    @property
    def is_over(self) -> bool:
        """Whether nobody will run this code again."""
        return self._observer is not None and self._observer.is_over

    # Ending

    def begin(self, clock: asyncio.Timeout) -> None:
        self._clock = clock
        if self.fault is not None:
            clock.reschedule(self._loop.time())

    def stop(self, fault: CodeError) -> None:
        """Ends the run at once; the first fault is the one that is told."""
        if self.fault is None and not self._is_over:
            self.fault = fault
            if self._clock is not None:
                with suppress(RuntimeError):  # it has ended by itself just now
                    self._clock.reschedule(self._loop.time())

    def awaits(self, approval: str) -> None:
        """A person is asked about one of its calls: its time stands still until the last has answered."""
        self._waits += 1
        if self._waits == 1 and self._clock is not None and (when := self._clock.when()) is not None:
            self._left = max(0.0, when - self._loop.time())
            self._clock.reschedule(None)
        if self._observer is not None:
            self._observer.awaits(approval)

    def goes_on(self) -> None:
        self._waits -= 1
        if self._waits == 0 and self._clock is not None and self._left is not None and self.fault is None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._clock.reschedule(self._loop.time() + self._left)
            self._left = None
        if self._observer is not None:
            self._observer.goes_on()

    async def departs(self, repeatable: bool) -> None:
        if self._observer is not None:
            await self._observer.departs(repeatable)

    async def end(self) -> None:
        """No call outlives its run."""
        self._is_over = True
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # What the code does

    async def perform(self, act: Callable[..., Awaitable[Json]], *values: Any, **named: Any) -> Json:
        """One thing that the code asked for, in a task that ends with the run at the latest."""
        task = asyncio.current_task()
        if self._is_over or task is None:
            raise asyncio.CancelledError
        self._tasks.add(task)
        try:
            return await act(*values, **named)
        finally:
            self._tasks.discard(task)

    def print_text(self, stream: str, text: str) -> None:
        if self._room < 0:
            return
        body = text.encode("utf-8", "replace")
        self._parts.append(text if len(body) <= self._room else body[: self._room].decode("utf-8", "ignore"))
        self._room -= len(body)
        if self._room < 0:
            self._loop.call_soon_threadsafe(self.stop, too_much_output(self._limits))

    async def call_function(self, group: str, function: str, values: Any, named: Any) -> Json:
        """`await group.function(…)`"""
        name = f"{group}.{function}"
        tool = self._namespace.find(group, function)
        if tool is None:
            near = self._namespace.near(group, function)
            raise AttributeError(f"{group!r} has no tool {function[:100]!r}" + (f"; {near}" if near else ""))
        return await self._called(tool, name, values, named)

    async def call_alone(self, word: str, values: Any, named: Any) -> Json:
        tool = self._namespace.find_alone(word)
        if tool is None:
            raise _failed("not_found", f"there is no tool {word[:100]!r} any more", None)
        return await self._called(tool, word, values, named)

    async def call_tool(self, name: str, arguments: Any = None, **named: Any) -> Json:
        """By any name, with a dict of arguments or with keywords."""
        tool = self._namespace.find_named(str(name)[:200])
        if tool is None:
            raise _failed("not_found", f"there is no tool {str(name)[:100]!r}", FIND_IT)
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError('call_tool() takes the arguments as a dict: call_tool("…", {"name": value})')
        return await self._called(tool, str(name), (), {**(arguments or {}), **named})

    async def search_tools(self, query: Any = "", limit: Any = 10) -> Json:
        """The tools that fit and that this code may call."""
        if not isinstance(query, str) or not isinstance(limit, int):
            raise TypeError("search_tools(query: str, limit: int = 10)")
        try:
            tools = await self._ways.search(query, limit, self._caller)
        except DragomanError as error:
            raise _failed(error.code, error.message, worded(error.command_hint, "plain")) from None
        return [
            {"name": self._namespace.name_of(tool), "description": tool.model_description[:300]}
            for tool in tools
            if self._namespace.may_call(tool)
        ]

    async def describe_tool(self, name: Any = "") -> str:
        tool = self._namespace.find_named(str(name)[:200])
        if tool is None:
            raise _failed("not_found", f"there is no tool {str(name)[:100]!r}", FIND_IT)
        text = stub(tool, self._namespace.name_of(tool))
        return text if self._namespace.may_call(tool) else f"{text}\n    (may not be called from code)"

    # Calls

    async def _called(self, tool: Tool, name: str, values: Any, named: Any) -> Json:
        if not self._namespace.may_call(tool):
            raise _refused(tool)
        self.calls += 1
        if self.calls > self._limits.calls:
            self.calls = self._limits.calls
            self.stop(too_many_calls(self._limits))
            await self._loop.create_future()  # until the run's end cancels it: the code cannot catch this
        arguments = self._checked(arguments_of(tool, name, values, named))
        observer = _InnerCallObserver(f"{self._name}:{self.calls}", self)
        output = await self._ways.call(tool.name, arguments, self._caller, observer)
        self.cost += output.metadata.cost
        if not output.ok:
            error = output.error
            raise (
                _failed(error.code, error.message, worded(error.command_hint, "plain"))
                if error
                else _failed("internal", "it failed", None)
            )
        result, size = await self._result(output)
        self.tokens += self._count(size)
        return result

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return plain(arguments, self._limits.arguments)
        except NotPlain as why:
            raise TypeError(f"the arguments of a tool must be JSON: {why}; {_ARGUMENTS_HINT}") from None
        except ValueTooLarge:
            raise ValueError(
                f"the arguments of one call may have at most {self._limits.arguments:,} bytes"
            ) from None

    async def _result(self, output: ToolOutput) -> tuple[Json, bytes]:
        """What the code gets, and its bytes. A result that was cut for a model is whole for code."""
        handle, size = output.metadata.handle, output.metadata.size
        if handle and size and output.result is not None and size <= self._limits.result:
            body, kind = await self._ways.whole(handle, self._caller)
            return (orjson.loads(body) if "json" in kind else body.decode("utf-8", "replace")), body
        result = output.result if output.result is not None else [dict(block) for block in output.content]
        if isinstance(result, str):
            return result, result.encode("utf-8", "replace")
        return result or output.result, json_bytes(result)


class _InnerCallObserver:
    """Fills `CallObserver` for one call of the code: its run waits with it, and is told when it leaves."""

    has_departed = False

    def __init__(self, name: str, work: CodeRun) -> None:
        self.name = name
        self._work = work

    @property
    def is_over(self) -> bool:
        return self._work.is_over

    def awaits(self, approval: str) -> None:
        self._work.awaits(approval)

    def goes_on(self) -> None:
        self._work.goes_on()

    async def departs(self, repeatable: bool) -> None:
        await self._work.departs(repeatable)


def _failed(code: str, message: str, hint: str | None) -> RuntimeError:
    return RuntimeError(f"{code}: {message}" + (f"\nhint: {hint}" if hint else ""))


def _refused(tool: Tool) -> RuntimeError:
    if not tool.enabled:
        return _failed("tool_disabled", f"the tool {tool.name!r} is disabled", "enable the tool first")
    return _failed(
        "denied",
        f"the tool {tool.name!r} may not be called from code",
        "call it directly instead, or ask its owner to add 'code' to its allowed_callers",
    )
