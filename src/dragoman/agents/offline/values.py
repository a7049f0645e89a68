"""Typed values found in plain text: quoted text, addresses, URLs, paths, dates, times, numbers, names.

Pure: knows no tool. Every value keeps its place, so that the words around it can be read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Any, Literal

Kind = Literal[
    "quoted", "url", "address", "datetime", "date", "time", "path", "handle", "tag", "number", "code", "name"
]


_MOST = 60  # values of one text that are looked at


@dataclass(frozen=True, slots=True)
class Value:
    kind: Kind
    value: Any
    start: int
    end: int


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
_NUMBERS: dict[str, int] = {
    **{word: number for number, word in enumerate(_SMALL.split())},
    **{word: 10 * tens for tens, word in enumerate(_TENS.split(), 2)},
    "dozen": 12,
}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}

_NUMBER_WORDS = "|".join(_NUMBERS)
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("quoted", re.compile(r'"([^"\n]{0,4000})"|“([^”\n]{0,4000})”|«([^»\n]{0,4000})»|`([^`\n]{0,4000})`')),
    ("quoted", re.compile(r"(?<![\w'])'([^'\n]{1,4000})'(?!\w)|(?<!\w)‘([^’\n]{1,4000})’(?!\w)")),
    ("url", re.compile(r"\b[a-z][a-z0-9+.-]{1,12}://[^\s<>\"']+", re.IGNORECASE)),
    ("address", re.compile(r"(?<![\w.+@-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")),
    ("datetime", re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)")),
    ("date", re.compile(r"\b\d{4}-\d\d-\d\d\b")),
    ("date", re.compile(r"\b(?:yesterday|today|tomorrow)\b", re.IGNORECASE)),
    (
        "time",
        re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?:\s?([ap])\.?m\b\.?)?", re.IGNORECASE),
    ),
    ("time", re.compile(r"\b(1[0-2]|0?[1-9])\s?([ap])\.?m\b\.?", re.IGNORECASE)),
    (
        "path",
        re.compile(r"(?<![\w/.@+-])(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?|(?<![\w/.@+-])[\w.@+-]+(?:/[\w.@+-]+)+/?"),
    ),
    ("path", re.compile(r"(?<![\w/.@-])[\w-]+(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w@])")),
    ("code", re.compile(r"(?<![\w+])\+\d[\d ()/-]{4,18}\d")),
    ("handle", re.compile(r"(?<![\w@])@([\w][\w.-]*\w|\w)")),
    ("tag", re.compile(r"(?<![\w#])#([\w][\w.-]*\w|\w)")),
    ("number", re.compile(r"(?<![\w.,/-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w-])")),
    ("number", re.compile(r"(?<![\w.,/-])-?\d{1,15}(?:\.\d+)?(?![\w-]|\.\d)")),
    ("number", re.compile(rf"\b(?:{_NUMBER_WORDS})\b|\ba couple(?: of)?\b", re.IGNORECASE)),
    ("code", re.compile(r"(?<![\w-])(?=[\w-]*(?:\d|_|[a-z][A-Z]))[A-Za-z][\w-]*(?<!-)")),
    ("name", re.compile(r"(?<=[\w,'’] )[A-Z][\w'’&-]*(?: (?:of |de |the )?[A-Z][\w'’&-]*)*")),
)
_NOT_A_COUNT = re.compile(
    r"(?:\b(?:the|this|that|which|each|no|any|every|some|last|first|second|next) )$", re.IGNORECASE
)


def values_in(text: str) -> list[Value]:
    """In the order of the text; no two overlap, the more telling kind wins."""
    found: list[Value] = []
    rest = text
    for kind, pattern in _PATTERNS:
        matches = [*islice(_matches(kind, pattern, rest), _MOST)]
        found += matches
        rest = _masked(rest, matches)
    return sorted(found, key=lambda value: value.start)[:_MOST]


def _masked(text: str, values: Iterable[Value]) -> str:
    """With nothing left of the values to be read again."""
    pieces: list[str] = []
    place = 0
    for value in values:
        pieces += [text[place : value.start], "\0" * (value.end - value.start)]
        place = value.end
    return "".join([*pieces, text[place:]])


def _matches(kind: Kind, pattern: re.Pattern[str], text: str) -> Iterator[Value]:
    for match in pattern.finditer(text):
        value = _READERS.get(kind, _plain)(match)
        if value is not None:
            end = match.start() + len(str(value)) if kind in ("url", "path") else match.end()
            if end > match.start():
                yield Value(kind, value, match.start(), end)


def _plain(match: re.Match[str]) -> str | None:
    text = match.group()
    return None if "\0" in text else text.rstrip(".,;:!?)")


def _quoted(match: re.Match[str]) -> str | None:
    text = next((group for group in match.groups() if group is not None), "")
    return None if "\0" in text else text


def _name(match: re.Match[str]) -> str | None:
    text = _plain(match)
    return text and re.sub(r"['’]s?$", "", text)


def _marked(match: re.Match[str]) -> str | None:
    return match.group(1)


def _number(match: re.Match[str]) -> int | float | None:
    text = match.group().lower()
    if text in _NUMBERS:
        before = match.string[max(0, match.start() - 8) : match.start()]
        # "the first one" points at something, it does not count.
        return None if text == "one" and _NOT_A_COUNT.search(before) else _NUMBERS[text]
    if text.startswith("a couple"):
        return 2
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def _time(match: re.Match[str]) -> str:
    groups = match.groups()
    hour, minute, second, half = groups if len(groups) == 4 else (groups[0], "00", None, groups[1])
    hours = int(hour)
    if half and half.lower() == "p" and hours < 12:
        hours += 12
    elif half and half.lower() == "a" and hours == 12:
        hours = 0
    return f"{hours:02}:{minute}" + (f":{second}" if second else "")


def _datetime(match: re.Match[str]) -> str:
    return f"{match.group(1)}T{match.group(2)}"


_READERS: dict[Kind, Callable[[re.Match[str]], Any]] = {
    "quoted": _quoted,
    "name": _name,
    "handle": _marked,
    "tag": _marked,
    "number": _number,
    "time": _time,
    "datetime": _datetime,
}


def day_of(word: str, today: date) -> str:
    """A day said by its place beside today, as an ISO date; any other word as it is."""
    shift = _DAYS.get(word.lower())
    return word if shift is None else (today + timedelta(days=shift)).isoformat()
