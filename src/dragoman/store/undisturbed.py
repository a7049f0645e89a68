"""Work that is finished once begun, whoever stops waiting for it.

A driver that is cancelled in the middle leaves a thread, a lock or half a protocol behind.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def undisturbed(
    method: Callable[Given, Coroutine[Any, Any, Result]],
) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """The same method; a cancelled caller waits for its end and then goes."""

    @wraps(method)
    async def finished(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        work = asyncio.ensure_future(method(*args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    return finished
