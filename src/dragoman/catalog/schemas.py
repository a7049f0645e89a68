"""Whether a tool's schema can be used, and its compiled form.

A schema is written by a stranger: compiling one never opens a connection or a file, and a pattern
in it may not backtrack for long. Knows no tool and no argument.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

import jsonschema_rs
import orjson

MAX_SCHEMA_BYTES = 512 * 1024
# Backtracking is only used for look-around and back-references; the rest runs in linear time.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=20_000)

Fault = Literal["invalid", "external", "unusable"]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A validator, or why there is none.

    `invalid`: no JSON schema at all. `external`: it points outside itself. `unusable`: a schema
    that our validator cannot use, such as one with a reference to a part that is not there.
    """

    validator: jsonschema_rs.Validator | None
    fault: Fault | None = None
    reason: str = ""


def compiled(schema: Mapping[str, Any]) -> CompiledSchema:
    """Draft 2020-12 unless `$schema` names another known draft; formats are checked."""
    try:
        return CompiledSchema(_validator(dict(schema)))
    except jsonschema_rs.ValidationError as error:
        if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            return CompiledSchema(None, "invalid", _reason(error))
        # There is no type for it: the library tells these apart by message only.
        if "is not present in a registry" in error.message:
            return CompiledSchema(None, "external", _pointed_at(error.message))
        return CompiledSchema(None, "unusable", _reason(error))
    except (ValueError, RecursionError) as error:
        return CompiledSchema(None, "unusable", str(error)[:300])


def problem_with(schema: object) -> str | None:
    """Why a schema cannot describe the arguments of a tool, or None. External references are
    left to the call, which says whose fault they are."""
    if not isinstance(schema, Mapping):
        return f"its input schema is {_kind_of(schema)}, not an object"
    schema = cast("Mapping[str, Any]", schema)
    declared = schema.get("type", "object")
    if declared != "object" and not (
        isinstance(declared, list) and "object" in cast("list[object]", declared)
    ):
        return f"its input schema describes {declared!r:.60}, not an object"
    try:
        size = len(orjson.dumps(dict(schema)))
    except (TypeError, RecursionError) as error:
        return f"its input schema is no JSON: {str(error)[:200]}"
    if size > MAX_SCHEMA_BYTES:
        return f"its input schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are read"
    result = compiled(schema)
    return f"its input schema is not valid: {result.reason}" if result.fault == "invalid" else None


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema, validate_formats=True, retriever=_refuse, pattern_options=_PATTERNS
        )
    except jsonschema_rs.ValidationError as error:
        if not error.message.startswith("Unknown meta-schema"):
            raise
        return jsonschema_rs.Draft202012Validator(
            schema, validate_formats=True, retriever=_refuse, pattern_options=_PATTERNS
        )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema")


def _reason(error: jsonschema_rs.ValidationError) -> str:
    where = "/".join(str(part) for part in error.instance_path)
    return f"{where}: {error.message[:300]}" if where else error.message[:300]


def _pointed_at(message: str) -> str:
    """The address inside the library's message: `Resource '<address>' is not present in …`."""
    return message.removeprefix("Resource '").split("'", 1)[0][:300]


def _kind_of(value: object) -> str:
    return "missing" if value is None else type(value).__name__
