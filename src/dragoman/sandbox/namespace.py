"""What one caller's code can name: groups of functions, resolved only when the code speaks of them.

Knows no sandbox. What the caller may not see does not exist here either.
"""

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from dragoman.catalog.connector_tools import ListKey
from dragoman.names import did_you_mean
from dragoman.scope import Caller
from dragoman.tool import DEFAULT_CALLERS, Tool

MODULES = frozenset(
    (
        *("asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime"),
        *("decimal", "functools", "hashlib", "itertools", "json", "math", "os", "pathlib", "random", "re"),
        *("sys", "time", "tomllib", "typing", "unicodedata"),
    )
)
OWN = ("search_tools", "describe_tool", "call_tool")
_TAKEN = frozenset(dir(builtins)) | MODULES | frozenset(OWN)
_ILLEGAL = re.compile(r"\W", re.ASCII)
WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def python_name(name: str) -> str:
    """The Python name nearest to a name: `read-file` is `read_file`, `class` is `class_`."""
    word = _ILLEGAL.sub("_", name)
    if not word or word[0].isdigit():
        word = f"n{word}"
    # A leading underscore would hide it: the sandbox exposes no such attribute.
    word = word.lstrip("_") or "tool"
    return f"{word}_" if keyword.iskeyword(word) or keyword.issoftkeyword(word) else word


def top_name(name: str, taken: Iterable[str] = ()) -> str:
    """The same for what stands alone: a group or a native tool must not hide what Python gives."""
    word = python_name(name)
    return f"{word}_" if word in _TAKEN or word in taken else word


def function_names(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The functions of one group. A tool whose own name is a Python name keeps it."""
    names: dict[str, Tool] = {}
    others: list[Tool] = []
    for tool in tools:
        if python_name(tool.original_name) == tool.original_name:
            names[tool.original_name] = tool
        else:
            others.append(tool)
    for tool in others:
        word = wanted = python_name(tool.original_name)
        number = 1
        while word in names:
            number += 1
            word = f"{wanted}_{number}"
        names[word] = tool
    return names


def callable_from_code(tool: Tool, programmatic: bool) -> bool:
    """What somebody set holds; where nobody did, code calls what only reads, if the app wants that."""
    return tool.is_open_to("code") and (programmatic or tool.allowed_callers != DEFAULT_CALLERS)


_MOST_KEPT = 512


class CodeCatalog(Protocol):
    """The catalog, as far as code knows it."""

    @property
    def version(self) -> int: ...
    def lists(self, workspace: str) -> Mapping[ListKey, tuple[Tool, ...]]: ...
    def readable(self, caller: Caller, connector_id: str | None = None) -> Sequence[ListKey]: ...
    def find(self, name: str, caller: Caller) -> Tool | None: ...


class FunctionNames:
    """The functions of each list, worked out once for as long as the list is the same object."""

    def __init__(self) -> None:
        self._kept: dict[ListKey, tuple[tuple[Tool, ...], dict[str, Tool]]] = {}

    def of(self, key: ListKey, tools: tuple[Tool, ...]) -> Mapping[str, Tool]:
        kept = self._kept.get(key)
        if kept is not None and kept[0] is tools:
            return kept[1]
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        names = function_names(tools)
        self._kept[key] = (tools, names)
        return names


class Namespace:
    """Follows the catalog: a tool that comes or goes while code runs is there or not at its next call."""

    def __init__(
        self, catalog: CodeCatalog, names: FunctionNames, caller: Caller, *, programmatic: bool
    ) -> None:
        self._catalog = catalog
        self._names = names
        self._caller = caller
        self._programmatic = programmatic
        self._version = -1
        self._groups: dict[str, tuple[ListKey, tuple[Tool, ...]]] = {}
        self._alone: dict[str, Tool] = {}

    def has_group(self, word: str) -> bool:
        return self._group(word) is not None

    def find(self, group: str, function: str) -> Tool | None:
        """A tool by its place in the code, whether code may call it or not."""
        found = self._group(group)
        if found is None:
            return None
        tool = self._names.of(*found).get(function)
        return tool if tool is not None and self._may_see(tool) else None

    def find_alone(self, word: str) -> Tool | None:
        """A native tool by its name."""
        self._follow()
        tool = self._alone.get(word)
        return tool if tool is not None and self._may_see(tool) else None

    def find_named(self, name: str) -> Tool | None:
        """By any name: as code calls it, its public name, or `<slug>__<tool>`."""
        group, dot, function = name.partition(".")
        if dot:
            return self.find(group, function)
        return self.find_alone(name) or self._catalog.find(name, self._caller)

    def functions(self, group: str) -> Iterator[tuple[str, Tool]]:
        """Those of a group that the code may call."""
        if found := self._group(group):
            for word, tool in self._names.of(*found).items():
                if self._may_see(tool) and self.may_call(tool):
                    yield word, tool

    def may_call(self, tool: Tool) -> bool:
        return tool.enabled and callable_from_code(tool, self._programmatic)

    def name_of(self, tool: Tool) -> str:
        """How code calls the tool: `github.list_issues`, or `add` for a native one."""
        if not tool.is_mcp:
            return top_name(tool.original_name)
        self._follow()
        group = top_name(tool.slug, self._alone)
        found = self._group(group)
        functions = self._names.of(*found).items() if found else ()
        word = next((word for word, one in functions if one.name == tool.name), tool.original_name)
        return f"{group}.{word}"

    def near(self, group: str, function: str) -> str | None:
        """A hint with functions of the group that the code may call."""
        words = [word for word, _ in self.functions(group)]
        near = did_you_mean(function[:100], words)
        return near or (f"it has: {', '.join(words[:8])}" if words else None)

    def _may_see(self, tool: Tool) -> bool:
        caller = self._caller
        return not caller.grants or tool.may_be_used_by(caller)

    def _group(self, word: str) -> tuple[ListKey, tuple[Tool, ...]] | None:
        self._follow()
        return self._groups.get(word)

    def _follow(self) -> None:
        if self._catalog.version == self._version:
            return
        # What the caller reads first: a bundle that nobody has read before is a list only then.
        readable = self._catalog.readable(self._caller)
        version, lists = self._catalog.version, self._catalog.lists(self._caller.workspace)
        self._groups, self._alone, self._version = {}, {}, version
        for key in readable:
            tools = lists.get(key)
            if not tools:
                continue
            if not tools[0].is_mcp:
                self._alone |= {top_name(tool.original_name): tool for tool in tools}
                continue
            word = tools[0].slug.replace("-", "_")
            # `time` is the connector as long as the code does not import Python's; `time_` is it always.
            self._groups[word] = self._groups[f"{word}_"] = (key, tools)
