"""Values of a type: choices, switches, and each number, date or address to the parameter it suits best."""

from typing import Any

from dragoman.agents.offline.draft import Draft
from dragoman.agents.offline.grammar import NEGATIONS, word_set
from dragoman.agents.offline.kinds import PATH_WORDS, given, suits
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.values import Value
from dragoman.catalog.search.words import name_key, parts, stem

_ENOUGH = 0.5
_WEAK = word_set("only is has include with show enable flag also set use be")


def take_choices(draft: Draft) -> None:
    stems = [(stem(word.low), word) for word in draft.sentence.words]
    for one in draft.open():
        hits: list[Any] = []
        for choice in one.choices:
            wanted = [stem(part) for part in parts(str(choice))[: str(choice).count("_") + 3]]
            wanted = wanted[:-1] if len(wanted) > 1 and wanted[-1] == stem(name_key(str(choice))) else wanted
            said = [word for found, word in stems if found in wanted]
            is_said = wanted and set(wanted) <= {found for found, _ in stems}
            if is_said and not one.required and set(wanted) <= draft.tool.name_stems:
                continue  # said of the tool, not of the value
            if is_said and not all(draft.sentence.is_used(word.start, word.end) for word in said):
                hits.append(choice)
        if hits:
            longest = max(hits, key=lambda choice: len(str(choice)))
            draft.found[one.path] = hits if one.takes_many and len(one.types) == 1 else longest
            if not one.takes_many and not set(one.core) & draft.tool.name_stems:
                for found, word in stems:
                    if (
                        found in {stem(part) for part in parts(str(longest))}
                        and word.low != draft.sentence.verb
                    ):
                        draft.sentence.use(word.start, word.end)


def take_switches(draft: Draft) -> None:
    """A boolean whose name occurs is on; behind a negation it is off."""
    words = [word.low for word in draft.sentence.words]
    stems = [stem(word) for word in words]
    for one in draft.open():
        wanted = [stem(word) for word in one.words if word not in _WEAK]
        if "boolean" not in one.types or not wanted or not set(wanted) <= set(stems):
            continue
        if set(wanted) <= draft.tool.noun_stems:
            continue
        place = stems.index(wanted[0])
        draft.found[one.path] = not set(words[max(0, place - 3) : place]) & NEGATIONS


def take_typed(draft: Draft) -> None:
    """Each typed value to the parameter that it suits best, the surest pair first."""
    _split_names(draft)
    while True:
        pairs = [
            (suits(one, value, draft.sentence), -value.start, one, value)
            for value in draft.sentence.free_values()
            if value.kind not in ("quoted", "code", "name")
            for one in draft.open()
        ]
        pairs = [pair for pair in pairs if pair[0] >= _ENOUGH] or _last_resort(draft, pairs)
        if not pairs:
            return
        _, _, parameter, value = max(pairs, key=lambda pair: pair[:2])
        _give(draft, parameter, value)


def _split_names(draft: Draft) -> None:
    """`whole/part` to two required names that follow each other, where no path is asked for."""
    texts = [one for one in draft.tool.parameters if one.required and one.takes_text]
    if len(texts) != 2 or any(set(one.words) & PATH_WORDS or one.path in draft.found for one in texts):
        return
    for value in draft.sentence.free_values():
        pieces = str(value.value).split("/")
        if value.kind == "path" and len(pieces) == 2 and all(pieces):
            for parameter, piece in zip(texts, pieces, strict=True):
                draft.take(parameter, draft.said(parameter, piece), value.start, value.end)
            return


def _last_resort(
    draft: Draft, pairs: list[tuple[float, int, Parameter, Value]]
) -> list[tuple[float, int, Parameter, Value]]:
    """One value and one required parameter that can take it: they belong together."""
    can = [pair for pair in pairs if pair[0] > 0.2 and pair[2].required]
    return can if len({id(pair[2]) for pair in can}) == 1 else []


def _give(draft: Draft, parameter: Parameter, value: Value) -> None:
    chain = draft.sentence.chain(value)
    if parameter.takes_many or len(chain) == 1 or value.kind in ("number", "date", "time", "datetime"):
        taken = chain if parameter.takes_many else [value]
        form = given(parameter, taken, draft.today)
        if not draft.take(parameter, form, taken[0].start, taken[-1].end):
            draft.sentence.use(value.start, value.end)
        if value.kind == "date" and parameter.format == "date-time":
            _add_time(draft, parameter, form)
        return
    rival = [
        one for one in draft.open() if one is not parameter and suits(one, chain[1], draft.sentence) > _ENOUGH
    ]
    if rival:
        draft.take(parameter, given(parameter, [value], draft.today), value.start, value.end)
        return
    forms = [given(parameter, [one], draft.today) for one in chain]
    if draft.take(parameter, forms[0], chain[0].start, chain[-1].end):
        draft.spread.append((parameter, forms))


def _add_time(draft: Draft, parameter: Parameter, form: str) -> None:
    time = next((value for value in draft.sentence.free_values() if value.kind == "time"), None)
    if time is not None and form:
        moment = Value("datetime", f"{form[:10]}T{time.value}", time.start, time.end)
        draft.take(parameter, given(parameter, [moment], draft.today), time.start, time.end)
