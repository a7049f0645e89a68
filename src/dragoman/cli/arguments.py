"""`key=value` words as the arguments of a tool, typed by its schema. Pure.

What cannot be read as the schema wants stays text: the road then says what is wrong with it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def split_words(words: Iterable[str]) -> list[tuple[str, str]]:
    """`ValueError` names a word without `=`."""
    pairs: list[tuple[str, str]] = []
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise ValueError(f"{word[:60]!r} is not of the form key=value")
        pairs.append((name, value))
    return pairs


def typed(pairs: Sequence[tuple[str, str]], schema: Schema) -> dict[str, Any]:
    """A key given more than once is a list."""
    properties = _table(schema.get("properties"))
    words: dict[str, list[str]] = {}
    for name, value in pairs:
        words.setdefault(name, []).append(value)
    return {name: _read(values, _table(properties.get(name)), schema) for name, values in words.items()}


def _read(words: list[str], wanted: Schema, root: Schema) -> Any:
    if len(words) > 1:
        items = _table(_resolved(wanted, root).get("items"))
        return [_value(word, items, root) for word in words]
    # One word where only a list will do is a list of one.
    if _types(wanted, root) - {"null"} == {"array"} and not words[0].startswith("["):
        items = _table(_resolved(wanted, root).get("items"))
        return [_value(words[0], items, root)]
    return _value(words[0], wanted, root)


def _value(word: str, wanted: Schema, root: Schema) -> Any:
    types = _types(wanted, root)
    if word[:1] in ("{", "[") and (not types or types & {"object", "array"}):
        return _json(word)
    if types & {"integer", "number"}:
        number = _json(word)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return number
    if "boolean" in types and word.lower() in _BOOLEANS:
        return _BOOLEANS[word.lower()]
    if "null" in types and word == "null":
        return None
    return word if types else _json(word)


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _types(wanted: Schema, root: Schema, depth: int = 0) -> set[str]:
    """Every JSON type that the schema allows; empty when it says nothing."""
    wanted = _resolved(wanted, root)
    kind = wanted.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {str(name) for name in cast("list[Any]", kind)}
    found: set[str] = set()
    for choice in ("anyOf", "oneOf", "allOf"):
        branches = wanted.get(choice)
        if isinstance(branches, list) and depth < 5:
            for branch in cast("list[Any]", branches):
                found |= _types(_table(branch), root, depth + 1)
    if not found and isinstance(wanted.get("enum"), list):
        found = {_type_of(option) for option in wanted["enum"]}
    return found


def _resolved(wanted: Schema, root: Schema) -> Schema:
    """Follows a reference inside the same schema; any other is left alone."""
    for _ in range(5):
        reference = wanted.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return wanted
        target: Any = root
        for part in reference[2:].split("/"):
            target = _table(target).get(part)
        wanted = _table(target)
    return wanted


def _type_of(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return names.get(cast("type[Any]", type(value)), "object")


def _table(value: Any) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}
