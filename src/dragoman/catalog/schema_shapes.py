"""What a JSON schema says of one value, as far as a form can use it: references followed, parts put together.

Pure. What a schema says beyond this is for whoever checks the arguments, not for the form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

MISSING: Any = object()
_MOST_HOPS = 20
_YES_NO = ((True, "yes"), (False, "no"))


@dataclass(frozen=True, slots=True)
class Variant:
    label: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueShape:
    """`type` is empty where the schema leaves it open. `choices` are values with what people read of them."""

    type: str = ""
    title: str = ""
    description: str = ""
    format: str = ""
    is_nullable: bool = False
    default: Any = MISSING
    example: Any = MISSING
    constant: Any = MISSING
    choices: tuple[tuple[Any, str], ...] = ()
    variants: tuple[Variant, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])
    required: frozenset[str] = frozenset()
    items: Any = None
    least: int = 0
    longest: int | None = None
    minimum: float | None = None
    maximum: float | None = None


def shape_of(schema: Any, root: Mapping[str, Any]) -> ValueShape:
    """Of anything that stands where a schema may stand; what is none is a value of any kind."""
    whole = _resolved(schema, root)
    whole, is_nullable = _without_null(whole, root)
    types = [str(one) for one in _sequence(whole.get("type"))]
    variants = _variants(whole, types, root)
    choices = _choices(whole, types, root)
    return ValueShape(
        type=types[0] if len(types) == 1 else "object" if not types and "properties" in whole else "",
        title=_text(whole, "title"),
        description=_text(whole, "description"),
        format=_text(whole, "format"),
        is_nullable=is_nullable,
        default=whole.get("default", MISSING),
        example=_first(whole.get("examples"), whole.get("example", MISSING)),
        constant=None if types == ["null"] else whole.get("const", MISSING),
        choices=choices,
        variants=() if choices else variants,
        properties=_table(whole.get("properties")),
        required=frozenset(str(name) for name in _sequence(whole.get("required"))),
        items=whole["items"]
        if isinstance(whole.get("items"), Mapping) and "prefixItems" not in whole
        else None,
        least=_whole(whole.get("minItems")) or 0,
        longest=_whole(whole.get("maxLength")),
        minimum=_number(whole.get("minimum")),
        maximum=_number(whole.get("maximum")),
    )


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its reference followed and the parts of `allOf` laid over one another."""
    whole = _table(schema)
    for _ in range(_MOST_HOPS):
        reference = whole.get("$ref")
        parts = _sequence(whole.get("allOf"))
        if not isinstance(reference, str) and not parts:
            return whole
        beside = {name: value for name, value in whole.items() if name not in ("$ref", "allOf")}
        layers = [_target(reference, root)] if isinstance(reference, str) else []
        layers += [_table(part) for part in parts]
        whole = {}
        for layer in (*layers, beside):
            whole = _laid_over(whole, layer)
    return {}


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {**below, **above}
    if "properties" in below and "properties" in above:
        both["properties"] = {**_table(below["properties"]), **_table(above["properties"])}
    if "required" in below and "required" in above:
        both["required"] = [*_sequence(below["required"]), *_sequence(above["required"])]
    if "allOf" in below and "allOf" in above:
        both["allOf"] = [*_sequence(below["allOf"]), *_sequence(above["allOf"])]
    return both


def _target(reference: str, root: Mapping[str, Any]) -> dict[str, Any]:
    """Inside the document only: nothing is fetched for a form."""
    found: Any = root
    if not reference.startswith("#"):
        return {}
    for word in reference[1:].split("/")[1:]:
        found = _table(found).get(word.replace("~1", "/").replace("~0", "~"))
    return _table(found)


def _without_null(whole: dict[str, Any], root: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """`null` is no kind of its own in a form: it is what an empty control stands for."""
    is_nullable = whole.get("nullable") is True
    types = _sequence(whole.get("type"))
    if "null" in types and len(types) > 1:
        whole = {**whole, "type": [one for one in types if one != "null"]}
        is_nullable = True
    for word in ("anyOf", "oneOf"):
        options = _sequence(whole.get(word))
        rest = [one for one in options if _table(one).get("type") != "null"]
        if len(rest) < len(options):
            is_nullable = True
        if len(rest) == 1:
            beside = {name: value for name, value in whole.items() if name != word}
            return _laid_over(_resolved(rest[0], root), beside), is_nullable
        if options:
            whole = {**whole, word: rest}
    return whole, is_nullable


def _variants(whole: Mapping[str, Any], types: list[str], root: Mapping[str, Any]) -> tuple[Variant, ...]:
    options = _sequence(whole.get("anyOf")) or _sequence(whole.get("oneOf"))
    if options and not whole.get("properties"):
        shapes = [_resolved(one, root) for one in options]
        return tuple(Variant(_label(shape, index), shape) for index, shape in enumerate(shapes))
    if len(types) > 1:
        beside = {name: value for name, value in whole.items() if name not in ("default", "description")}
        return tuple(Variant(one, {**beside, "type": one}) for one in types)
    return ()


def _label(schema: Mapping[str, Any], index: int) -> str:
    named = schema.get("title") or schema.get("const")
    kind = _first(schema.get("type"), "") if not isinstance(schema.get("type"), str) else schema["type"]
    if not named and kind == "array":
        inner = _table(schema.get("items")).get("type")
        return f"list of {inner}" if isinstance(inner, str) else "list"
    return str(named or kind or f"shape {index + 1}")


def _choices(
    whole: Mapping[str, Any], types: list[str], root: Mapping[str, Any]
) -> tuple[tuple[Any, str], ...]:
    listed = [one for one in _sequence(whole.get("enum")) if one is not None]
    if listed:
        return tuple((one, one if isinstance(one, str) else _plain(one)) for one in listed)
    if types == ["boolean"] and "const" not in whole:
        return _YES_NO
    options = [_resolved(one, root) for one in _sequence(whole.get("oneOf")) or _sequence(whole.get("anyOf"))]
    if options and all("const" in one for one in options):
        return tuple((one["const"], str(one.get("title") or _plain(one["const"]))) for one in options)
    return ()


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _table(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [*cast("list[Any]", value)]
    return [] if value is None or isinstance(value, Mapping) else [value]


def _first(value: Any, otherwise: Any) -> Any:
    found = _sequence(value)
    return found[0] if found else otherwise


def _text(whole: Mapping[str, Any], word: str) -> str:
    value = whole.get(word)
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
