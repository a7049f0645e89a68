"""What the code finds when it names something: groups, native tools, and the three functions that look.

Only names that occur in the code are looked up, so that thousands of tools cost nothing.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn

from pydantic_monty import ClassInstance, ExternalModule

from dragoman.sandbox.code_run import CodeRun
from dragoman.sandbox.namespace import MODULES, WORD, Namespace

Function = Callable[..., Coroutine[Any, Any, Any]]
Module = Callable[[], Awaitable[ExternalModule]]


class GroupHandle:
    """Stands for a group; holds nothing, so that nothing of it can leak."""


class FunctionGroup(ClassInstance):
    """`github` in the code. Its methods are invoked on a thread of the sandbox: they only hand over."""

    def __init__(self, word: str, work: CodeRun) -> None:
        super().__init__(GroupHandle(), allowed_methods="all", lazy_attrs="all")
        self._word = word
        self._work = work

    def call_method(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "__call__":
            raise TypeError(f"{self._word!r} is a group of tools: call one of them, {self._word}.…(…)")
        return self._work.perform(self._work.call_function, self._word, name, args, kwargs)

    def lookup_lazy_attrs(self, name: str) -> NoReturn:
        raise TypeError(
            f"call it at once: await {self._word}.{name[:100]}(…);"
            f" to hand it on, import it first: from {self._word} import {name[:100]}"
        )


def names_for(code: str, namespace: Namespace, work: CodeRun) -> dict[str, Any]:
    """The values of the names in the code that nobody else gives."""
    found: dict[str, Any] = {
        "search_tools": _function(work, work.search_tools),
        "describe_tool": _function(work, work.describe_tool),
        "call_tool": _function(work, work.call_tool),
    }
    for word in set(WORD.findall(code)) - found.keys():
        if namespace.find_alone(word) is not None:
            found[word] = _alone(work, word)
        elif namespace.has_group(word):
            found[word] = FunctionGroup(word, work)
    return found


def modules_for(code: str, namespace: Namespace, work: CodeRun) -> Mapping[str, Module]:
    """The groups in the code once more, for those who import them as modules."""
    words = set(WORD.findall(code)) - MODULES if "import" in code else set[str]()
    return {word: _module(word, namespace, work) for word in words if namespace.has_group(word)}


def _function(work: CodeRun, act: Callable[..., Awaitable[Any]]) -> Function:
    async def function(*values: Any, **named: Any) -> Any:
        return await work.perform(act, *values, **named)

    return function


def _alone(work: CodeRun, word: str) -> Function:
    async def function(*values: Any, **named: Any) -> Any:
        return await work.perform(work.call_alone, word, values, named)

    return function


def _member(work: CodeRun, group: str, word: str) -> Function:
    async def function(*values: Any, **named: Any) -> Any:
        return await work.perform(work.call_function, group, word, values, named)

    return function


def _module(group: str, namespace: Namespace, work: CodeRun) -> Module:
    async def module() -> ExternalModule:
        return ExternalModule({word: _member(work, group, word) for word, _ in namespace.functions(group)})

    return module
