"""Requests made from the OpenAPI document: every operation, every shape of body. Pure.

A value is chosen by the name of its field where that says whose thing it is, else by the field's schema.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Json = dict[str, Any]
Value = Callable[[str], Any]
"""What a field or parameter of that name gets; None where its schema decides."""

MOST_PAIRS = 60
WRITES = ("POST", "PUT", "PATCH")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    parameters: tuple[str, ...]
    query: tuple[str, ...]
    body: Json | None

    @property
    def fields(self) -> Json:
        return {} if self.body is None else self.body.get("properties", {})

    @property
    def required(self) -> list[str]:
        return [] if self.body is None else self.body.get("required", [])


@dataclass(frozen=True)
class Shape:
    """One body. `is_wrong`: nobody may be answered as if it were right."""

    name: str
    body: Json | None
    is_wrong: bool = False


class Generator:
    def __init__(self, document: Json, seed: int) -> None:
        self._document = document
        self._random = random.Random(seed)

    def operations(self) -> Iterator[Operation]:
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items():
                named = [self._resolved(one) for one in operation.get("parameters", ())]
                content = operation.get("requestBody", {}).get("content", {})
                body = self._chosen(content["application/json"]["schema"]) if content else None
                yield Operation(
                    method.upper(),
                    path,
                    tuple(one["name"] for one in named if one["in"] == "path"),
                    tuple(one["name"] for one in named if one["in"] == "query"),
                    body,
                )

    def shapes(self, operation: Operation, value: Value) -> Iterator[Shape]:
        """All fields, each pair, each that is required left out, one too many, and each of a wrong type."""
        if operation.body is None:
            yield Shape("no body", None)
            return
        fields = {name: self._value(name, schema, value) for name, schema in operation.fields.items()}
        needed = {name: fields[name] for name in operation.required}
        yield Shape("all fields", fields)
        yield Shape("what is required", needed)
        pairs = [*combinations(fields, 2)]
        for pair in self._random.sample(pairs, min(len(pairs), MOST_PAIRS)):
            yield Shape(f"{pair}", {**needed, **{name: fields[name] for name in pair}})
        for name in needed:
            without = {other: given for other, given in needed.items() if other != name}
            yield Shape(f"without {name}", without, is_wrong=True)
        yield Shape("one field too many", {**needed, "unheard_of": True}, is_wrong=True)
        for name, schema in operation.fields.items():
            if (wrong := self._wrong(schema)) is not None:
                yield Shape(f"{name} is {wrong}", {**needed, name: wrong}, is_wrong=True)

    # Values

    def _value(self, name: str, schema: Json, value: Value) -> Any:
        given = value(name)
        return self._sample(schema) if given is None else given

    def _sample(self, schema: Json) -> Any:
        schema = self._chosen(schema)
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        match schema.get("type"):
            case "string":
                return "x" * max(1, schema.get("minLength", 1))
            case "integer" | "number":
                return least
            case "boolean":
                return True
            case "array":
                return [self._sample(schema["items"])] if "items" in schema else []
            case _:
                properties = schema.get("properties", {})
                return {name: self._sample(properties[name]) for name in schema.get("required", ())}

    def _wrong(self, schema: Json) -> Any:
        """None where anything goes."""
        kinds = {one.get("type") for one in self._ways(schema)}
        if None in kinds:
            return None
        for kind, wrong in (("object", {"wrong": [[]]}), ("array", [[[]]]), ("string", "\u0000wrong")):
            if kind not in kinds:
                return wrong
        return None

    def _chosen(self, schema: Json) -> Json:
        return next(one for one in self._ways(schema) if one.get("type") != "null")

    def _ways(self, schema: Json) -> list[Json]:
        schema = self._resolved(schema)
        return [way for one in schema["anyOf"] for way in self._ways(one)] if "anyOf" in schema else [schema]

    def _resolved(self, schema: Json) -> Json:
        while "$ref" in schema:
            place: Any = self._document
            for word in schema["$ref"].removeprefix("#/").split("/"):
                place = place[word]
            schema = place
        return schema


def filled(operation: Operation, values: Mapping[str, str]) -> str:
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", values[name])
    return path
