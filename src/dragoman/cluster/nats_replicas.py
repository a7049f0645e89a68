"""How many servers of NATS keep the same: three where there are as many, so that one of them may be lost."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nats.js.errors import APIError

Made = TypeVar("Made")
_MOST = 3


async def replicated(make: Callable[[int], Awaitable[Made]]) -> Made:
    """What `make` makes with so many replicas. What is there already with one serves as well."""
    try:
        return await make(_MOST)
    except APIError:
        return await make(1)
