"""A change that meets somebody else's: made again on what they wrote, unless both changed the same.

Nobody's change is overwritten. Who changes other fields does not notice; who changes the same hears of it.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from dragoman.connector import Connector
from dragoman.errors import Conflict, Outdated

Noun = TypeVar("Noun")
_TRIES = 5
# What the store keeps of a record's life, and what a server told of itself, is nobody's wish.
_UNWISHED = frozenset({"revision", "updated_at", "last_used_at"})
_LEARNED = frozenset({"era", "instructions", "server"})


async def revised(
    before: Noun,
    change: Callable[[Noun], Awaitable[Noun]],
    write: Callable[[Noun], Awaitable[None]],
    read: Callable[[Noun], Awaitable[Noun]],
) -> tuple[Noun, Noun]:
    """What was there and what is now; nothing is written where they are equal.

    `change` checks and makes the new one, `write` raises `Outdated` where another was faster, and `read` has
    the newest then (`NotFound` when it is gone).
    """
    for _ in range(_TRIES):
        after = await change(before)
        if after == before:
            return before, before
        try:
            await write(after)
        except Outdated:
            newest = await read(before)
            check_apart(before, after, newest)
            before = newest
        else:
            return before, after
    raise Outdated("others are changing this all the time: nothing was written", hint="try again in a moment")


def check_apart(before: object, wanted: object, newest: object) -> None:
    """`Conflict` where somebody else has set a field that is wanted otherwise here."""
    old, ours, theirs = _fields(before), _fields(wanted), _fields(newest)
    nothing = object()
    both = [
        name
        for name in sorted({*old, *ours, *theirs})
        if ours.get(name, nothing) != old.get(name, nothing) != theirs.get(name, nothing)
        and ours.get(name, nothing) != theirs.get(name, nothing)
    ]
    if both:
        raise Conflict(
            f"somebody else has changed {', '.join(both)} a moment ago: nothing was written",
            hint="look at it as it is now, then change it again",
        )


def _fields(noun: object, path: str = "") -> Mapping[str, Any]:
    """What people set, by name; of settings that have settings, those."""
    if isinstance(noun, BaseModel):
        values = [(name, getattr(noun, name)) for name in type(noun).model_fields]
    else:
        values = [(item.name, getattr(noun, item.name)) for item in dataclasses.fields(cast("Any", noun))]
    left_out = _UNWISHED | (_LEARNED if isinstance(noun, Connector) else frozenset[str]())
    found: dict[str, Any] = {}
    for name, value in values:
        if name in left_out and not path:
            continue
        if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
            found |= _fields(value, f"{path}{name}.")
        else:
            found[f"{path}{name}"] = value
    return found
