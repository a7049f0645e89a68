"""Programmatic calling: code of a model or a person, run in the sandbox, its calls on the road."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

from dragoman.catalog import Catalog
from dragoman.hub.tools import Tools
from dragoman.sandbox import CodeLimits, CodeOutput, CodeSandbox, CodeServices, CountTokens, guide
from dragoman.scope import Caller
from dragoman.store import KeptResult
from dragoman.tokens import count_tokens
from dragoman.tool import CallObserver, Tool, ToolOutput


class CallTool(Protocol):
    """`Hub.call`, as far as code knows it."""

    async def __call__(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        caller: Caller | None = None,
        witness: CallObserver | None = None,
    ) -> ToolOutput: ...


class ReadResult(Protocol):
    """`Hub.result`."""

    async def __call__(self, handle: str, *, caller: Caller | None = None) -> KeptResult: ...


class Code:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(
        self, *, caller: Caller, sandbox: CodeSandbox, narrowed: Callable[[Caller], Awaitable[Caller]]
    ) -> None:
        self._caller = caller
        self._sandbox = sandbox
        self._narrowed = narrowed

    @property
    def limits(self) -> CodeLimits:
        return self._sandbox.limits

    async def run(
        self, code: str, caller: Caller | None = None, *, witness: CallObserver | None = None
    ) -> CodeOutput:
        """Runs Python that calls tools. Whatever goes wrong is in the output; nothing is raised for it.

        A call that a person must allow waits as long as any other; that time is not the code's.
        """
        caller = caller or self._caller
        if caller.thread is not None:
            caller = await self._narrowed(caller)
        return await self._sandbox.run(code, caller, witness)

    def is_open(self, tool: Tool) -> bool:
        """Whether code may call it."""
        return self._sandbox.is_open(tool)

    def description(self) -> str:
        """What a model is told: what works, what is missing, how tools are named."""
        return guide(self._sandbox.limits)


@asynccontextmanager
async def open_code(
    *,
    caller: Caller,
    catalog: Catalog,
    tools: Tools,
    call: CallTool,
    result: ReadResult,
    narrowed: Callable[[Caller], Awaitable[Caller]],
    limits: CodeLimits | None = None,
    programmatic: bool = True,
    count_tokens: CountTokens = count_tokens,
) -> AsyncGenerator[Code]:
    """Ends runs under way and closes the processes when it is left."""

    async def call_tool(
        name: str, arguments: Mapping[str, Any], who: Caller, witness: CallObserver
    ) -> ToolOutput:
        return await call(name, arguments, caller=who, witness=witness)

    async def search(query: str, limit: int, who: Caller) -> list[Tool]:
        return [hit.tool for hit in (await tools.search(query, limit=limit, caller=who)).hits]

    async def whole(handle: str, who: Caller) -> tuple[bytes, str]:
        kept = await result(handle, caller=who)
        return kept.body, kept.content_type

    ways = CodeServices(call=call_tool, search=search, whole=whole)
    async with CodeSandbox(
        catalog, ways, limits=limits, programmatic=programmatic, count_tokens=count_tokens
    ) as sandbox:
        yield Code(caller=caller, sandbox=sandbox, narrowed=narrowed)
