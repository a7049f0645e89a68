"""A connection to PostgreSQL that waits so long for an answer and no longer. Only home of `psycopg`.

A machine that vanished says nothing, and a server that hangs keeps its connections open.
"""

from typing import Any

from psycopg import AsyncConnection, OperationalError
from psycopg.errors import _WaitTimeout  # pyright: ignore[reportPrivateUsage]

from dragoman.store.location import LONGEST_SILENCE


class PatientConnection(AsyncConnection[Any]):
    """`is_hurried`: not while something is done that may take minutes."""

    is_hurried = True

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Everything that is asked of the server passes here, once it is connected."""
        if timeout is not None or not self.is_hurried:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, LONGEST_SILENCE)
        except _WaitTimeout:
            # Whatever came later would be taken for the answer to something else.
            self.pgconn.finish()
            raise OperationalError(f"no answer within {LONGEST_SILENCE:g} seconds") from None
