"""Values that the clause gives by name: `key: value`, a name that some text listed, `title Login broken`."""

import re
from collections.abc import Sequence

from dragoman.agents.offline.draft import Draft, is_one
from dragoman.agents.offline.grammar import PRONOUNS, ROLES, is_verb, word_set
from dragoman.agents.offline.kinds import given, suits
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.tools import Listed, fitting
from dragoman.catalog.search.words import name_key, parts, stem

_LINKS = word_set("is are = of to be as called named set equal equals the a an number no contains containing")


def take_pairs(draft: Draft) -> None:
    """`key: value` and `key=value`, where the key is the name of a parameter."""
    names = {name_key(one.name): one for one in draft.open()}
    spelled = sorted({_spelled(one.words) for one in names.values() if one.words}, key=len, reverse=True)
    if not spelled:
        return
    text = draft.sentence.text
    keys = list(re.finditer(rf"(?<![\w@#/.-])({'|'.join(spelled)})\s*[:=](?!//)\s*", text, re.IGNORECASE))
    for key, after in zip(keys, [*keys[1:], None], strict=False):
        parameter = names.get(name_key(key.group(1)))
        if parameter is None or draft.sentence.is_used(key.start(), key.end()):
            continue
        quoted = next((one for one in draft.sentence.values if one.start == key.end()), None)
        if quoted is not None and (quoted.kind == "quoted" or not parameter.takes_text):
            value, end = given(parameter, [quoted], draft.today), quoted.end
        else:
            end = after.start() if after else len(text)
            raw = re.split(r"[;\n]", text[key.end() : end])[0]
            end = key.end() + len(raw)
            value = draft.said(parameter, re.sub(r"[\s,]+(?:and)?\s*$", "", raw))
        if draft.take(parameter, value, key.start(), end):
            names.pop(name_key(parameter.name))


def take_listed(draft: Draft) -> None:
    """A value that some text lists as possible, named in the clause in any spelling, whole or in part."""
    if not draft.known:
        return
    for one in draft.open():
        values = fitting(one, draft.known, draft.tool.noun_stems) if one.takes_text else ()
        if not any(value.heading for value in values) and not one.is_identifier:
            continue
        if hit := _mentioned(draft, values):
            value, start, end = hit
            draft.take(one, [value] if "string" not in one.types else value, start, end)


def _mentioned(draft: Draft, values: Sequence[Listed]) -> tuple[str, int, int] | None:
    free = [word for word in draft.sentence.words if not draft.sentence.is_used(word.start, word.end)]
    for word in free:
        for value in values:
            if name_key(word.text) == name_key(value.value):
                return value.value, word.start, word.end
    for word in free:
        for value in values:
            if stem(word.low) in {stem(part) for part in parts(value.value)} and len(word.low) > 2:
                return value.value, word.start, word.end
            if {stem(part) for part in parts(word.low)} & {stem(value.value.lower())} and "_" in word.text:
                return value.value, word.start, word.end
    return None


def take_named(draft: Draft) -> None:
    """A value behind the name of its parameter: `title Login broken`, `in project xyne`."""
    for one in sorted(draft.open(), key=lambda one: -len(one.words)):
        if one.choices or "boolean" in one.types or not one.core:
            continue
        for place, end in _mentions(draft, one):
            if _value_behind(draft, one, place, end):
                break


def _mentions(draft: Draft, parameter: Parameter) -> list[tuple[int, int]]:
    """Where the name of the parameter stands in the clause: start, and end of its last word."""
    words = [word for word in draft.sentence.words if not draft.sentence.is_used(word.start, word.end)]
    found: list[tuple[int, int]] = []
    length = len(parameter.core)
    for place in range(len(words) - length + 1):
        run = words[place : place + length]
        if all(is_one(stem(word.low), core) for word, core in zip(run, parameter.core, strict=True)):
            if run[0].low in ROLES or (place == 0 and is_verb(run[0].low)):
                continue
            found.append((run[0].start, run[-1].end))
    return found


def _value_behind(draft: Draft, parameter: Parameter, start: int, end: int) -> bool:
    place = end
    for word in [word for word in draft.sentence.words if word.start >= end][:3]:
        if word.low not in _LINKS or draft.sentence.is_used(word.start, word.end):
            break
        place = word.end
    next_word = next((word for word in draft.sentence.words if word.start >= place), None)
    if (
        next_word is None
        or next_word.text in ",;!?"
        or not re.fullmatch(r"[\s\"“'‘«`#@:-]*", draft.sentence.text[place : next_word.start])
    ):
        return False
    value = next((one for one in draft.sentence.free_values() if 0 <= one.start - place <= 2), None)
    own = bool(set(parameter.core) & draft.tool.name_stems)
    if value is not None and (value.kind != "name" or own or not parameter.takes_text):
        many = draft.sentence.chain(value) if parameter.takes_many else [value]
        if suits(parameter, value, draft.sentence) <= 0 and value.kind not in (
            "quoted",
            "code",
            "number",
            "name",
        ):
            return False
        return draft.take(parameter, given(parameter, many, draft.today), start, many[-1].end)
    # A word of the tool's own name is more likely the thing itself: `list orders waiting`.
    if not parameter.takes_text or parameter.format or own:
        return False
    stops = [word for one in draft.open() if one is not parameter for word in one.words if len(word) > 2]
    text, first, last = draft.sentence.run(place, stops)
    if not text or text.lower() in PRONOUNS or first - place > 6 or is_verb(text):
        return False
    return draft.take(parameter, draft.said(parameter, text), start, last)


def _spelled(words: Sequence[str]) -> str:
    return "[ _-]?".join(re.escape(word) for word in words)
