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
from itertools import islice
from string import ascii_letters, digits
from typing import Any, Literal, cast
from unicodedata import normalize

from dragoman.hook_rule import HookRule
from dragoman.hooks.patterns import Found, PatternHook, apart
from dragoman.hooks.protocol import Hook
from dragoman.tool import ToolDefinition
from dragoman.word_finder import RunFinder, WordFinder

_BASE64 = re.compile(r"\b[A-Za-z0-9+/]{40,}={0,2}(?![\w+/=])")
_ASCII = bytes(range(128))
_UNSEEN = re.compile(r"[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
# All that a rule with `unseen` looks for is one of these.
_HIDDEN = re.compile(
    "[\u180e\u200b-\u200d\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0020-\U000e007f]"
)
_LONG = RunFinder(ascii_letters + digits + "+/", 40)
# Letters of other scripts that look like Latin ones.
_LOOK_ALIKE = str.maketrans("абвгеёіїјкмнопрсѕтухѵԁԛԝһɡοαενρτυικ", "a6breeiijkmhonpcstyxvdqwhgoaevptuik")
_LOOKS_ALIKE = re.compile("[" + "".join(map(chr, _LOOK_ALIKE)) + "]")
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
        for match in islice(_blobs(text), _BLOBS):
            if (inner := _decoded(match[0])) and any(self._spoken(inner, known)):
                yield Found(*match.span(), "instructions in base64")

    def _spoken(self, text: str, known: frozenset[str]) -> Iterator[Found]:
        lower = text.lower()
        if len(lower) != len(text):  # a letter that has two in lower case: places would not fit
            lower = "".join(one if len(one.lower()) != 1 else one.lower() for one in text)
        plain = _plain(lower)
        seen = set[str]()
        for rule, match in self._rules.matches(lower, known):
            seen.add(rule.what)
            yield Found(*match.span(), rule.what)
        if plain != lower:
            for rule, _ in self._rules.matches(plain, known):
                if rule.what not in seen:
                    yield Found(0, len(text), rule.what)


class InjectionHook(PatternHook):
    """Holds back tools whose definitions speak to the model, and notes results that do."""

    def __init__(self, rule: HookRule) -> None:
        super().__init__(InjectionScanner("results"), rule, sent="note", given="note")
        self._definitions = InjectionScanner("definitions")

    before = Hook.before  # what a model writes is no instruction to it

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
    """Looked for around its `words` only, where one of `also` stands anywhere.

    `needs` must stand in the words that were found. `of_unseen`: plain letters cannot be it.
    `is_foreign`: the tool that it names must be another's. `ends` are letters that nothing it finds has.
    """

    what: str
    words: tuple[str, ...]
    also: tuple[str, ...]
    pattern: re.Pattern[str]
    needs: re.Pattern[str] | None
    of_unseen: bool
    is_foreign: bool
    ends: str

    def matches(self, text: str, places: Sequence[int], known: frozenset[str]) -> Iterator[re.Match[str]]:
        for start, end in self._windows(text, places) if self.words else [(0, len(text))]:
            for match in self.pattern.finditer(text, start, end):
                if self.needs is not None and not self.needs.search(match[0]):
                    continue
                if self.is_foreign and (match["tool"] is None or match["tool"] in known):
                    continue
                yield match

    def _windows(self, text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        """All around its words that what it finds can be in."""
        for low, high in _windows(places):
            if not self.ends:
                yield low, high
                continue
            done = low
            for place in sorted(places):
                if done <= place < high:
                    start = max(done, *(text.rfind(one, done, place) + 1 for one in self.ends))
                    ends = [at for one in self.ends if (at := text.find(one, place, high)) >= 0]
                    done = min(ends, default=high - 1) + 1  # what ends it may be looked at
                    yield start, done


class _Rules:
    """All rules for one place, and one look for the words of all of them."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self.rules = rules
        self.finder = WordFinder(word for rule in rules for word in (*rule.words, *rule.also))
        numbered = list(enumerate(rules))
        self._by_word = [[n for n, rule in numbered if word in rule.words] for word in self.finder.words]
        self._by_also = [[n for n, rule in numbered if word in rule.also] for word in self.finder.words]

    def matches(self, text: str, known: frozenset[str]) -> Iterator[tuple[_Rule, re.Match[str]]]:
        """`text` is in lower case."""
        places: dict[int, list[int]] = {}
        beside = set[int]()
        for word, place in self.finder.find(text):
            for number in self._by_word[word]:
                places.setdefault(number, []).append(place)
            beside.update(self._by_also[word])
        may_be_unseen = _HIDDEN.search(_odd(text)) is not None
        for number, rule in enumerate(self.rules):
            own = places.get(number, ())
            if (rule.words and not own) or (rule.also and number not in beside):
                continue
            if rule.of_unseen and not may_be_unseen:
                continue
            for match in rule.matches(text, own, known):
                yield rule, match


def _windows(places: Sequence[int]) -> list[tuple[int, int]]:
    windows: list[tuple[int, int]] = []
    for place in sorted(places):
        if windows and place - _AROUND <= windows[-1][1]:
            windows[-1] = (windows[-1][0], place + _AROUND)
        else:
            windows.append((max(0, place - _AROUND), place + _AROUND))
    return windows


def _odd(text: str) -> str:
    """Its letters that are not ASCII: few, where what is looked for in them is rare."""
    if text.isascii():
        return ""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def _plain(text: str) -> str:
    """As people read it: without letters that nobody sees, with those that others look like."""
    odd = _odd(text)
    if not odd:
        return text
    plain = normalize("NFKC", _UNSEEN.sub("", text) if _UNSEEN.search(odd) else text)
    return plain.translate(_LOOK_ALIKE) if _LOOKS_ALIKE.search(plain) else plain


@cache
def _rules(place: str) -> _Rules:
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
            words, also = tuple(rule["words"]), tuple(rule.get("also", ()))
            is_unseen = rule.get("unseen", False)
            ends = rule.get("ends", "")
            rules.append(
                _Rule(rule["what"], words, also, compiled(pattern), needs, is_unseen, is_foreign, ends)
            )
    return _Rules(rules)


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


def _blobs(text: str) -> Iterator[re.Match[str]]:
    """All that may be base64: what decides whether a run is one stands in it or right after it."""
    for start, end in _LONG.find(text):
        yield from _BASE64.finditer(text, start, end + 3)


def _decoded(text: str) -> str | None:
    """The text that was written in base64; None where it is none."""
    try:
        inner = b64decode(text + "=" * (-len(text) % 4)).decode("utf-8")
    except (NotBase64, ValueError):
        return None
    printed = sum(one.isprintable() or one.isspace() for one in inner)
    return inner if printed >= len(inner) * _FEWEST_PRINTED else None
