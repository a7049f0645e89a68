"""Numbers and booleans that a model wrote as text, read as what the schema asks for. Pure.

Only what does not fit the schema is touched, and only where nothing is lost: `"5"` becomes 5, `"007"` stays.
An empty text that does not fit is left out, as models fill in what they do not use.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from dragoman.catalog.schemas import SchemaValidator

_ROUNDS = 20  # each mends what the first few errors name
_MOST_DIGITS = 40
_LARGEST = 2**63  # whole numbers beyond it are not the same everywhere
_BOOLEANS = {"true": True, "false": False}
_NOTHING = object()


def converted(value: dict[str, Any], validator: SchemaValidator) -> tuple[dict[str, Any], list[str]] | None:
    """The arguments so that they fit, with a sentence for each change; None where that cannot be done."""
    changed: dict[str, Any] = _copied(value)
    told: list[str] = []
    for _ in range(_ROUNDS):
        errors = [error for error in validator.errors(changed) if error.instance_path]
        said = [sentence for error in errors if (sentence := _mended(changed, error))]
        if not said:
            return None
        told += said
        if validator.is_valid(changed):
            return changed, told
    return None


def _mended(arguments: dict[str, Any], error: ValidationError) -> str | None:
    """Mends the part that the error is about, in place. What was done, without the value."""
    *way, last = error.instance_path
    holder: Any = arguments
    for part in way:
        holder = holder[part]
    if not isinstance(holder, dict | list):
        return None
    inside = cast("dict[str | int, Any]", holder)  # of a list by its number
    text = inside.get(last) if isinstance(holder, dict) else inside[last]
    place = ".".join(str(part)[:100] for part in error.instance_path)
    if not isinstance(text, str):
        return None
    if text == "" and isinstance(holder, dict):
        del inside[last]
        return f"the argument {place!r} was empty text: it counts as not given"
    read = next((read for name in _wanted(error) if (read := _read(text, name)) is not _NOTHING), _NOTHING)
    if read is _NOTHING:
        return None
    inside[last] = read
    kind = "a boolean" if isinstance(read, bool) else "a number"
    return f"the argument {place!r} was text: it was read as {kind}"


def _wanted(error: ValidationError) -> Iterator[str]:
    kind = error.kind
    if isinstance(kind, Kind.Type):
        yield from kind.types
    elif isinstance(kind, Kind.Enum | Kind.Constant):
        options: Sequence[Any] = kind.options if isinstance(kind, Kind.Enum) else [kind.expected_value]
        yield from ("boolean" if isinstance(one, bool) else "number" for one in options)
    elif isinstance(kind, Kind.AnyOf | Kind.OneOfNotValid):
        for branch in kind.context:
            for inner in branch:
                yield from _wanted(inner)


def _read(text: str, name: str) -> Any:
    """As this type of JSON schema; `_NOTHING` where it is none, or something would be lost."""
    if name == "boolean":
        return _BOOLEANS.get(text.strip().lower(), _NOTHING)
    if name not in ("integer", "number"):
        return _NOTHING
    word = text.strip()
    digits = word.removeprefix("-")
    is_plain = (
        digits[:1].isascii() and digits[:1].isdigit() and not (digits[0] == "0" and digits[1:2].isdigit())
    )
    if not is_plain or len(word) > _MOST_DIGITS or "_" in word:
        return _NOTHING
    try:
        number = Decimal(word)
    except InvalidOperation:
        return _NOTHING
    if number == number.to_integral_value() and abs(number) < _LARGEST:
        return int(number)
    nearest = float(number)
    return nearest if name == "number" and Decimal(repr(nearest)) == number else _NOTHING


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in cast("dict[str, Any]", value).items()}
    return [_copied(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
