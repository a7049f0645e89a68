"""What agents and servers ask of people, for any page that shows it; answers read from a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dragoman.console.schema_forms import FormControl, SchemaForm, draft_of, form_of, read_json
from dragoman.errors import InvalidArguments
from dragoman.hub import BoundHub
from dragoman.run import Question

_PLAIN = ("string", "integer", "number", "boolean")
_SIMPLE = ("text", "long", "number", "integer", "date", "moment", "choice", "fixed", "json")


@dataclass(frozen=True, slots=True)
class OfferedCall:
    """One of several calls that a person chooses from, as a form with what could be filled in."""

    title: str
    about: str
    form: SchemaForm

    @property
    def first(self) -> list[FormControl]:
        return [field for field in self.form.fields if field.is_required or field.text]

    @property
    def more(self) -> list[FormControl]:
        return [field for field in self.form.fields if not field.is_required and not field.text]


def form_for(question: Question, draft: Mapping[str, str] | None = None) -> SchemaForm | None:
    """None where text or a choice is wanted, or what is too deep for a short form and typed as JSON."""
    if question.fields is None or question.calls:
        return None
    form = form_of(question.fields, draft or {})
    is_simple = form.fields and all(field.kind in _SIMPLE for field in form.fields)
    return form if is_simple else None


def calls_for(question: Question) -> Sequence[OfferedCall]:
    return [
        OfferedCall(str(one.get("title", "")), str(one.get("description", "")), _call_form(one))
        for one in question.calls
    ]


async def answer_or_decline(hub: BoundHub, question: Question, draft: Mapping[str, str]) -> Question:
    """Writes what the person sent: an answer, or that they give none."""
    if "decline" in draft:
        return await hub.runs.decline(question.id)
    return await hub.runs.answer(question.id, {} if question.url else answer_in(question, draft))


def answer_in(question: Question, draft: Mapping[str, str]) -> Any:
    """What the person sent, as the run takes it."""
    form, text = form_for(question, draft), draft.get("answer", "").strip()
    place = draft.get("call", "")
    if place.isdecimal() and int(place) < len(question.calls):
        chosen = question.calls[int(place)]
        form = _call_form(chosen, draft)
        _check(form)
        return {"tool": chosen["properties"]["tool"]["const"], "arguments": form.arguments}
    if question.takes_text:
        return text
    if form is None:
        try:
            return read_json(text)
        except ValueError as error:
            raise InvalidArguments(
                f"this is not valid JSON: {error}", hint="mend it and send again"
            ) from None
    _check(form)
    return form.arguments


def _check(form: SchemaForm) -> None:
    if form.problems:
        words = "; ".join(f"{one.shape.title or one.name}: {one.problem}" for one in form.problems)
        raise InvalidArguments(words, hint="fill these in and send again")


def _call_form(call: Mapping[str, Any], draft: Mapping[str, str] | None = None) -> SchemaForm:
    """With the simplest control for each value; a value that has none is typed as JSON."""
    schema = cast("Mapping[str, Any]", call["properties"]["arguments"])
    given: Mapping[str, Any] = schema.get("default") or {}
    fields = form_of(schema, {}).fields
    simple = {**schema, "properties": {one.name: _simple(one, schema, given.get(one.name)) for one in fields}}
    return form_of(simple, draft if draft is not None else draft_of(simple, given) or {})


def _simple(field: FormControl, schema: Mapping[str, Any], value: Any) -> Any:
    if field.kind in _SIMPLE:
        return schema["properties"][field.name]
    about = {"title": field.shape.title, "description": field.shape.description}
    kinds = [one.schema for one in field.shape.variants if one.schema.get("type") in _PLAIN]
    return {**kinds[0], **about} if kinds and not isinstance(value, list | dict) else about
