"""How people write a hook: `secrets mask`, `personal_data card iban`, `webhook https://guard.example.com/check`.

The first word names the hook; the others are options, or values that the hook knows. Pure words.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

Moment = Literal["before", "after", "listed"]
Action = Literal["mask", "refuse", "ask", "note"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_TIMEOUT = 2.0
_LONGEST_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class HookRule:
    """One hook as it was asked for. No `moments`: all that it has; no `action`: as it does by itself.

    One that fails or takes longer than `timeout` seconds refuses, unless it `fails_open`.
    """

    kind: str
    values: tuple[str, ...] = ()
    action: Action | None = None
    moments: frozenset[Moment] = frozenset()
    timeout: float = _TIMEOUT
    fails_open: bool = False

    @classmethod
    def read(cls, text: str) -> "HookRule":
        """`ValueError` for what cannot be read."""
        kind, *words = text.split() or [""]
        if not kind.isidentifier():
            raise ValueError(f"a hook begins with its name, as in `secrets mask`, not with {kind[:60]!r}")
        values: list[str] = []
        actions: list[Action] = []
        moments: set[Moment] = set()
        timeout, fails_open = _TIMEOUT, False
        for word in words:
            if word in _ACTIONS:
                actions.append(word)
            elif word in MOMENTS:
                moments.add(word)
            elif word.startswith("timeout="):
                timeout = _seconds(word.removeprefix("timeout="))
            elif word in ("open", "closed"):
                fails_open = word == "open"
            else:
                values.append(word)
        if len(actions) > 1:
            raise ValueError(f"{kind} does one of {', '.join(_ACTIONS)}, not several")
        return cls(
            kind, tuple(values), actions[0] if actions else None, frozenset(moments), timeout, fails_open
        )

    def is_at(self, moment: Moment) -> bool:
        return not self.moments or moment in self.moments


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_TIMEOUT:  # nan is not
        raise ValueError(f"timeout= takes seconds, more than 0 and at most {_LONGEST_TIMEOUT:g}")
    return seconds


def _readable(rules: tuple[str, ...]) -> tuple[str, ...]:
    for rule in rules:
        HookRule.read(rule)
    return rules


HookRules = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=2000)], ...],
    Field(max_length=50),
    AfterValidator(_readable),
]
"""As a workspace and a connector have them: each can be read."""


@dataclass(frozen=True, slots=True)
class BundleRules:
    """The rules of one bundle, and whose they are: without a `keeper` the operator answers for them."""

    texts: tuple[str, ...] = ()
    keeper: str = ""
