"""How tools are called in code: a connector is a group, a tool its function, both Python names. Pure."""

import builtins
import keyword
import re
from collections.abc import Iterable

from dragoman.tool import Tool

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
