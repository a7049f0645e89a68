"""Whether arguments may leave: JSON, not too large, not too deep, and what the tool's schema asks for.

A schema is compiled once per version of a tool. Nothing here opens a connection or a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

import orjson

from dragoman.calls.argument_conversion import converted
from dragoman.calls.argument_errors import complaint, hint_for, known_names
from dragoman.catalog.schemas import SchemaValidator, TooMuchWork, compiled
from dragoman.errors import InvalidArguments, ProtocolFault
from dragoman.names import did_you_mean
from dragoman.scope import Way
from dragoman.tool import Tool

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 100
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_OPEN_ENDED = frozenset(
    {"patternProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
)


@dataclass(frozen=True, slots=True)
class _Rules:
    """One schema, ready to use. `known` is None where any name may be right.

    Tools of several workspaces that are defined alike share it: nothing of one call, nor the name of
    a tool, may be in it. `outside` is the address that the schema points to, when it leaves itself.
    """

    validator: SchemaValidator | None
    known: frozenset[str] | None
    warnings: tuple[str, ...] = ()
    outside: str | None = None


class ArgumentValidator:
    def __init__(self, max_bytes: int = MAX_BYTES, max_schemas: int = 4096) -> None:
        self._max_bytes = max_bytes
        self._max_schemas = max_schemas
        self._rules: dict[str, _Rules] = {}

    def check(
        self, tool: Tool, arguments: Mapping[str, Any], way: Way = "direct"
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The arguments as they may be sent, and warnings. `InvalidArguments` says what to change.

        What a model wrote as text is converted. A program that calls directly is told of its mistake: it can
        mend it for good.
        """
        plain = _as_dict(arguments)
        self._check_json(plain)
        schema = tool.definition.input_schema
        rules = self._rules.get(tool.fingerprint) or self._compile(tool.fingerprint, schema)
        if rules.outside is not None:
            raise ProtocolFault(
                f"the schema of {tool.name!r} points outside itself, to {rules.outside!r};"
                " such references are never followed, so its arguments cannot be checked",
                hint="the tool's server must mend its schema",
            )
        warnings = rules.warnings
        try:
            if rules.validator is not None and not rules.validator.is_valid(plain):
                fitting = converted(plain, rules.validator) if way != "direct" else None
                if fitting is None:
                    raise InvalidArguments(
                        complaint(rules.validator, plain), hint=hint_for(plain, schema, tool.name)
                    )
                plain, changes = fitting
                warnings = (*warnings, *changes)
        except TooMuchWork as why:
            warnings = (*warnings, f"the arguments were not checked: {why}")
        if rules.known is None or rules.known.issuperset(plain):
            return plain, warnings
        return plain, (*warnings, *_unknown(plain, rules.known))

    def _check_json(self, arguments: dict[str, Any]) -> None:
        for value in arguments.values():
            # Spares writing out a huge text only to learn that it is huge.
            if type(value) is str and len(value) > self._max_bytes:
                raise self._too_large(len(value))
        try:
            text = orjson.dumps(arguments, option=_STRICT)
        except (TypeError, RecursionError) as error:
            raise InvalidArguments(
                f"the arguments cannot be written as JSON: {error!s:.200}",
                hint="use text, numbers, true, false, null, lists and objects with text keys,"
                f" at most {MAX_DEPTH} levels deep",
            ) from None
        if len(text) > self._max_bytes:
            raise self._too_large(len(text))
        # Both can only be wrong when the text shows it, and it nearly never does.
        if text.count(b"{") + text.count(b"[") > MAX_DEPTH or b"null" in text:
            _check_within(arguments)

    def _too_large(self, size: int) -> InvalidArguments:
        return InvalidArguments(
            f"the arguments have {size:,} bytes; at most {self._max_bytes:,} are sent",
            hint="send less, or give the tool a path or address to read from",
        )

    def _compile(self, fingerprint: str, schema: Mapping[str, Any]) -> _Rules:
        result = compiled(schema)
        outside = result.reason if result.fault == "external" else None
        warnings: tuple[str, ...] = ()
        if result.fault and outside is None:
            warnings = (f"the arguments were not checked: the tool's schema is unusable: {result.reason}",)
        rules = _Rules(result.validator, _known(schema), warnings, outside)
        if len(self._rules) >= self._max_schemas:
            del self._rules[next(iter(self._rules))]
        self._rules[fingerprint] = rules
        return rules


def _as_dict(arguments: object) -> dict[str, Any]:
    if type(arguments) is dict:
        return cast("dict[str, Any]", arguments)
    if isinstance(arguments, Mapping):
        return dict(cast("Mapping[str, Any]", arguments))
    raise InvalidArguments(
        f"the arguments must be an object, not {type(arguments).__name__}",
        hint='for example {"timezone": "Europe/Rome"}',
    )


def _check_within(value: Any, depth: int = 1) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArguments(
            f"the arguments are nested more than {MAX_DEPTH} levels deep", hint="send a flatter structure"
        )
    if isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            _check_within(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            _check_within(item, depth + 1)
    elif isinstance(value, float) and not isfinite(value):
        raise InvalidArguments("JSON has no NaN and no infinity", hint="send null or a text instead")


def _known(schema: Mapping[str, Any]) -> frozenset[str] | None:
    names = known_names(schema)
    is_plain = schema.get("additionalProperties", True) is True
    return frozenset(names) if names and is_plain and not _OPEN_ENDED.intersection(schema) else None


def _unknown(arguments: Mapping[str, Any], known: frozenset[str]) -> list[str]:
    warnings: list[str] = []
    for name in list(arguments)[:50]:
        if name not in known:
            near = did_you_mean(name[:100], sorted(known))
            warnings.append(f"unknown argument {name[:100]!r}" + (f": {near}" if near else ""))
    return warnings
