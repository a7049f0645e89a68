"""What may be set of a tool, checked. Pure; knows neither the tool nor who asks."""

from collections.abc import Iterable
from math import isfinite
from types import EllipsisType
from typing import Any, cast, get_args

from dragoman.connector import Policy
from dragoman.errors import InvalidArguments
from dragoman.names import did_you_mean
from dragoman.scope import Way

_WAYS: tuple[Way, ...] = get_args(Way)
_POLICIES: tuple[Policy, ...] = get_args(Policy)
_SAME_WAYS = {"code_execution_20250825": "code"}
_LONGEST_TTL = 86_400.0
_MOST_COST = 1_000_000.0
_MOST_CAPABILITIES = 50
_LONGEST_CAPABILITY = 100


def checked_settings(
    allowed_callers: Iterable[str] | None,
    approval: str | EllipsisType | None,
    required_capabilities: Iterable[str] | None,
    cost: float | None,
    cache_ttl: float | None,
) -> dict[str, Any]:
    """Only what was given, as the catalog takes it; `InvalidArguments` names what is wrong."""
    settings: dict[str, Any] = {}
    if allowed_callers is not None:
        settings["allowed_callers"] = _ways(allowed_callers)
    if not isinstance(approval, EllipsisType):
        settings["approval"] = _policy(approval)
    if required_capabilities is not None:
        settings["required_capabilities"] = _capabilities(required_capabilities)
    if cost is not None:
        settings["cost"] = _number("cost", cost, _MOST_COST, "dollars a call")
    if cache_ttl is not None:
        settings["cache_ttl"] = _number("cache_ttl", cache_ttl, _LONGEST_TTL, "seconds; 0 is off")
    if not settings:
        raise InvalidArguments(
            "nothing was given to change",
            hint="there are: allowed_callers, approval, required_capabilities, cost, cache_ttl",
        )
    return settings


def _ways(words: Iterable[str]) -> frozenset[Way]:
    ways = _words("allowed_callers", words)
    known = [_SAME_WAYS.get(way, way) for way in ways]
    for way in known:
        if way not in _WAYS:
            raise InvalidArguments(
                f"{way[:60]!r} is no way to call a tool",
                hint=did_you_mean(way[:60], list(_WAYS)) or f"there are: {', '.join(_WAYS)}",
            )
    return frozenset(cast("list[Way]", known))


def _policy(word: str | None) -> Policy | None:
    if word is not None and word not in _POLICIES:
        raise InvalidArguments(
            f"{word[:60]!r} is no approval policy",
            hint=f"there are: {', '.join(_POLICIES)}; null is as above it",
        )
    return word


def _capabilities(words: Iterable[str]) -> frozenset[str]:
    names = _words("required_capabilities", words)
    if len(names) > _MOST_CAPABILITIES:
        raise InvalidArguments(f"a tool can require at most {_MOST_CAPABILITIES} capabilities")
    for name in names:
        if not 0 < len(name) <= _LONGEST_CAPABILITY or not name.isprintable() or " " in name or name == "*":
            raise InvalidArguments(
                f"{name[:60]!r} is no capability",
                hint=f"one word of 1 to {_LONGEST_CAPABILITY} characters, such as 'finance'",
            )
    return frozenset(names)


def _words(field: str, words: Iterable[str]) -> list[str]:
    # A text is a sequence of texts too, and never what was meant.
    given: list[Any] = [words] if isinstance(words, str) else list(words)
    if not all(isinstance(word, str) for word in given):
        raise InvalidArguments(f"{field} must be a list of words")
    return given


def _number(field: str, number: float, most: float, unit: str) -> float:
    if isinstance(number, bool) or not isfinite(number) or not 0 <= number <= most:
        raise InvalidArguments(f"{field} must be a number from 0 to {most:g}", hint=f"in {unit}")
    return float(number)
