"""Programmatic calling: code of a model or a person, run in the sandbox, its calls on the road."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.catalog.search import SearchQuery
from dragoman.hub.bound import BoundService
from dragoman.sandbox import CodeLimits, CodeOutput, CodeSandbox, CodeServices, CountTokens, guide
from dragoman.scope import Caller
from dragoman.tokens import count_tokens
from dragoman.tool import CallObserver, Tool, ToolCall, ToolOutput

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime


class Code(BoundService):
    """Code that runs for the caller, with the tools that the caller may use."""

    __slots__ = ()

    @property
    def limits(self) -> CodeLimits:
        """What a program may use of time, memory, output and calls."""
        return self._runtime.sandbox.limits

    async def run(self, code: str, *, observer: CallObserver | None = None) -> CodeOutput:
        """Runs Python that calls tools. Whatever goes wrong in it is in the output; nothing is raised for it.

        A call that a person must allow waits as long as any other; that time is not the code's.
        """
        caller = await self._runtime.active.narrowed(self._caller)
        return await self._runtime.sandbox.run(code, caller, observer)

    def is_open(self, tool: Tool) -> bool:
        """Whether code may call it."""
        return self._runtime.sandbox.is_open(tool)

    def description(self) -> str:
        """What a model is told: what works, what is missing, how tools are named."""
        return guide(self._runtime.sandbox.limits)


def make_sandbox(
    runtime: "Runtime", *, limits: CodeLimits | None = None, count_tokens: CountTokens = count_tokens
) -> CodeSandbox:
    """To be entered: leaving it ends runs under way and closes the processes."""

    async def call(
        name: str, arguments: Mapping[str, Any], caller: Caller, observer: CallObserver
    ) -> ToolOutput:
        return await runtime.road.call(ToolCall(tool=name, arguments=arguments, observer=observer), caller)

    async def search(query: str, limit: int, caller: Caller) -> list[Tool]:
        found = await runtime.search.find(SearchQuery.checked(query, "hybrid", limit), caller)
        return [hit.tool for hit in found.hits]

    async def whole(handle: str, caller: Caller) -> tuple[bytes, str]:
        kept = await runtime.kept_result(handle, caller)
        return kept.body, kept.content_type

    return CodeSandbox(
        runtime.catalog,
        CodeServices(call=call, search=search, whole=whole),
        limits=limits,
        programmatic=runtime.settings.programmatic_calling,
        count_tokens=count_tokens,
    )
