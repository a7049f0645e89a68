"""Bounds of a tier as a form has them: what they are called, and what was filled in."""

from collections.abc import Mapping
from typing import Any, cast

from dragoman.console.submitted_form import SubmittedForm
from dragoman.errors import InvalidArguments
from dragoman.hub.preferences import BOUNDS
from dragoman.people import Bounds

WORDS = {
    "calls_per_minute": "calls a minute",
    "calls_per_hour": "calls an hour",
    "tokens_per_day": "tokens a day",
    "cost_per_day": "dollars a day",
    "max_concurrency": "calls at once",
    "max_connectors_per_thread": "connectors in a thread",
}


def read_bounds(form: SubmittedForm) -> dict[str, float | None]:
    """Empty takes a bound away."""
    given: dict[str, float | None] = {}
    for name in BOUNDS:
        text = form.text(name)
        try:
            number = float(text) if text else None
        except ValueError:
            raise InvalidArguments(f"{WORDS[name]}: {text[:40]!r} is no number") from None
        whole = number is not None and number.is_integer() and name != "cost_per_day"
        given[name] = int(number) if number is not None and whole else number
    return given


def bounds_in(form: SubmittedForm) -> Bounds:
    """The same as a tier keeps them."""
    numbers = {name: value for name, value in read_bounds(form).items() if value is not None}
    return Bounds(**cast("Mapping[str, Any]", numbers))
