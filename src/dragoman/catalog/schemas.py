"""Whether a tool's schema can be used, and its compiled form.

A schema is written by a stranger: compiling one never opens a connection or a file, and neither that nor a
check of a value may take long. Knows no tool and no argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NoReturn, cast

import jsonschema_rs
import orjson

from dragoman.catalog.schema_effort import (
    MOST_BACKTRACKS,
    MOST_STEPS,
    SchemaEffort,
    has_costly_patterns,
    has_nested_choices,
)

MAX_SCHEMA_BYTES = 512 * 1024
MOST_ERRORS = 5
"""Of a value that does not fit, so many are told."""
_FEW_WAYS = 4000  # an error takes a thousand times as long as a step
# Backtracking is only used for look-around and back-references; the rest runs in linear time.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKS)

Fault = Literal["invalid", "external", "unusable"]


class TooMuchWork(ValueError):
    """Checking this value by this schema could hold up everybody else."""

    def __init__(self) -> None:
        super().__init__("it is too large for a schema that is so complicated")


class SchemaValidator:
    """Checks values by one schema, each within a time that nobody notices."""

    def __init__(self, schema: Mapping[str, Any], validator: jsonschema_rs.Validator) -> None:
        self._schema = schema
        self._validator = validator

    def is_valid(self, value: Any) -> bool:
        """`TooMuchWork` where nobody can say in time."""
        if not self._effort.is_small and _steps(self._effort, value) > MOST_STEPS:
            raise TooMuchWork
        return self._validator.is_valid(value)

    def errors(self, value: Any) -> Sequence[jsonschema_rs.ValidationError]:
        """The first few of a value that is not valid; none where looking for them could take long.

        The library finds all before it tells one, and for each choice those of all its options.
        """
        if _steps(self._ways_to_fail, value) <= _FEW_WAYS:
            return [*islice(self._validator.iter_errors(value), MOST_ERRORS + 1)]
        if not self._has_nested_choices:
            try:
                self._validator.validate(value)
            except jsonschema_rs.ValidationError as error:
                return [error]
        return []

    @cached_property
    def _effort(self) -> SchemaEffort:
        return SchemaEffort(self._schema)

    @cached_property
    def _ways_to_fail(self) -> SchemaEffort:
        return SchemaEffort(self._schema, backtracks=0)  # a pattern fails once, however long it tries

    @cached_property
    def _has_nested_choices(self) -> bool:
        return has_nested_choices(self._schema)


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A validator, or why there is none.

    `invalid`: no JSON schema at all. `external`: it points outside itself. `unusable`: a schema
    that our validator cannot use, such as one with a reference to a part that is not there.
    """

    validator: SchemaValidator | None
    fault: Fault | None = None
    reason: str = ""


def compiled(schema: Mapping[str, Any]) -> CompiledSchema:
    """Draft 2020-12 unless `$schema` names another known draft; formats are checked."""
    plain = dict(schema)
    if has_costly_patterns(plain):
        return CompiledSchema(None, "unusable", "its patterns repeat too much")
    try:
        return CompiledSchema(SchemaValidator(plain, _validator(plain)))
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


def _steps(effort: SchemaEffort, value: Any) -> int:
    try:
        return effort.steps(value, len(orjson.dumps(value)))
    except TypeError:  # no JSON: nobody can say how large it is
        return MOST_STEPS + 1


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
