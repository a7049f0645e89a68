"""Words in definitions and results that speak to the model instead of describing or answering something.

Patterns find what attackers usually write. They find no sentence that only means harm: what is held back is
worth a look, what is not held back is not thereby harmless.
"""

import re
import tomllib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast
from unicodedata import normalize

from dragoman.hook_rule import HookRule
from dragoman.hooks.patterns import Found, PatternHook, apart, places_of
from dragoman.hooks.protocol import HookedCall, Verdict
from dragoman.tool import ToolDefinition

_BASE64 = re.compile(r"\b[A-Za-z0-9+/]{40,}={0,2}(?![\w+/=])")
_UNSEEN = re.compile(r"[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
# Letters of other scripts that look like Latin ones.
_LOOK_ALIKE = str.maketrans("абвгеёіїјкмнопрсѕтухѵԁԛԝһɡοαενρτυικ", "a6breeiijkmhonpcstyxvdqwhgoaevptuik")
_WORD = re.compile(r"[a-z]{2,}")
_STEM = 5
_AROUND = 300  # characters around a telling word that belong to it
_FEWEST_PRINTED = 0.95
_BLOBS = 20  # of one text that are decoded


class InjectionScanner:
    def __init__(self, place: Literal["definitions", "results"]) -> None:
        self._rules = _rules(place)

    def find(self, text: str, known: frozenset[str] = frozenset()) -> Sequence[Found]:
        """`known` are names that a definition may speak of: the tools of its connector, and parameters."""
        return apart(self._candidates(text, known))

    def is_telling(self, key: str, value: str) -> str | None:
        return None

    def _candidates(self, text: str, known: frozenset[str]) -> Iterator[Found]:
        yield from self._spoken(text, known)
        for match in list(_BASE64.finditer(text))[:_BLOBS]:
            if (inner := _decoded(match[0])) and any(self._spoken(inner, known)):
                yield Found(*match.span(), "instructions in base64")

    def _spoken(self, text: str, known: frozenset[str]) -> Iterator[Found]:
        lower = text.lower()
        if len(lower) != len(text):  # a letter that has two in lower case: places would not fit
            lower = "".join(one if len(one.lower()) != 1 else one.lower() for one in text)
        plain = lower if text.isascii() else normalize("NFKC", _UNSEEN.sub("", lower)).translate(_LOOK_ALIKE)
        stems = frozenset([word[:_STEM] for word in _WORD.findall(plain)])
        for rule in self._rules:
            if not rule.may_match(plain, stems):
                continue
            found = [Found(*match.span(), rule.what) for match in rule.matches(lower, known)]
            if not found and plain != lower and any(rule.matches(plain, known)):
                found = [Found(0, len(text), rule.what)]
            yield from found


class InjectionHook(PatternHook):
    """Holds back tools whose definitions speak to the model, and notes results that do."""

    def __init__(self, rule: HookRule) -> None:
        super().__init__(InjectionScanner("results"), rule, sent="note", given="note")
        self._definitions = InjectionScanner("definitions")

    async def before(self, call: HookedCall) -> Verdict | None:
        return None  # what a model writes is no instruction to it

    async def listed(self, connector: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        held: dict[str, str] = {}
        names = frozenset(tool.original_name.lower() for tool in tools)
        for tool in tools:
            known = names | _parameters(tool.input_schema) | _parameters(tool.output_schema)
            found = {one.what: None for text in _texts(tool) for one in self._definitions.find(text, known)}
            if found:
                held[tool.original_name] = ", ".join(found)
        return held


@dataclass(frozen=True, slots=True)
class _Rule:
    """`words`: it is looked for around these only. Both `gates` must let the text pass.

    `needs` must stand in the words that were found. `of_unseen`: plain letters cannot be it.
    `is_foreign`: the tool that it names must be another's.
    """

    what: str
    words: tuple[str, ...]
    gates: "tuple[_Gate, _Gate]"
    pattern: re.Pattern[str]
    needs: re.Pattern[str] | None
    of_unseen: bool
    is_foreign: bool

    def may_match(self, text: str, stems: frozenset[str]) -> bool:
        if self.of_unseen and text.isascii():
            return False
        return self.gates[0].lets(text, stems) and self.gates[1].lets(text, stems)

    def matches(self, text: str, known: frozenset[str]) -> Iterator[re.Match[str]]:
        for start, end in self._windows(text):
            for match in self.pattern.finditer(text, start, end):
                if self.needs is not None and not self.needs.search(match[0]):
                    continue
                if self.is_foreign and (match["tool"] is None or match["tool"] in known):
                    continue
                yield match

    def _windows(self, text: str) -> list[tuple[int, int]]:
        if not self.words:
            return [(0, len(text))]
        hits = sorted(place for word in self.words for place in places_of(word, text))
        windows: list[tuple[int, int]] = []
        for place in hits:
            if windows and place - _AROUND <= windows[-1][1]:
                windows[-1] = (windows[-1][0], place + _AROUND)
            else:
                windows.append((max(0, place - _AROUND), place + _AROUND))
        return windows


class _Gate:
    """Whether one of some words may be in a text: by the stems of its words, for a look for each is slow."""

    def __init__(self, words: Sequence[str]) -> None:
        stems = [_WORD.match(word) for word in words]
        self._stems = frozenset(stem[0][:_STEM] for stem in stems if stem is not None)
        signs = [word for word, stem in zip(words, stems, strict=True) if stem is None]
        self._signs = tuple((sign[0], sign) for sign in signs if sign.isascii())
        self._letters = tuple(sign for sign in signs if not sign.isascii())
        self._is_open = not words

    def lets(self, text: str, stems: frozenset[str]) -> bool:
        if self._is_open or not self._stems.isdisjoint(stems):
            return True
        if any(first in text and sign in text for first, sign in self._signs):
            return True
        return not text.isascii() and any(letters in text for letters in self._letters)


@cache
def _rules(place: str) -> list[_Rule]:
    table = tomllib.loads(files("dragoman.hooks").joinpath("injection_patterns.toml").read_text("utf-8"))
    fragments: dict[str, str] = table["fragments"]

    def compiled(pattern: str) -> re.Pattern[str]:
        for name, fragment in fragments.items():
            pattern = pattern.replace(f"{{{name}}}", f"(?:{fragment})")
        return re.compile(pattern)

    rules: list[_Rule] = []
    for rule in (*table["anywhere"], *table[place]):
        is_foreign = rule.get("foreign", False)
        # A group can have its name only once in a pattern.
        for pattern in rule["patterns"] if is_foreign else ["|".join(rule["patterns"])]:
            needs = compiled(rule["needs"]) if "needs" in rule else None
            gates = (_Gate(rule["words"]), _Gate(rule.get("also", ())))
            is_unseen = rule.get("unseen", False)
            words = tuple(rule["words"])
            rules.append(_Rule(rule["what"], words, gates, compiled(pattern), needs, is_unseen, is_foreign))
    return rules


def _texts(tool: ToolDefinition) -> Iterator[str]:
    """All that a model reads of it."""
    yield tool.original_name
    yield tool.title or ""
    yield tool.description
    for schema in (tool.input_schema, tool.output_schema):
        yield from _strings(schema)


def _parameters(schema: Any) -> frozenset[str]:
    """The names of all properties, and words that stand alone in it: values to choose from, formats."""
    return frozenset(text.lower() for text in _strings(schema) if " " not in text)


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > 100:
        return
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[str, Any]", value).items():
            yield str(key)
            yield from _strings(one, depth + 1)
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from _strings(one, depth + 1)


def _decoded(text: str) -> str | None:
    """The text that was written in base64; None where it is none."""
    try:
        inner = b64decode(text + "=" * (-len(text) % 4)).decode("utf-8")
    except (NotBase64, ValueError):
        return None
    printed = sum(one.isprintable() or one.isspace() for one in inner)
    return inner if printed >= len(inner) * _FEWEST_PRINTED else None
