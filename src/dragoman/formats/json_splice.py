"""One list inside a JSON text, exchanged; every other byte stays as its author wrote it."""

import json
import re
from collections.abc import Sequence
from typing import Any

from dragoman.errors import InvalidConfig
from dragoman.formats.parsing import read_document, table

_PART = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,]', re.DOTALL)


def with_list(text: str, key: str, items: Sequence[Any], name: str) -> str:
    """The text with `key` of its outermost table set to `items`."""
    document = table(read_document(text, name))
    wanted = {**document, key: list(items)}
    if span := _span(text, key):
        start, end = span
        spliced = text[:start] + _written(items, text, start, end) + text[end:]
        if _reads_as(spliced, wanted, name):
            return spliced
    return json.dumps(wanted, indent=_indent(text), ensure_ascii=False) + "\n"


def _span(text: str, key: str) -> tuple[int, int] | None:
    """Where the list of that key begins and ends."""
    depth, is_key, start = 0, False, -1
    for match in _PART.finditer(text):
        part = match[0]
        if part[0] == '"':
            is_key = depth == 1 and json.loads(part) == key
        elif part in "{[":
            if part == "[" and depth == 1 and is_key:
                start = match.start()
            depth += 1
        elif part in "}]":
            depth -= 1
            if start >= 0 and depth == 1:
                return start, match.end()
        elif part == ",":
            is_key = False
    return None


def _written(items: Sequence[Any], text: str, start: int, end: int) -> str:
    """On one line where it was on one line, else one item per line."""
    old = text[start:end]
    words = [json.dumps(item, ensure_ascii=False) for item in items]
    if "\n" not in old:
        return f"[{', '.join(words)}]"
    line = text[text.rfind("\n", 0, start) + 1 : start]
    outer = line[: len(line) - len(line.lstrip())]
    first = re.search(r"\n([ \t]+)\S", old)
    inner = first[1] if first and len(first[1]) > len(outer) else outer + "  "
    return "[" + ",".join(f"\n{inner}{word}" for word in words) + f"\n{outer}]" if words else "[]"


def _reads_as(text: str, wanted: dict[str, Any], name: str) -> bool:
    try:
        return read_document(text, name) == wanted
    except InvalidConfig:
        return False


def _indent(text: str) -> int | None:
    found = re.search(r"\n( +)\S", text)
    return len(found[1]) if found else (2 if "\n" in text.strip() else None)
