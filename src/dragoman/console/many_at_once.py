"""The same done to many that were chosen in a list, by the hub's own methods, and what is said of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dragoman.errors import DragomanError, InvalidArguments
from dragoman.hub import BoundHub

_AT_ONCE = 8
_MOST_TOLD = 3


async def do_to_many(
    hub: BoundHub, names: Sequence[str], noun: str, deed: Callable[[str], Awaitable[Any]]
) -> Mapping[str, str]:
    """Why it was not done, of those to which it was not: what may not be done to one may not to many."""
    if not names:
        raise InvalidArguments(f"no {noun} is chosen", hint="tick those that are meant")
    gate, failed = asyncio.Semaphore(_AT_ONCE), dict[str, str]()

    async def one(name: str) -> None:
        async with gate:
            try:
                await deed(name)
            except DragomanError as error:
                failed[name] = hub.without_secrets(error.message)

    await asyncio.gather(*map(one, names))
    return failed


def told_of_many(names: Sequence[str], noun: str, word: str, failed: Mapping[str, str]) -> str:
    parts: list[str] = []
    done = [name for name in names if name not in failed]
    if done:
        parts.append(f"{f'{len(done)} {noun}s' if len(done) > 1 else f'1 {noun}'} {word}.")
    if failed:
        causes = [*dict.fromkeys(failed.values())][:_MOST_TOLD]
        parts.append(f"{len(failed)} not: {'; '.join(causes)}.")
    return " ".join(parts)
