"""Values that a bundle fixes, in what comes back: whoever works in the bundle is never shown them.

Comes after all other hooks, whatever they put there. What is short is no secret that could be told from
ordinary words: it stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from dragoman.hook_rule import HookRule
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict
from dragoman.telemetry.redaction import SHORTEST_IN_RESULTS, Redactor

RULE = HookRule("bundle")
_FOUND = "hid a value that the bundle fixes"


class FixedValuesHook(Hook):
    def __init__(self, values: Sequence[str]) -> None:
        self._redactor = Redactor(SHORTEST_IN_RESULTS)
        self._redactor.register(values)

    async def after(self, call: HookedCall, output: Json) -> Verdict | None:
        cleaned = self._redactor.cleaned(output)
        return None if cleaned is output else Verdict(output=cleaned, notes=(_FOUND,), found=_FOUND)


def hidden_values(fixed: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of the fixed values, and of what is inside of them, that are long enough."""
    return tuple(text for text in _leaves(fixed) if len(text) >= SHORTEST_IN_RESULTS)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for one in cast("Mapping[str, Any]", value).values():
            yield from _leaves(one)
    elif isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from _leaves(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
