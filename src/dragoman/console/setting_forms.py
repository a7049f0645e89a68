"""Settings as fields of a form, and what was typed as their values. Pure; knows no noun.

A field shows what somebody chose; one that is empty is at its default, which it says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from dragoman.errors import InvalidConfig
from dragoman.setting import Described, read_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """What a template draws: a select where there are `options`, an area where there are `rows`."""

    name: str
    label: str
    hint: str
    value: str
    placeholder: str = ""
    options: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    kind: str = "text"
    shown_for: str = ""
    is_advanced: bool = False
    most: str = ""
    step: str = ""
    suggestions: tuple[str, ...] = ()
    chosen: frozenset[str] | None = None


def form_field(one: Described, value: Any) -> FormField:
    """`value` is None where nobody chose one. Words of a list that are known are boxes to tick: `chosen`."""
    hint, default = one.setting.meaning, one.text(one.default)
    if one.kind == "list" and one.choices:
        chosen = frozenset(map(str, one.default if value is None else value))
        options = tuple((choice, one.setting.words.get(choice, "")) for choice in one.choices)
        return FormField(name=one.key, label=one.label, hint=hint, value="", options=options, chosen=chosen)
    if one.kind == "list":
        hint += " One in a line." if one.setting.rows else " Several are separated by spaces."
    if one.kind == "table":
        hint += " One in a line."
    if one.kind == "moment":
        hint += " As 12h, 30d or 8w from now, or a date."
    return FormField(
        name=one.key,
        label=one.label,
        hint=hint,
        value=typed(one, value),
        placeholder=one.setting.example or default,
        options=_options(one),
        rows=2 if one.kind == "table" else one.setting.rows,
        shown_for=shown_for(one),
        is_advanced=one.setting.advanced,
    )


def noun_fields(
    described: Iterable[Described],
    noun: object | None,
    above: Mapping[str, float | None] | None = None,
    **suggestions: Iterable[str],
) -> list[FormField]:
    """Fields for the settings of a noun, or of a new one. A limit says what the tier `above` allows."""
    fields: list[FormField] = []
    for one in described:
        field = form_field(one, None if noun is None else chosen_value(one, noun))
        if one.kind in ("whole", "number"):
            most = (above or {}).get(one.path[-1])
            field = replace(
                field,
                kind="number",
                step="1" if one.kind == "whole" else "any",
                most="" if most is None else f"{most:.15g}",
                placeholder="no limit",
                hint=field.hint if most is None else f"{field.hint} At most {most:,g}, from above.",
            )
        fields.append(replace(field, suggestions=tuple(suggestions.get(one.key, ()))))
    return fields


def chosen_value(one: Described, noun: object) -> Any:
    value = one.of(noun)
    return value if one.is_chosen(value) else None


def noun_changes(form: Mapping[str, str], described: Iterable[Described], noun: object | None) -> Any:
    """What was filled in and differs, in the form that the hub takes; None sets back."""
    described = tuple(described)
    before: dict[str, Any] = {}
    for one in described if noun is not None else ():
        _put(before, one, chosen_value(one, noun))
    return changes_in(form, described, before)


def shown_for(one: Described) -> str:
    """The classes by which the style sheet hides what does not apply."""
    ways, when = one.setting.ways, one.setting.when
    by = ["by", *(f"by-{way}" for way in ways)] if ways else []
    return " ".join(by + (["when", *(f"when-{word}" for word in when)] if when else []))


def _options(one: Described) -> tuple[tuple[str, str], ...]:
    choices = ("yes", "no") if one.kind == "switch" else one.choices
    if not choices:
        return ()
    words, default = one.setting.words, typed(one, one.default)
    unset = words.get("") or f"{words.get(default, default) or 'not set'} (default)"
    return (("", unset), *((choice, words.get(choice, choice)) for choice in choices))


def typed(one: Described, value: Any) -> str:
    """A value as it would be typed into its field."""
    if one.kind == "table":
        words = cast("Mapping[str, str]", value or {})
        sign = ": " if one.key == "headers" else "="
        return "\n".join(f"{name}{sign}{word}" for name, word in words.items())
    if one.kind == "list":
        return "" if value is None else ("\n" if one.setting.rows else " ").join(one.words_of(value))
    return one.text(value)


def read_value(one: Described, text: str) -> Any:
    """What was typed as a value; None is none, and sets back to the default."""
    text = text.strip()
    if not text:
        return None
    if one.kind == "list":
        if one.setting.rows:
            return one.read_words([line.strip() for line in text.splitlines() if line.strip()])
        return one.read_words(text.replace(",", " ").split())
    if one.kind == "moment":
        return read_moment(text)
    if one.kind == "switch":
        return text == "yes"
    if one.kind in ("number", "whole"):
        try:
            return int(text) if one.kind == "whole" else float(text)
        except ValueError:
            raise InvalidConfig(f"{one.label} must be a number, not {text[:40]!r}") from None
    return text


def changes_in(
    form: Mapping[str, str], described: Iterable[Described], before: Mapping[str, Any]
) -> dict[str, Any]:
    """What differs from what was chosen before, in the form that the hub takes; None sets back."""
    facts: dict[str, Any] = {}
    for one in described:
        if one.key not in form:
            continue
        value, had = read_value(one, form[one.key]), one.found_in(before)
        if typed(one, value) != typed(one, had):
            _put(facts, one, value)
    return facts


def _put(facts: dict[str, Any], one: Described, value: Any) -> None:
    for part in one.path[:-1]:
        facts = facts.setdefault(part, {})
    facts[one.path[-1]] = value
