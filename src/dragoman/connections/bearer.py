"""Where a wire gets an Authorization header that changes (OAuth), and whether to retry after a refusal.

Static credentials do not need it: they are plain headers of the wire.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

INSUFFICIENT_SCOPE = "insufficient_scope"


class Bearer(Protocol):
    async def headers(self) -> Mapping[str, str]:
        """For the next request. `WireFault` when there is no valid credential and none can be had."""
        ...

    async def rejected(self, headers: Mapping[str, str], challenges: Sequence[str] = ()) -> bool:
        """A request with these headers was answered with 401, or with 403 for want of a scope.

        True: send it once more, with new ones.
        """
        ...


async def credential_of(bearer: Bearer | None) -> Mapping[str, str]:
    return {} if bearer is None else await bearer.headers()
