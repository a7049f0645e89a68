"""What is wrong with arguments, and with other values that a schema describes, in words for people. Pure.

A value is never repeated: it may be a secret. Only its type, its place and what was expected are named.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from dragoman.catalog.schemas import MOST_ERRORS, SchemaValidator
from dragoman.names import did_you_mean

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def complaint(validator: SchemaValidator, value: Any, noun: str = "argument") -> str:
    """One sentence for the first few errors of a value. `noun` is what one of its parts is called."""
    found = validator.errors(value)
    text = "; ".join(_sentence(error, noun) for error in found[:MOST_ERRORS])
    if not text:
        return f"there are too many {noun}s to say which"
    return f"{text}; and more" if len(found) > MOST_ERRORS else text


def hint_for(arguments: Mapping[str, Any], schema: Mapping[str, Any], tool: str) -> str:
    """The likeliest slip is a misspelt name; else where to read what the tool expects."""
    known = known_names(schema)
    for name in arguments:
        if known and name not in known and (near := did_you_mean(name[:100], known)):
            return f"{name[:100]!r}: {near}"
    names = f"it takes {', '.join(known[:20])}; " if known else ""
    return f"{names}dragoman tools show {tool} has the whole schema"


def known_names(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return list(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else []


def _sentence(error: ValidationError, noun: str) -> str:
    where = _place(error.instance_path)
    kind = error.kind
    if isinstance(kind, Kind.Required):
        inside = f" of {where}" if where else ""
        return f"the {noun} {kind.property!r}{inside} is missing"
    if isinstance(kind, Kind.AdditionalProperties | Kind.UnevaluatedProperties):
        names = ", ".join(repr(name[:100]) for name in kind.unexpected[:10])
        inside = f" inside {where}" if where else ""
        return f"unknown {noun if len(kind.unexpected) == 1 else f'{noun}s'} {names}{inside}"
    return f"{f'the {noun} {where}' if where else f'the whole of the {noun}s'} {_fault(error)}"


def _fault(error: ValidationError) -> str:
    kind = error.kind
    if isinstance(kind, Kind.Type):
        expected = _either([_WORDS.get(name, name) for name in kind.types])
        return f"must be {expected}, not {_type_of(error.instance)}"
    if isinstance(kind, Kind.Format):
        return f"is not a valid {kind.format}"
    if isinstance(kind, Kind.Enum):
        options = [_shown(option) for option in kind.options[:20]]
        return f"must be {_either(options)}{' or another of a list' if len(kind.options) > 20 else ''}"
    if isinstance(kind, Kind.Constant):
        return f"must be {_shown(kind.expected_value)}"
    if isinstance(kind, Kind.Pattern):
        return f"does not match the pattern {kind.pattern[:200]}"
    if isinstance(kind, Kind.AnyOf | Kind.OneOfNotValid):
        branches = [_fault(branch[0]) for branch in kind.context if branch]
        return f"fits none of the allowed forms ({'; or '.join(dict.fromkeys(branches[:6]))})"
    return _limit(error)


def _limit(error: ValidationError) -> str:
    kind = error.kind
    limit = getattr(kind, "limit", None)
    words = {
        "minimum": f"must be at least {limit}",
        "maximum": f"must be at most {limit}",
        "exclusiveMinimum": f"must be more than {limit}",
        "exclusiveMaximum": f"must be less than {limit}",
        "minLength": f"must have at least {limit} characters",
        "maxLength": f"must have at most {limit} characters",
        "minItems": f"must have at least {limit} items",
        "maxItems": f"must have at most {limit} items",
        "minProperties": f"must have at least {limit} fields",
        "maxProperties": f"must have at most {limit} fields",
        "multipleOf": f"must be a multiple of {getattr(kind, 'multiple_of', None)}",
        "uniqueItems": "must not hold the same item twice",
        "required": f"lacks {getattr(kind, 'property', None)!r}",
    }
    return words.get(kind.name, f"breaks the rule {kind.name!r} of the tool's schema")


def _place(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part[:100]}" if text else part[:100]
    return f"{text!r}" if text else ""


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()[:80]


def _type_of(value: object) -> str:
    names: dict[type, str] = {
        str: "text",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        list: "a list",
        dict: "an object",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)
