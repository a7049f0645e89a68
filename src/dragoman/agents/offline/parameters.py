"""The parameters of a tool as its JSON schema declares them, nested objects opened into leaves.

Pure: knows no request. References and alternatives are resolved as far as matching needs it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from dragoman.agents.offline.grammar import SUFFIXES
from dragoman.catalog.search.words import parts, stem

_DEEPEST = 3
_MOST = 60

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One leaf. `words` are those of its name, `core` the stems without what a name adds (`_id`, `_name`)."""

    path: tuple[str, ...]
    types: frozenset[str]
    required: bool
    description: str = ""
    choices: tuple[Any, ...] = ()
    format: str | None = None
    least: float | None = None
    most: float | None = None
    default: Any = None
    words: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    hints: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def takes_text(self) -> bool:
        """Free text, in a string or in an array of strings."""
        return bool({"string", "strings"} & self.types) and not self.choices

    @property
    def takes_number(self) -> bool:
        return bool({"integer", "number", "integers", "numbers"} & self.types)

    @property
    def takes_many(self) -> bool:
        return any(kind.endswith("s") for kind in self.types)

    @property
    def is_identifier(self) -> bool:
        return self.words[-1:] in (("id",), ("ids",), ("number",), ("no",), ("key",), ("slug",))


def parameters_in(schema: Table) -> tuple[Parameter, ...]:
    definitions = {**_table(schema.get("definitions")), **_table(schema.get("$defs"))}
    leaves: list[Parameter] = []
    for leaf in _leaves(schema, definitions, (), True):
        leaves.append(leaf)
        if len(leaves) >= _MOST:
            break
    return tuple(leaves)


def _leaves(schema: Table, definitions: Table, path: tuple[str, ...], required: bool) -> Iterator[Parameter]:
    needed = _list(schema.get("required"))
    for name, inner in _table(schema.get("properties")).items():
        table = _resolved(_table(inner), definitions)
        is_required = required and name in needed
        if _table(table.get("properties")) and len(path) < _DEEPEST:
            yield from _leaves(table, definitions, (*path, name), is_required)
        else:
            yield _leaf((*path, name), table, definitions, is_required)


def _leaf(path: tuple[str, ...], table: Table, definitions: Table, required: bool) -> Parameter:
    words = tuple(dict.fromkeys(word for word in parts(path[-1]) if word.isalnum()))
    if len(words) > 1 and words[-1] == path[-1].lower():
        words = words[:-1]  # `parts` adds a name that it split as a whole
    core = tuple(stem(word) for word in words if word not in SUFFIXES)
    description = table.get("description")
    text = description if isinstance(description, str) else ""
    facts = _facts(table, definitions)
    return Parameter(
        path=path,
        types=frozenset(facts["types"]),
        required=required,
        description=text[:400],
        choices=tuple(facts["choices"]),
        format=facts["format"],
        least=_number(table.get("minimum")),
        most=_number(table.get("maximum")),
        default=table.get("default"),
        words=words,
        core=core or tuple(stem(word) for word in words),
        hints=frozenset(parts(text[:400])) | frozenset(words),
    )


def _facts(table: Table, definitions: Table, depth: int = 0) -> dict[str, Any]:
    """Types, choices and format over all alternatives; a plural type stands for an array of it."""
    facts: dict[str, Any] = {"types": set(), "choices": [], "format": None}
    for branch in _branches(table, definitions):
        kinds = branch.get("type")
        for kind in _list(kinds) or [kinds]:
            if kind == "array" and depth < _DEEPEST:
                items = _resolved(_table(branch.get("items")), definitions)
                inner = _facts(items, definitions, depth + 1)
                facts["types"] |= {f"{name}s" for name in inner["types"] if not name.endswith("s")} or {
                    "strings"
                }
                facts["choices"] += inner["choices"]
                facts["format"] = facts["format"] or inner["format"]
            elif isinstance(kind, str) and kind != "null":
                facts["types"].add(kind)
        choices = [choice for choice in _list(branch.get("enum")) if choice is not None]
        if "const" in branch:
            choices.append(branch["const"])
        facts["choices"] += choices
        facts["types"] |= {"string"} if choices and not kinds else set()
        form = branch.get("format")
        facts["format"] = facts["format"] or (form if isinstance(form, str) else None)
    facts["types"] = facts["types"] or {"string"}
    return facts


def _branches(table: Table, definitions: Table) -> Iterator[Table]:
    inner = [one for key in ("anyOf", "oneOf", "allOf") for one in _list(table.get(key))]
    if not inner or "type" in table or "enum" in table:
        yield table
    for one in inner[:12]:
        yield _resolved(_table(one), definitions)


def _resolved(table: Table, definitions: Table, depth: int = 0) -> Table:
    for _ in range(_DEEPEST):
        reference = table.get("$ref")
        if not isinstance(reference, str):
            break
        rest = {key: value for key, value in table.items() if key != "$ref"}
        table = {**_table(definitions.get(reference.rsplit("/", 1)[-1])), **rest}
    options = [_table(one) for key in ("anyOf", "oneOf") for one in _list(table.get(key))]
    solid = [one for one in options if one.get("type") != "null"]
    if len(solid) == 1 and "type" not in table and depth < _DEEPEST:
        # An optional value is written as itself or null: only itself can be said.
        rest = {key: value for key, value in table.items() if key not in ("anyOf", "oneOf")}
        return _resolved({**solid[0], **rest}, definitions, depth + 1)
    return table


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
