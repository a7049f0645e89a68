"""What a docstring says of a function and of its parameters: Google, NumPy and Sphinx styles.

Pure text in, text out; a style that is not understood leaves its text in the description.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import cleandoc

_GOOGLE = re.compile(r"(Args|Arguments|Parameters):\s*$")
_NUMPY = re.compile(r"Parameters\s*$")
_RULE = re.compile(r"-{3,}\s*$")
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Example|Examples|Note|Notes|See Also):?\s*$"
)
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"(\w+)\s*(?::.*)?$")
_SPHINX_ITEM = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_SPHINX_FIELD = re.compile(r":(param|type|return|returns|rtype|raises?)\b")


@dataclass(frozen=True, slots=True)
class Docstring:
    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def parse_docstring(text: str | None) -> Docstring:
    """The part before the first section, and one line of text for each parameter that is described."""
    lines = cleandoc(text or "").splitlines()
    body = next((index for index, _ in enumerate(lines) if _begins_section(lines, index)), len(lines))
    parameters: dict[str, str] = {}
    for name, words in _items(lines[body:]):
        parameters[name] = " ".join(word for word in words if word)
    return Docstring(
        "\n".join(lines[:body]).strip(), {name: text for name, text in parameters.items() if text}
    )


def _begins_section(lines: list[str], index: int) -> bool:
    line = lines[index]
    if _SPHINX_FIELD.match(line):
        return True
    if not _SECTION.match(line):
        return False
    # "Note:" opens a section; the lone word "Notes" does so only above a rule.
    return line.rstrip().endswith(":") or (index + 1 < len(lines) and bool(_RULE.match(lines[index + 1])))


def _items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        following = lines[index + 1 :]
        if found := _SPHINX_ITEM.match(line):
            yield found[1], [found[2], *_indented(following)]
        elif _GOOGLE.match(line):
            yield from _google_items(following)
        elif _NUMPY.match(line) and following and _RULE.match(following[0]):
            yield from _numpy_items(following[1:])


def _indented(lines: list[str]) -> list[str]:
    """The lines that continue the one before them."""
    end = next((i for i, line in enumerate(lines) if not line.startswith((" ", "\t"))), len(lines))
    return [line.strip() for line in lines[:end]]


def _google_items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    block = [line for line in lines[: _section_end(lines)] if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in block), default=0)
    for index, line in enumerate(block):
        if len(line) - len(line.lstrip()) == indent and (found := _GOOGLE_ITEM.match(line.strip())):
            deeper = [" " * (len(later) - len(later.lstrip()) - indent) + later.strip() for later in block]
            yield found[1], [found[2], *_indented(deeper[index + 1 :])]


def _section_end(lines: list[str]) -> int:
    return next(
        (i for i, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))), len(lines)
    )


def _numpy_items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        if index + 1 < len(lines) and _RULE.match(lines[index + 1]):
            return
        if not line.startswith((" ", "\t")) and (found := _NUMPY_ITEM.match(line)):
            yield found[1], _indented(lines[index + 1 :])
