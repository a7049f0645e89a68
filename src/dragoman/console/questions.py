"""What agents ask of people, for any page that shows it: exact arguments, answers read from a form. Pure."""

import json
from collections.abc import Mapping
from typing import Any
from unicodedata import category

from dragoman.console.schema_forms import SchemaForm, form_of, read_json
from dragoman.errors import InvalidArguments
from dragoman.run import Question

_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
_SIMPLE = ("text", "long", "number", "integer", "date", "moment", "choice", "fixed", "json")


def exact(arguments: Mapping[str, Any]) -> str:
    """As JSON in which every character can be seen: what hides or turns text round is written as its code."""
    text = json.dumps(dict(arguments), ensure_ascii=False, indent=2)
    return "".join(json.dumps(one)[1:-1] if one != "\n" and category(one) in _UNSEEN else one for one in text)


def form_for(question: Question, draft: Mapping[str, str] | None = None) -> SchemaForm | None:
    """None where text is wanted, or what is wanted is too deep for a short form and typed as JSON."""
    if question.fields is None:
        return None
    form = form_of(question.fields, draft or {})
    is_simple = form.fields and all(field.kind in _SIMPLE for field in form.fields)
    return form if is_simple else None


def answer_in(question: Question, draft: Mapping[str, str]) -> Any:
    """What the person sent, as the run takes it."""
    form, text = form_for(question, draft), draft.get("answer", "").strip()
    if question.fields is None:
        return text
    if form is None:
        try:
            return read_json(text)
        except ValueError as error:
            raise InvalidArguments(
                f"this is not valid JSON: {error}", hint="mend it and send again"
            ) from None
    if form.problems:
        words = "; ".join(f"{one.shape.title or one.name}: {one.problem}" for one in form.problems)
        raise InvalidArguments(words, hint="fill these in and send again")
    return form.arguments
