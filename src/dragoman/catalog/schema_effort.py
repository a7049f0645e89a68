"""How much work a schema makes of a value, counted before a validator begins. Pure arithmetic.

A validator holds the whole process while it works, and schema and value may both be a stranger's: references
that unfold to millions of parts, long lists to compare with, patterns that try every way. The count is never
too low; it is too high where parts of a schema exclude each other.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import unquote

Schema = Mapping[str, Any]

MOST_STEPS = 10_000_000  # a step takes about 25 nanoseconds
MOST_BACKTRACKS = 5_000
_TOO_MANY = MOST_STEPS + 1
_MOST_LOOKS = 50_000  # at parts of a schema, to count them
_MOST_REPEATS = 20_000
_USUAL_DEPTH, _DEEPEST = 24, 128
_BYTES_PER_PART = 8
_FEW_PER_PART = 8

# Subschemas for the part of a value that their schema is for, and for the parts inside it.
_IN_PLACE = ("not", "if", "then", "else")
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_TABLES_IN_PLACE = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_INSIDE = (
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
)
_HAS_INSIDE = frozenset({*_INSIDE, "properties", "patternProperties", "prefixItems"})

# What the engine of linear time does not know: look-around, back-references, atomic and possessive groups.
_BACKTRACKING = re.compile(r"\(\?[=!<>]|\\[1-9kgKG]|[+*?}]\+")
_PATTERN_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]|\{(\d{1,9})(?:,(\d{0,9}))?\}", re.DOTALL)


class SchemaEffort:
    """Of one schema. Remembers what it counted, for values as deep as were seen.

    `backtracks` is what a pattern that is not of linear time counts for each part.
    """

    def __init__(self, schema: Schema, backtracks: int = MOST_BACKTRACKS) -> None:
        self._root = schema
        self._backtracks = backtracks
        self._anchors: dict[str, Schema] | None = None
        self._counted: dict[tuple[int, int], tuple[int, int]] = {}
        self._was_cut = False
        usual = self._per_part(_USUAL_DEPTH)
        self._always = None if self._was_cut else usual
        if self._was_cut:  # it refers to itself: how deep a value is decides
            self._counted.clear()

    @property
    def is_small(self) -> bool:
        """Whether no value takes long, however large it is."""
        return self._always is not None and self._always <= _FEW_PER_PART

    def steps(self, value: Any, size: int) -> int:
        """At most so many to check a value of `size` bytes as JSON."""
        per_part = self._always if self._always is not None else self._per_part(_depth(value))
        return per_part * (size // _BYTES_PER_PART + 1)

    def _per_part(self, depth: int) -> int:
        """How many subschemas one part of a value meets at most, where there are `depth` levels of parts."""
        try:
            return max(self._met(self._root, depth))
        except RecursionError:  # a chain of hundreds of references
            return _TOO_MANY

    def _met(self, schema: Any, depth: int) -> tuple[int, int]:
        """By the part that the schema is for, and by whichever part inside it meets most."""
        if not isinstance(schema, Mapping):
            return 1, 0
        node = cast("Schema", schema)
        key = (id(node), depth)
        if key in self._counted:
            return self._counted[key]
        if len(self._counted) >= _MOST_LOOKS:
            return _TOO_MANY, 0
        self._counted[key] = (_TOO_MANY, 0)  # for who comes here again before it is counted: in a circle
        here, inside = _own(node, self._backtracks), 0
        for part in self._in_place(node):
            met = self._met(part, depth)
            here, inside = here + met[0], inside + met[1]
        if depth == 0:
            self._was_cut |= not _HAS_INSIDE.isdisjoint(node)
        else:
            below = depth - 1
            inside += sum(max(self._met(node[name], below)) for name in _INSIDE if name in node)
            inside += sum(max(self._met(part, below)) for part in _values(node, "patternProperties"))
            # Of these, one part of a value meets one.
            for apart in (_values(node, "properties"), _items(node, "prefixItems"), _items(node, "items")):
                inside += max((max(self._met(part, below)) for part in apart), default=0)
        self._counted[key] = found = min(here, _TOO_MANY), min(inside, _TOO_MANY)
        return found

    def _in_place(self, node: Schema) -> Iterator[Any]:
        yield from (node[name] for name in _IN_PLACE if name in node)
        for name in _LISTS_IN_PLACE:
            yield from _items(node, name)
        for name in _TABLES_IN_PLACE:
            yield from _values(node, name)
        yield from (self._meant(node[name]) for name in _REFERENCES if name in node)

    def _meant(self, reference: Any) -> Any:
        """What a reference leads to; the whole schema where nobody can tell, which is hardly less."""
        name = reference.rpartition("#")[2] if isinstance(reference, str) and "#" in reference else ""
        if not name.startswith("/"):
            return self._anchored().get(name, self._root)
        found: Any = self._root
        for word in name[1:].split("/"):
            word = unquote(word).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and word in found:
                found = cast("Schema", found)[word]
            elif isinstance(found, list) and word.isdecimal() and len(word) < 7:
                found = dict(enumerate(cast("list[Any]", found))).get(int(word), self._root)
            else:
                return self._root
        return found

    def _anchored(self) -> dict[str, Schema]:
        if self._anchors is None:
            self._anchors = {
                node[name]: node
                for node in _nodes(self._root)
                for name in ("$anchor", "$dynamicAnchor")
                if isinstance(node.get(name), str)
            }
        return self._anchors


def has_nested_choices(schema: Schema) -> bool:
    """Whether a value that fits no choice fails in as many ways as there are parts inside of it."""
    nesting = _HAS_INSIDE.union(_IN_PLACE, _LISTS_IN_PLACE, _TABLES_IN_PLACE, _REFERENCES)
    return any(
        isinstance(option, Mapping) and not nesting.isdisjoint(cast("Schema", option))
        for node in _nodes(schema)
        for name in ("anyOf", "oneOf")
        for option in _items(node, name)
    )


def has_costly_patterns(schema: Schema) -> bool:
    """Whether its patterns take long to prepare: of `(\\w{90}){90}` thousands of `\\w` are made."""
    repeats = 0
    for node in _nodes(schema):
        repeats += sum(map(_repeats, _patterns(node)))
        if repeats > _MOST_REPEATS:
            return True
    return False


def _own(node: Schema, backtracks: int) -> int:
    """Steps of a schema by itself: its lists are gone through, its patterns are tried."""
    steps = 1 + sum(len(cast("list[Any]", one)) for one in node.values() if isinstance(one, list | dict)) // 8
    values = _items(node, "enum")
    steps += len(values) * (16 if any(isinstance(value, list | dict) for value in values) else 1)
    return steps + backtracks * sum(1 for one in _patterns(node) if _BACKTRACKING.search(one))


def _patterns(node: Schema) -> Iterator[str]:
    if isinstance(pattern := node.get("pattern"), str):
        yield pattern
    if isinstance(table := node.get("patternProperties"), Mapping):
        yield from cast("Mapping[str, Any]", table)


def _repeats(pattern: str) -> int:
    """How often its parts are written out: what is repeated inside of a repetition counts as often."""
    groups, last = [0], 0
    for part in _PATTERN_PART.finditer(pattern):
        if part[0] == "(":
            groups.append(0)
            last = 0
        elif part[0] == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif part[1]:
            groups[-1] += max(last, 1) * (int(part[2] or part[1]))
            last = 0
        else:
            last = 0
    return sum(groups)


def _nodes(schema: Schema) -> Iterator[Schema]:
    """Every object in it, whether it is used as a schema or not."""
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):  # most are, and to ask of each whether it is a mapping takes longer
            continue
        if isinstance(one, Mapping):
            yield cast("Schema", one)
            waiting.extend(cast("Schema", one).values())
        elif isinstance(one, list):
            waiting.extend(cast("list[Any]", one))


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth < _DEEPEST:
        level = [part for one in level for part in _parts(one)]
        depth += 1
    return depth


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list | tuple) else ()


def _values(node: Schema, name: str) -> Iterable[Any]:
    table = node.get(name)
    return cast("Schema", table).values() if isinstance(table, Mapping) else ()


def _items(node: Schema, name: str) -> list[Any]:
    items = node.get(name)
    return cast("list[Any]", items) if isinstance(items, list) else []
