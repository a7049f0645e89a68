"""Where code runs for callers. Its processes start with the first run: who uses none pays nothing, and needs
no pydantic_monty. Whoever opens the sandbox closes it; runs under way are ended then.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from dragoman import extras
from dragoman.errors import ShuttingDown
from dragoman.sandbox.namespace import CodeCatalog, FunctionNames, Namespace, callable_from_code
from dragoman.sandbox.outcome import CodeLimits, CodeOutput, CodeServices, CountTokens
from dragoman.sandbox.signature import stub
from dragoman.scope import Caller
from dragoman.tokens import count_tokens
from dragoman.tool import CallObserver, Tool

if TYPE_CHECKING:
    from dragoman.sandbox.pool import CodePool


_FINDING = """
    await search_tools("open an issue", limit=5)   # [{"name": "github.create_issue", "description": …}]
    print(await describe_tool("github.create_issue"))   # signature, parameters, what it returns"""


def guide(limits: CodeLimits, *, finds: bool = True) -> str:
    """The description of `run_code`. Not `finds`: who reads it finds tools by another way."""
    return f"""Run Python that calls tools. Use it for many calls, many rows, or steps that need each other's
results: intermediate results stay in the sandbox; only what you print or return comes back.

Tools are async functions in groups named after their connectors (a hyphen becomes an underscore):
    issues = await github.list_issues(repo="a/b", state="open")
    first, second = await asyncio.gather(github.get_issue(number=1), github.get_issue(number=2))
Native tools stand alone: await add(1, 2). Required parameters may be given by position, others by name.{
        _FINDING if finds else ""
    }
    await call_tool("mcp_github_create_issue", {{"title": "…"}})   # by any name
A call that fails raises RuntimeError whose text is code, message and hint: catch it where you can go on.

The value of the last expression, or of `return`, is the result; it must be JSON (dict, list, str, numbers).
Works: functions, async functions, classes without inheritance, dataclasses, comprehensions, match, f-strings,
asyncio.gather, json, re, datetime, collections, itertools, functools, math, csv, decimal, random, base64.
Missing: class inheritance, @property, @staticmethod, yield, del, async with, async for,
asyncio.create_task, wait_for, gather(return_exceptions=…), statistics, enum, heapq, string, operator,
and every other module.
There are no files, no network, no environment, no processes.

Limits: {limits.execution:g} s of computing, {limits.wall:g} s in all, {limits.memory // 2**20} MB,
{limits.calls} calls, {limits.output // 1024} KB printed and returned together."""


class CodeSandbox:
    def __init__(
        self,
        catalog: CodeCatalog,
        ways: CodeServices,
        *,
        limits: CodeLimits | None = None,
        programmatic: bool = True,
        count_tokens: CountTokens = count_tokens,
    ) -> None:
        self._catalog = catalog
        self._ways = ways
        self.limits = limits or CodeLimits()
        self._programmatic = programmatic
        self._count = count_tokens
        self._names = FunctionNames()
        self._pool: CodePool | None = None
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._is_closed = True
        await self._stack.aclose()

    async def run(self, code: str, caller: Caller, observer: CallObserver | None = None) -> CodeOutput:
        """Whatever goes wrong in it is in the output. `NotInstalled` where nothing can run code."""
        extras.require("code")
        async with self._opening:
            if self._pool is None:
                self._pool = await self._open()
        return await self._pool.run(code, caller, observer)

    def is_open(self, tool: Tool) -> bool:
        """Whether code may call it."""
        return extras.is_installed("code") and callable_from_code(tool, self._programmatic)

    def stub(self, tool: Tool, caller: Caller) -> str:
        """The tool as a function that code calls: signature, description, parameters."""
        here = replace(caller, way="code")
        names = Namespace(self._catalog, self._names, here, programmatic=self._programmatic)
        return stub(tool, names.name_of(tool))

    async def _open(self) -> "CodePool":
        if self._is_closed:
            raise ShuttingDown("Dragoman is shutting down", hint="run it again later")
        from dragoman.sandbox.pool import CodePool

        return await self._stack.enter_async_context(
            CodePool(
                self._catalog,
                self._ways,
                self.limits,
                programmatic=self._programmatic,
                count_tokens=self._count,
            )
        )
