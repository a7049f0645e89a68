"""Work that is finished once begun, whoever stops waiting for it.

A driver that is cancelled in the middle leaves a thread, a lock or half a protocol behind.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def shielded(method: Method) -> Method:
    """The same method; a cancelled caller waits for its end and then goes."""

    @wraps(method)
    async def finished(*args: Any, **kwargs: Any) -> Any:
        work = asyncio.ensure_future(method(*args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise

    return cast("Method", finished)
