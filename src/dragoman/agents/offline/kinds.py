"""How well a value of some kind suits a parameter, and the value in the form that the parameter takes.

Formats are asked of the schema checker, not listed: a format that it knows is a format that works.
"""

from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import jsonschema_rs

from dragoman.agents.offline.grammar import (
    COUNT_HINTS,
    COUNT_NAMES,
    PAGING,
    RECENT,
    ROLES,
    roles_of,
    word_set,
)
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.values import Kind, Value, day_of
from dragoman.catalog.search.words import stem

# Words of a parameter's name or description that say which kind of value it takes.
_SUITED: dict[Kind, frozenset[str]] = {
    "address": word_set("address addresses recipient recipients to cc bcc from contact"),
    "url": word_set("url urls uri link href website webpage page site web endpoint"),
    "path": word_set("path paths file files filename folder directory dir source destination location"),
    "date": word_set("date day dates when start end since until before after due deadline from to on"),
    "datetime": word_set("date time datetime timestamp when start end since until due at from to"),
    "time": word_set("time hour clock when at start end"),
    "handle": word_set("user username author assignee person owner login by who handle name agent people"),
}
PATH_WORDS = _SUITED["path"]
_DATED: frozenset[Kind] = frozenset({"date", "datetime", "time"})
_TIME_FORMATS: dict[str, frozenset[Kind]] = {
    "date": frozenset({"date", "datetime"}),
    "date-time": _DATED,
    "time": frozenset({"time"}),
}


def suits(parameter: Parameter, value: Value, sentence: Sentence) -> float:
    """From 0 (not at all) to about 2; a value is given to the parameter that it suits best."""
    if value.kind == "number":
        return _suits_number(parameter, value, sentence)
    if not parameter.takes_text:
        if value.kind == "tag" and parameter.takes_number and str(value.value).isdecimal():
            return 0.5 + (0.4 if parameter.is_identifier else 0.0) + _announced(parameter, value, sentence)
        return 0.0
    base = _suits_text(parameter, value)
    return base + _announced(parameter, value, sentence) + 0.15 * parameter.required if base > 0 else 0.0


def _suits_text(parameter: Parameter, value: Value) -> float:
    kind = value.kind
    if parameter.format in _TIME_FORMATS:
        return 1.0 if kind in _TIME_FORMATS[parameter.format] else 0.0
    if parameter.format:
        return 1.0 if has_format(str(value.value), parameter.format) else 0.0
    wanted = _SUITED.get(kind, frozenset())
    in_name, in_hints = wanted & set(parameter.words), wanted & parameter.hints
    if kind in _DATED:
        return 0.8 if in_name else 0.45 if in_hints else 0.0
    other = any(
        set(parameter.words) & words for key, words in _SUITED.items() if key != kind and key != "handle"
    )
    other = other or (kind == "tag" and bool(set(parameter.words) & _SUITED["handle"]))
    plain = {"handle": 0.3, "tag": 0.4, "path": 0.3, "address": 0.3, "url": 0.2}.get(kind, 0.0)
    return 0.9 if in_name else 0.6 if in_hints else plain * (0.5 if other else 1.0)


def _suits_number(parameter: Parameter, value: Value, sentence: Sentence) -> float:
    number = float(value.value)
    if not parameter.takes_number:
        if not (parameter.is_identifier and parameter.takes_text):
            return 0.0
    elif (
        (parameter.least is not None and number < parameter.least)
        or (parameter.most is not None and number > parameter.most)
        or (number != int(number) and not {"number", "numbers"} & parameter.types)
    ):
        return 0.0
    announced = _announced(parameter, value, sentence)
    if parameter.is_identifier:
        return 0.3 + announced + 0.2 * parameter.required
    if set(parameter.words) & PAGING and not set(parameter.words) & COUNT_NAMES:
        return 0.1 + announced
    counts = bool(set(parameter.words) & COUNT_NAMES or parameter.hints & COUNT_HINTS)
    if not counts:
        return 0.35 + announced + 0.15 * parameter.required
    before, after = sentence.before(value.start), sentence.after(value.end)
    # A count stands before what it counts; behind a noun a number is its name: "room 12".
    is_count = bool({*before, *after} & RECENT) or (
        bool(after) and (after[0][:1].isalpha() or after[0] in "\"“«'`") and after[0] not in ROLES
    )
    return (0.75 if is_count else 0.2) + announced + 0.15 * parameter.required


def _announced(parameter: Parameter, value: Value, sentence: Sentence) -> float:
    """How much the words around the value speak for this parameter."""
    preposition = sentence.preposition_of(value)
    score = 0.0
    if preposition:
        if preposition in parameter.words:
            score += 0.6
        elif roles_of(parameter.words, preposition):
            score += 0.4
    near = [stem(word) for word in (*sentence.before(value.start, 2), *sentence.after(value.end, 2)[:2])]
    if any(_same(word, core) for word in near for core in parameter.core):
        score += 0.5
    elif set(near) & {stem(word) for word in parameter.hints if len(word) > 3}:
        score += 0.2 if value.kind == "number" else 0.1
    return score


def _same(word: str, core: str) -> bool:
    return word == core or (
        min(len(word), len(core)) >= 4 and (word.startswith(core) or core.startswith(word))
    )


def given(parameter: Parameter, values: Sequence[Value], today: date) -> Any:
    """The value, or the list of them, as the schema has it; None when it cannot be had."""
    forms = [_formed(parameter, value, today) for value in values]
    forms = [form for form in forms if form is not None]
    if not forms:
        return None
    singular = {kind for kind in parameter.types if not kind.endswith("s")}
    return forms[0] if len(forms) == 1 and singular else forms if parameter.takes_many else forms[0]


def _formed(parameter: Parameter, value: Value, today: date) -> Any:
    if value.kind == "number" or (value.kind == "tag" and not parameter.takes_text):
        return coerced(parameter, str(value.value))
    text = str(value.value)
    if value.kind == "handle":
        text = _marked("@", text, parameter)
    elif value.kind == "tag":
        text = _marked("#", text, parameter)
    elif value.kind in _DATED:
        text = _moment(parameter, value, today)
    return coerced(parameter, text)


def _marked(mark: str, text: str, parameter: Parameter) -> str:
    """With its mark only where the description shows values with it."""
    said = parameter.description
    return f"{mark}{text}" if mark in said and "without" not in said.lower() else text


def _moment(parameter: Parameter, value: Value, today: date) -> str:
    text = day_of(str(value.value), today)
    if parameter.format == "date":
        return text[:10]
    if parameter.format == "date-time":
        full = (
            text
            if "T" in text
            else f"{today.isoformat()}T{text}"
            if value.kind == "time"
            else f"{text}T00:00"
        )
        try:
            moment = datetime.fromisoformat(full)
        except ValueError:
            return text
        # Whoever says no time zone means the one of this machine.
        return (moment if moment.tzinfo else moment.astimezone()).isoformat()
    return text


def coerced(parameter: Parameter, text: str) -> Any:
    """Text as the type that the parameter takes; None when it is not of that type."""
    for choice in parameter.choices:
        if str(choice).lower() == text.strip().lower():
            return choice
    if parameter.choices:
        return None
    plain = text.strip().rstrip(".,").replace(",", "")
    if {"integer", "integers"} & parameter.types:
        number = _number_of(plain)
        if number is not None and number == int(number):
            return int(number)
    if {"number", "numbers"} & parameter.types:
        number = _number_of(plain)
        if number is not None:
            return int(number) if number == int(number) and "." not in plain else number
    if "boolean" in parameter.types and plain.lower() in ("true", "yes", "on", "false", "no", "off"):
        return plain.lower() in ("true", "yes", "on")
    if {"string", "strings"} & parameter.types:
        return text.strip() if not parameter.format or has_format(text.strip(), parameter.format) else None
    return None


def _number_of(text: str) -> float | None:
    try:
        number = float(text.lstrip("#"))
    except ValueError:
        return None
    return number if abs(number) < 1e15 else None


@lru_cache(maxsize=200)
def _checker(form: str) -> Any:
    return jsonschema_rs.validator_for({"type": "string", "format": form}, validate_formats=True)


def has_format(text: str, form: str) -> bool:
    try:
        return bool(_checker(form).is_valid(text))
    except Exception:  # noqa: BLE001  # boundary: a format that the checker does not know forbids nothing
        return True
