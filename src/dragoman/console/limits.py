"""UserLimits of a tier as a form has them: what they are called, and what was filled in."""

from collections.abc import Mapping
from typing import Any, cast

from dragoman.console.submitted_form import SubmittedForm
from dragoman.errors import InvalidArguments
from dragoman.hub.preferences import LIMITS
from dragoman.people import UserLimits
from dragoman.setting import settings_of

WORDS = {one.name: one.label for one in settings_of(UserLimits)}


def read_limits(form: SubmittedForm) -> dict[str, float | None]:
    """Empty takes a limit away."""
    given: dict[str, float | None] = {}
    for name in LIMITS:
        text = form.text(name)
        try:
            number = float(text) if text else None
        except ValueError:
            raise InvalidArguments(f"{WORDS[name]}: {text[:40]!r} is no number") from None
        whole = number is not None and number.is_integer() and name != "cost_per_day"
        given[name] = int(number) if number is not None and whole else number
    return given


def limits_in(form: SubmittedForm) -> UserLimits:
    """The same as a tier keeps them."""
    numbers = {name: value for name, value in read_limits(form).items() if value is not None}
    return UserLimits(**cast("Mapping[str, Any]", numbers))
