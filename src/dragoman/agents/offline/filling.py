"""The arguments of a call, out of a clause: typed values first, then named ones, then what is left over.

What the clause does not say stays empty. Pure: the same clause and tool give the same arguments.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from dragoman.agents.offline.grammar import (
    NEGATIONS,
    PRONOUNS,
    QUERY_NAMES,
    REQUEST_NAMES,
    ROLES,
    TEXT_NAMES,
    TITLE_NAMES,
    is_search,
    is_verb,
    roles_of,
    word_set,
)
from dragoman.agents.offline.kinds import PATH_WORDS, coerced, given, suits
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.sentence import Phrase, Sentence
from dragoman.agents.offline.tools import Candidate, Listed, fitting
from dragoman.agents.offline.values import Value
from dragoman.catalog.search.words import name_key, parts, stem

_ENOUGH = 0.5
_LINKS = word_set("is are = of to be as called named set equal equals the a an number no contains containing")
_WEAK = word_set("only is has include with show enable flag also set use be")
_MOST_WORDS = 4  # that a name, a place or a code has
_CLOSE_NAMES = 4  # letters that two words must share from the start to be one: info, information


@dataclass(frozen=True, slots=True)
class Filled:
    """`missing` are required and not said. `others` are further arguments of the same kind: one call each."""

    arguments: Mapping[str, Any]
    missing: tuple[Parameter, ...] = ()
    others: tuple[Mapping[str, Any], ...] = ()

    @property
    def all_arguments(self) -> tuple[Mapping[str, Any], ...]:
        return (self.arguments, *self.others)


@dataclass(slots=True)
class Filling:
    """One tool being filled from one clause. `known` are values that some text listed as possible."""

    tool: Candidate
    sentence: Sentence
    today: date
    known: Sequence[Listed] = ()
    whole: str = ""
    found: dict[tuple[str, ...], Any] = field(default_factory=dict[tuple[str, ...], Any])
    spread: list[tuple[Parameter, list[Any]]] = field(default_factory=list[tuple[Parameter, list[Any]]])

    def fill(self) -> Filled:
        for name, value in (self.tool.given or {}).items():
            self.found[(name,)] = value
        self._requests()
        self._pairs()
        self._listed()
        self._named()
        self._choices()
        self._switches()
        self._typed()
        self._quoted()
        self._phrases()
        self._rest()
        return self.filled()

    def filled(self) -> Filled:
        for one in self.tool.parameters:
            if one.required and one.path not in self.found:
                if one.default is not None:
                    self.found[one.path] = one.default
                elif len(one.choices) == 1:
                    self.found[one.path] = one.choices[0]
        missing = tuple(one for one in self.tool.parameters if one.required and one.path not in self.found)
        others = [
            _nested({**self.found, one.path: value}) for one, values in self.spread for value in values[1:]
        ]
        return Filled(_nested(self.found), missing, tuple(others))

    def open(self) -> list[Parameter]:
        """What is still to be filled, required ones first."""
        left = [one for one in self.tool.parameters if one.path not in self.found]
        return sorted(left, key=lambda one: not one.required)

    def _take(self, parameter: Parameter, value: Any, start: int, end: int) -> bool:
        if value is None or value == "":
            return False
        self.found[parameter.path] = value
        self.sentence.use(start, end)
        return True

    def _requests(self) -> None:
        """A tool that passes a request on gets all of it."""
        passes_on = self.tool.given is not None or self.tool.finds_tools
        for one in self.open():
            asks = one.name.lower() in REQUEST_NAMES and one.takes_text and one.required
            if asks and (passes_on or one.name.lower() not in QUERY_NAMES):
                self.found[one.path] = self.whole or self.sentence.text.strip()
                if passes_on:
                    self.sentence.use(0, len(self.sentence.text))

    def _pairs(self) -> None:
        """`key: value` and `key=value`, where the key is the name of a parameter."""
        names = {name_key(one.name): one for one in self.open()}
        spelled = sorted({_spelled(one.words) for one in names.values() if one.words}, key=len, reverse=True)
        if not spelled:
            return
        text = self.sentence.text
        keys = list(re.finditer(rf"(?<![\w@#/.-])({'|'.join(spelled)})\s*[:=](?!//)\s*", text, re.IGNORECASE))
        for key, after in zip(keys, [*keys[1:], None], strict=False):
            parameter = names.get(name_key(key.group(1)))
            if parameter is None or self.sentence.is_used(key.start(), key.end()):
                continue
            quoted = next((one for one in self.sentence.values if one.start == key.end()), None)
            if quoted is not None and (quoted.kind == "quoted" or not parameter.takes_text):
                value, end = given(parameter, [quoted], self.today), quoted.end
            else:
                end = after.start() if after else len(text)
                raw = re.split(r"[;\n]", text[key.end() : end])[0]
                end = key.end() + len(raw)
                value = self._said(parameter, re.sub(r"[\s,]+(?:and)?\s*$", "", raw))
            if self._take(parameter, value, key.start(), end):
                names.pop(name_key(parameter.name))

    def _said(self, parameter: Parameter, text: str) -> Any:
        if parameter.takes_many and not {"string", "integer", "number"} & parameter.types:
            pieces = [coerced(parameter, piece) for piece in re.split(r"\s*,\s*|\s+and\s+", text) if piece]
            return [piece for piece in pieces if piece is not None] or None
        return coerced(parameter, text)

    def _listed(self) -> None:
        """A value that some text lists as possible, named in the clause in any spelling, whole or in part."""
        if not self.known:
            return
        for one in self.open():
            values = fitting(one, self.known, self.tool.noun_stems) if one.takes_text else ()
            if not any(value.heading for value in values) and not one.is_identifier:
                continue
            if hit := self._mentioned(values):
                value, start, end = hit
                self._take(one, [value] if "string" not in one.types else value, start, end)

    def _mentioned(self, values: Sequence[Listed]) -> tuple[str, int, int] | None:
        free = [word for word in self.sentence.words if not self.sentence.is_used(word.start, word.end)]
        for word in free:
            for value in values:
                if name_key(word.text) == name_key(value.value):
                    return value.value, word.start, word.end
        for word in free:
            for value in values:
                if stem(word.low) in {stem(part) for part in parts(value.value)} and len(word.low) > 2:
                    return value.value, word.start, word.end
                if {stem(part) for part in parts(word.low)} & {
                    stem(value.value.lower())
                } and "_" in word.text:
                    return value.value, word.start, word.end
        return None

    def _named(self) -> None:
        """A value behind the name of its parameter: `title Login broken`, `in project xyne`."""
        for one in sorted(self.open(), key=lambda one: -len(one.words)):
            if one.choices or "boolean" in one.types or not one.core:
                continue
            for place, end in self._mentions(one):
                if self._value_behind(one, place, end):
                    break

    def _mentions(self, parameter: Parameter) -> list[tuple[int, int]]:
        """Where the name of the parameter stands in the clause: start, and end of its last word."""
        words = [word for word in self.sentence.words if not self.sentence.is_used(word.start, word.end)]
        found: list[tuple[int, int]] = []
        length = len(parameter.core)
        for place in range(len(words) - length + 1):
            run = words[place : place + length]
            if all(_is_one(stem(word.low), core) for word, core in zip(run, parameter.core, strict=True)):
                if run[0].low in ROLES or (place == 0 and is_verb(run[0].low)):
                    continue
                found.append((run[0].start, run[-1].end))
        return found

    def _value_behind(self, parameter: Parameter, start: int, end: int) -> bool:
        place = end
        for word in [word for word in self.sentence.words if word.start >= end][:3]:
            if word.low not in _LINKS or self.sentence.is_used(word.start, word.end):
                break
            place = word.end
        next_word = next((word for word in self.sentence.words if word.start >= place), None)
        if next_word is None or not re.fullmatch(
            r"[\s\"“'‘«`#@:-]*", self.sentence.text[place : next_word.start]
        ):
            return False
        value = next((one for one in self.sentence.free_values() if 0 <= one.start - place <= 2), None)
        if value is not None and (value.kind != "name" or not parameter.takes_text):
            many = self.sentence.chain(value) if parameter.takes_many else [value]
            if suits(parameter, value, self.sentence) <= 0 and value.kind not in ("quoted", "code", "number"):
                return False
            return self._take(parameter, given(parameter, many, self.today), start, many[-1].end)
        # A word of the tool's own name is more likely the thing itself: `list orders waiting`.
        if not parameter.takes_text or parameter.format or set(parameter.core) & self.tool.name_stems:
            return False
        stops = [word for one in self.open() if one is not parameter for word in one.words if len(word) > 2]
        text, first, last = self.sentence.run(place, stops)
        if not text or text.lower() in PRONOUNS or first - place > 6 or is_verb(text):
            return False
        return self._take(parameter, self._said(parameter, text), start, last)

    def _choices(self) -> None:
        stems = [(stem(word.low), word) for word in self.sentence.words]
        for one in self.open():
            hits: list[Any] = []
            for choice in one.choices:
                wanted = [stem(part) for part in parts(str(choice))[: str(choice).count("_") + 3]]
                wanted = (
                    wanted[:-1] if len(wanted) > 1 and wanted[-1] == stem(name_key(str(choice))) else wanted
                )
                said = [word for found, word in stems if found in wanted]
                is_said = wanted and set(wanted) <= {found for found, _ in stems}
                if is_said and not one.required and set(wanted) <= self.tool.name_stems:
                    continue  # said of the tool, not of the value
                if is_said and not all(self.sentence.is_used(word.start, word.end) for word in said):
                    hits.append(choice)
            if hits:
                longest = max(hits, key=lambda choice: len(str(choice)))
                self.found[one.path] = hits if one.takes_many and len(one.types) == 1 else longest
                if not one.takes_many and not set(one.core) & self.tool.name_stems:
                    for found, word in stems:
                        if (
                            found in {stem(part) for part in parts(str(longest))}
                            and word.low != self.sentence.verb
                        ):
                            self.sentence.use(word.start, word.end)

    def _switches(self) -> None:
        """A boolean whose name occurs is on; behind a negation it is off."""
        words = [word.low for word in self.sentence.words]
        stems = [stem(word) for word in words]
        for one in self.open():
            wanted = [stem(word) for word in one.words if word not in _WEAK]
            if "boolean" not in one.types or not wanted or not set(wanted) <= set(stems):
                continue
            if set(wanted) <= self.tool.noun_stems:
                continue
            place = stems.index(wanted[0])
            self.found[one.path] = not set(words[max(0, place - 3) : place]) & NEGATIONS

    def _typed(self) -> None:
        """Each typed value to the parameter that it suits best, the surest pair first."""
        self._split_names()
        while True:
            pairs = [
                (suits(one, value, self.sentence), -value.start, one, value)
                for value in self.sentence.free_values()
                if value.kind not in ("quoted", "code", "name")
                for one in self.open()
            ]
            pairs = [pair for pair in pairs if pair[0] >= _ENOUGH] or self._last_resort(pairs)
            if not pairs:
                return
            _, _, parameter, value = max(pairs, key=lambda pair: pair[:2])
            self._give(parameter, value)

    def _split_names(self) -> None:
        """`whole/part` to two required names that follow each other, where no path is asked for."""
        texts = [one for one in self.tool.parameters if one.required and one.takes_text]
        if len(texts) != 2 or any(set(one.words) & PATH_WORDS or one.path in self.found for one in texts):
            return
        for value in self.sentence.free_values():
            pieces = str(value.value).split("/")
            if value.kind == "path" and len(pieces) == 2 and all(pieces):
                for parameter, piece in zip(texts, pieces, strict=True):
                    self._take(parameter, self._said(parameter, piece), value.start, value.end)
                return

    def _last_resort(
        self, pairs: list[tuple[float, int, Parameter, Value]]
    ) -> list[tuple[float, int, Parameter, Value]]:
        """One value and one required parameter that can take it: they belong together."""
        can = [pair for pair in pairs if pair[0] > 0.2 and pair[2].required]
        return can if len({id(pair[2]) for pair in can}) == 1 else []

    def _give(self, parameter: Parameter, value: Value) -> None:
        chain = self.sentence.chain(value)
        if parameter.takes_many or len(chain) == 1 or value.kind in ("number", "date", "time", "datetime"):
            taken = chain if parameter.takes_many else [value]
            form = given(parameter, taken, self.today)
            if not self._take(parameter, form, taken[0].start, taken[-1].end):
                self.sentence.use(value.start, value.end)
            if value.kind == "date" and parameter.format == "date-time":
                self._add_time(parameter, form)
            return
        rival = [
            one
            for one in self.open()
            if one is not parameter and suits(one, chain[1], self.sentence) > _ENOUGH
        ]
        if rival:
            self._take(parameter, given(parameter, [value], self.today), value.start, value.end)
            return
        forms = [given(parameter, [one], self.today) for one in chain]
        if self._take(parameter, forms[0], chain[0].start, chain[-1].end):
            self.spread.append((parameter, forms))

    def _add_time(self, parameter: Parameter, form: str) -> None:
        time = next((value for value in self.sentence.free_values() if value.kind == "time"), None)
        if time is not None and form:
            moment = Value("datetime", f"{form[:10]}T{time.value}", time.start, time.end)
            self._take(parameter, given(parameter, [moment], self.today), time.start, time.end)

    def _quoted(self) -> None:
        """Quoted text by the word before it, else to what is required, else to what holds text."""
        for value in [one for one in self.sentence.free_values() if one.kind == "quoted"]:
            options = [one for one in self.open() if one.takes_text and not one.format]
            if not options:
                return
            best = max(options, key=lambda one: self._suits_quoted(one, value))
            self._take(best, given(best, [value], self.today), value.start, value.end)

    def _suits_quoted(self, parameter: Parameter, value: Value) -> float:
        words = self.sentence.before(value.start, 3)
        near = {stem(word) for word in words}
        score = 2.0 if near & set(parameter.core) else 0.0
        score += next((1.0 for word in words[:2] if word in ROLES and roles_of(parameter.words, word)), 0.0)
        score += 0.8 * parameter.required - 0.6 * parameter.is_identifier
        score += 0.3 * bool(set(parameter.words) & (TEXT_NAMES | TITLE_NAMES | QUERY_NAMES))
        long = len(str(value.value).split()) > 8
        return score + 0.3 * bool(set(parameter.words) & (TEXT_NAMES if long else TITLE_NAMES | QUERY_NAMES))

    def _phrases(self) -> None:
        """What a preposition announces, to the parameter whose part that is."""
        while True:
            pairs = [
                (self._suits_phrase(one, phrase), -phrase.start, one, phrase)
                for phrase in self.sentence.phrases()
                for one in self.open()
                if one.takes_text and not one.format
            ]
            pairs = [pair for pair in pairs if pair[0] >= (0.5 if pair[2].required else 0.6)]
            if not pairs:
                return
            _, _, parameter, phrase = max(pairs, key=lambda pair: pair[:2])
            if not self._take(
                parameter, self._said(parameter, self._bare(parameter, phrase)), phrase.start, phrase.end
            ):
                self.sentence.use(phrase.start, phrase.end)

    def _suits_phrase(self, parameter: Parameter, phrase: Phrase) -> float:
        stems = [stem(word) for word in parts(phrase.text)]
        known = self.tool.noun_stems
        if not self._bare(parameter, phrase) or all(one in known or len(one) < 2 for one in stems):
            return 0.0
        score = 0.35 * parameter.required
        if phrase.preposition in parameter.words:
            score += 0.8
        elif roles_of(parameter.words, phrase.preposition) or (
            any(_is_one(one, core) for one in stems for core in parameter.core) and len(stems) > 1
        ):
            score += 0.6
        elif {*ROLES[phrase.preposition]} & {word for word in parameter.hints if len(word) > 3}:
            score += 0.2
        is_query = set(parameter.words) & QUERY_NAMES and is_search(self.sentence.verb)
        score += 0.2 if is_query and phrase.preposition in ("for", "about", "on", "with") else 0.0
        if parameter.is_identifier and " " in phrase.text:
            score -= 0.3
        return score

    def _bare(self, parameter: Parameter, phrase: Phrase) -> str:
        """Without the name of the parameter where it stands beside its value: `the xyne project`."""
        words = phrase.text.split()
        if len(words) > 1 and any(_is_one(stem(words[-1].lower()), core) for core in parameter.core):
            words = words[:-1]
        elif len(words) > 1 and any(_is_one(stem(words[0].lower()), core) for core in parameter.core):
            words = words[1:]
        return " ".join(words)

    def _rest(self) -> None:
        """What nothing claimed: to the texts that are required, or to what a search looks for."""
        required = [one for one in self.open() if one.required and one.takes_text and not one.format]
        searched = [
            one
            for one in self.open()
            if one.takes_text and set(one.words) & QUERY_NAMES and is_search(self.sentence.verb)
        ]
        wanted = required or searched[:1]
        if not wanted:
            return
        rest = self.sentence.residue(self._own_words())
        if len(wanted) > 1 and len(rest) == 1:
            rest = self._cut(rest[0], len(wanted)) or rest
        for parameter, phrase in zip(wanted, rest, strict=False):
            held = phrase if self._is_wordy(parameter) else self._name_in(phrase)
            if self._is_wordy(parameter) or len(held.text.split()) <= _MOST_WORDS:
                self._take(parameter, self._said(parameter, held.text), held.start, held.end)

    def _own_words(self) -> frozenset[str]:
        """Words that speak of the tool and not of its values."""
        words = set(self.tool.name_stems) | self.tool.noun_stems
        words |= {core for one in self.tool.parameters for core in one.core}
        return frozenset(words | {stem(self.sentence.verb)})

    def _cut(self, phrase: Phrase, count: int) -> list[Phrase]:
        """As many words as there are places for them: each word is one value."""
        known = self._own_words() | {stem(word) for word in parts(self.tool.summary)}
        words = [word for word in self.sentence.words if phrase.start <= word.start < phrase.end]
        words = [word for word in words if stem(word.low) not in known and word.low not in ROLES]
        return [Phrase("", word.text, word.start, word.end) for word in words] if len(words) == count else []

    def _is_wordy(self, parameter: Parameter) -> bool:
        words = set(parameter.words)
        return not parameter.is_identifier and bool(words & (TEXT_NAMES | TITLE_NAMES | QUERY_NAMES))

    def _name_in(self, phrase: Phrase) -> Phrase:
        """The name or code in it, if there is one."""
        for value in self.sentence.free_values():
            if value.kind in ("name", "code") and phrase.start <= value.start and value.end <= phrase.end:
                return Phrase("", str(value.value), value.start, value.end)
        return phrase


def _is_one(word: str, core: str) -> bool:
    shorter = min(len(word), len(core))
    return word == core or (shorter >= _CLOSE_NAMES and (word.startswith(core) or core.startswith(word)))


def _spelled(words: Sequence[str]) -> str:
    return "[ _-]?".join(re.escape(word) for word in words)


def _nested(found: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for path, value in found.items():
        table = arguments
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value
    return arguments
