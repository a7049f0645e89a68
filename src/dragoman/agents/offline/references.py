"""Words that point at something that came before: `a summary`, `them`, `the first one`.

What they point at is a result of this turn or of an earlier one; it fills what a clause leaves open.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dragoman.agents.offline.answers import summary
from dragoman.agents.offline.draft import Draft
from dragoman.agents.offline.grammar import CHANGES, TEXT_NAMES
from dragoman.agents.offline.kinds import coerced
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.results import Reading
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.values import values_in
from dragoman.catalog.search.words import parts, stem

_ALL = re.compile(
    r"\b(?:(?:a|the|their|this|that|your)\s+(?:short\s+|brief\s+)?)?(?:summary|overview|results?|findings|output|digest)"
    r"(?:\s+of\s+(?:it|them|this|that|these|those|the results?))?\b"
    r"|\b(?:them|these|those|it|that)\b|\bthe (?:list|answer)\b",
    re.IGNORECASE,
)
_ORDINALS = {
    "first": 0,
    "1st": 0,
    "second": 1,
    "2nd": 1,
    "third": 2,
    "3rd": 2,
    "fourth": 3,
    "4th": 3,
    "fifth": 4,
}
_ONE = re.compile(
    rf"\bthe\s+({'|'.join(_ORDINALS)}|last|latest|newest|top)(?:\s+(?:one|of\s+(?:them|these|those)|result|entry))?\b",
    re.IGNORECASE,
)
_IT = re.compile(r"\b(?:it|that one|this one|that|this)\b", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)'[^'\n]+'(?!\w)|\"[^\"\n]+\"|“[^”\n]+”|`[^`\n]+`")
_FROM = frozenset({"from", "author", "by", "owner", "user", "creator", "contact"})


@dataclass(slots=True)
class Reference:
    """What a clause points at: everything that was found, or one row of it."""

    reading: Reading
    row: Mapping[str, Any] | None = None
    is_all: bool = False

    @classmethod
    def find(cls, sentence: Sentence, readings: Sequence[Reading]) -> "Reference | None":
        """The words that point are used up: they are no value of their own."""
        reading = next((one for one in reversed(readings) if not one.failed), None)
        if reading is None:
            return None
        rows = [cast("Mapping[str, Any]", row) for row in reading.rows or () if isinstance(row, dict)]
        if reading.record is not None:
            rows = [reading.record]
        # What stands in quotes is a value, whatever words it holds; the places stay the same.
        text = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), sentence.text)
        one = _ONE.search(text)
        if one and rows:
            place = _ORDINALS.get(
                one.group(1).lower(), 0 if one.group(1).lower() != "last" else len(rows) - 1
            )
            if place < len(rows) and _ends_here(sentence, one):
                sentence.use(*one.span())
                return cls(reading, rows[place])
        pointing = _ALL.search(text)
        if pointing is None:
            return None
        single = rows[0] if len(rows) == 1 and _IT.search(text) else None
        sentence.use(*pointing.span())
        return cls(reading, single, is_all=True)

    def complete(self, draft: Draft) -> None:
        """What the clause left open and the thing it points at has."""
        if self.row is not None:
            for parameter in [one for one in draft.open() if one.required]:
                value = _of_row(self.row, parameter)
                if value is not None:
                    draft.found[parameter.path] = value
        if not self.is_all or not draft.tool.deeds & CHANGES:
            return
        texts = [one for one in draft.open() if one.takes_text and not one.format and not one.is_identifier]
        texts = [one for one in texts if one.required or set(one.words) & TEXT_NAMES]
        if texts:
            best = max(texts, key=lambda one: (bool(set(one.words) & TEXT_NAMES), one.required))
            value = coerced(best, summary(self.reading))
            draft.found[best.path] = [value] if "string" not in best.types else value


def _ends_here(sentence: Sentence, found: re.Match[str]) -> bool:
    """`the first one`, `the last`; but not `the latest news`, which names a thing of its own."""
    if " " in found.group().split(None, 1)[1]:
        return True
    after = sentence.after(found.end())
    return not after or after[0] in {
        "and",
        ",",
        "to",
        "with",
        "saying",
        "that",
        "in",
        "for",
        "by",
        "as",
        "from",
    }


def _of_row(row: Mapping[str, Any], parameter: Parameter) -> Any:
    keys = {key: {stem(part) for part in parts(key)} for key in row}
    exact = [key for key in row if key.lower() == parameter.name.lower()]
    same = [key for key, words in keys.items() if set(parameter.core) & words]
    identifiers = [
        key for key in row if parameter.is_identifier and key.lower() in ("id", "number", "key", "uid")
    ]
    for key in (*exact, *identifiers, *same):
        value = _taken(parameter, row[key])
        if value is not None:
            return value
    if parameter.takes_text and (
        parameter.format or set(parameter.words) & {"to", "recipient", "recipients"}
    ):
        # Whoever answers writes back to where it came from.
        ordered = sorted(row, key=lambda key: not _FROM & set(parts(key)))
        for key in ordered:
            for value in values_in(str(row[key])[:500]):
                if value.kind == "address" and (form := _taken(parameter, value.value)) is not None:
                    return form
    return None


def _taken(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    form = coerced(parameter, str(value))
    return [form] if form is not None and not {"string", "integer", "number"} & parameter.types else form
