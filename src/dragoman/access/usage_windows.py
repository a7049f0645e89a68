"""The windows in which use is counted: fixed, by UTC, the same in every process. Knows no user."""

from collections.abc import Mapping

SECONDS: Mapping[str, int] = {
    "calls_per_minute": 60,
    "calls_per_hour": 3600,
    "tokens_per_day": 86400,
    "cost_per_day": 86400,
}
"""How long the window of each measure is."""


def window_of(measure: str, now: float) -> int:
    return int(now // SECONDS[measure])


def end_of(measure: str, now: float) -> float:
    """When the window ends, as a time since the epoch."""
    return (window_of(measure, now) + 1) * SECONDS[measure]


def user_subject(user: str) -> str:
    return f"user:{user}"


def connector_subject(connector_id: str) -> str:
    return f"connector:{connector_id}"


def shown(measure: str, limit: float) -> str:
    """A bound as a person says it."""
    if measure == "cost_per_day":
        return f"${limit:g} a day"
    what, _, per = measure.partition("_per_")
    return f"{limit:,.0f} {what} {'an' if per == 'hour' else 'a'} {per}"
