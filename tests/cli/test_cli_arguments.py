"""`key=value` as the schema of a tool wants it."""

from typing import Any

import pytest

from dragoman.cli.arguments import split_words, typed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "is_on": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "table": {"type": "object"},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "several": {"type": ["number", "null"]},
        "far": {"$ref": "#/$defs/Far"},
        "choice": {"enum": [1, 2]},
        "any": {},
    },
    "$defs": {"Far": {"type": "boolean"}},
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["text=5"], {"text": "5"}),
        (["text=a=b"], {"text": "a=b"}),
        (["text="], {"text": ""}),
        (["text={}"], {"text": "{}"}),
        (["count=5"], {"count": 5}),
        (["count=-5"], {"count": -5}),
        (["count=five"], {"count": "five"}),
        (["count=true"], {"count": "true"}),
        (["share=2.5"], {"share": 2.5}),
        (["is_on=true"], {"is_on": True}),
        (["is_on=No"], {"is_on": False}),
        (["is_on=perhaps"], {"is_on": "perhaps"}),
        (["names=a"], {"names": ["a"]}),
        (["names=a", "names=b"], {"names": ["a", "b"]}),
        (['names=["a", "b"]'], {"names": ["a", "b"]}),
        (["numbers=1", "numbers=2"], {"numbers": [1, 2]}),
        (["numbers=1"], {"numbers": [1]}),
        (['table={"a": 1}'], {"table": {"a": 1}}),
        (["table=x"], {"table": "x"}),
        (["either=a"], {"either": "a"}),
        (['either=["a"]'], {"either": ["a"]}),
        (["maybe=null"], {"maybe": None}),
        (["maybe=3"], {"maybe": 3}),
        (["several=1e3"], {"several": 1000.0}),
        (["far=yes"], {"far": True}),
        (["choice=2"], {"choice": 2}),
        (["any=2"], {"any": 2}),
        (["any=two"], {"any": "two"}),
        (["unknown=1"], {"unknown": 1}),
    ],
)
def test_words_are_typed_by_the_schema(words: list[str], expected: dict[str, Any]) -> None:
    assert typed(split_words(words), SCHEMA) == expected


@pytest.mark.parametrize("word", ["text", "=x", ""])
def test_a_word_without_a_key_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="key=value"):
        split_words([word])


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"properties": {"a": {"$ref": "#/properties/a"}}}
    assert typed([("a", "1")], schema) == {"a": 1}
