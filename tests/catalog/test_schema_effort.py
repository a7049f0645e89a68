"""A schema and a value that a stranger chose: checking one by the other never holds up everybody else."""

from time import process_time
from typing import Any

import pytest

from dragoman.catalog.schemas import TooMuchWork, compiled
from patience import patient

Json = dict[str, Any]


def ladder(rungs: int, *, end: Json, ref: str = "$ref", place: str = "#/$defs/", **more: Any) -> Json:
    """Each rung leads to the next in two ways: as many ways to the end as two to the number of rungs."""
    steps = {
        f"r{number}": {
            "allOf": [{ref: f"{place}r{number + 1}"}, {ref: f"{place}r{number + 1}", "title": "x"}]
        }
        for number in range(rungs)
    }
    if place == "#":
        steps = {name: {"$anchor": name, **step} for name, step in steps.items()}
        end = {"$anchor": f"r{rungs}", **end}
    return {"type": "object", ref: f"{place}r0", "$defs": {**steps, f"r{rungs}": end}, **more}


def nested(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"c": end}
    return end


CHOICE = {
    "anyOf": [
        {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["a"]},
        {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["b"]},
    ]
}
BOTH = {
    "type": "object",
    "allOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}}, CHOICE["anyOf"][0] | {"required": []}],
}
TABLE = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string"}}}}

COSTLY: dict[str, tuple[Json, Any]] = {
    "references that unfold": (ladder(40, end={"type": "object"}), {}),
    "by anchors": (ladder(40, end={"type": "object"}, place="#"), {}),
    "by addresses": (
        {
            **ladder(40, end={"type": "object"}, place=""),
            "$id": "https://a.example/whole",
            "$defs": {
                name: {"$id": name, **step}
                for name, step in ladder(40, end={"type": "object"}, place="")["$defs"].items()
            },
        },
        {},
    ),
    "dynamic ones": (
        {
            "type": "object",
            "$dynamicRef": "#r0",
            "$defs": {
                name: {"$dynamicAnchor": name, **step}
                for name, step in ladder(40, end={"type": "object"}, ref="$dynamicRef", place="#")[
                    "$defs"
                ].items()
            },
        },
        {},
    ),
    "that come back deeper": (ladder(14, end={"properties": {"c": {"$ref": "#/$defs/r0"}}}), nested(6, {})),
    "that lead in a circle": (ladder(30, end={"$ref": "#/$defs/r0"}), {}),
    "an error in every choice": (
        {"type": "object", "$ref": "#/$defs/n", "$defs": {"n": CHOICE}},
        nested(17, {}),
    ),
    "an error in every way": ({"type": "object", "$ref": "#/$defs/n", "$defs": {"n": BOTH}}, nested(17, 5)),
    "an error in every row": (TABLE, {"rows": [5] * 300_000}),
    "long lists to compare with": (
        {"properties": {"rows": {"items": {"enum": [{"x": number} for number in range(20_000)]}}}},
        {"rows": [{"x": 19_999}] * 1000},
    ),
    "many names to look for": (
        {"properties": {"rows": {"items": {"required": [f"a{number}" for number in range(20_000)]}}}},
        {"rows": [{f"a{number}": 0 for number in range(20_000)}] * 50},
    ),
    "a pattern that tries every way": (
        {"properties": {"text": {"pattern": "(?=x)(x+x+)+y"}}},
        {"text": "x" * 300_000},
    ),
    "patterns that take long to prepare": (
        {"properties": {f"p{number}": {"pattern": f"((\\w{{90}}){{90}}){number}"} for number in range(400)}},
        {},
    ),
}


@pytest.mark.parametrize("what", COSTLY)
def test_nothing_that_a_stranger_wrote_takes_long_to_check(what: str) -> None:
    schema, value = COSTLY[what]
    began = process_time()
    validator = compiled(schema).validator
    if validator is not None:
        try:
            if not validator.is_valid(value):
                validator.errors(value)
        except TooMuchWork:
            pass
    assert process_time() - began < patient(1)


REFERRED = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/person"}}},
    "$defs": {
        "person": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^(?!-)[A-Za-z -]{1,64}$"},
                "home": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                "friends": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            },
            "required": ["name"],
        },
        "place": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"people": [{"name": "Ada", "home": {"town": "London"}, "friends": [{"name": "Mary"}]}] * 20}, None),
        ({"people": [{"name": "Ada", "home": {"town": 5}}]}, "not valid under any"),
        (
            {"people": [{"name": "Ada", "friends": [{"name": "Mary", "friends": [{}]}]}]},
            '"name" is a required',
        ),
        ({"people": [{"name": "-Ada"}]}, "does not match"),
    ],
)
def test_what_people_write_is_checked_and_its_first_errors_are_told(value: Json, words: str | None) -> None:
    validator = compiled(REFERRED).validator
    assert validator is not None
    assert validator.is_valid(value) == (words is None)
    if words is not None:
        assert words in validator.errors(value)[0].message


def test_of_a_large_table_the_first_error_is_told() -> None:
    validator = compiled(TABLE).validator
    assert validator is not None
    assert validator.is_valid({"rows": ["x"] * 300_000})
    (error,) = validator.errors({"rows": [*["x"] * 300_000, 5, 6]})
    assert error.instance_path == ["rows", 300_000]
