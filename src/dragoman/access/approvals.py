"""Whether a person must say yes to a call, and the waiting for it. The model has no way in here.

Knows the store's rows and the vault's seal; who may answer is decided in the hub.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from dragoman.connector import Connector
from dragoman.events import Events
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store.protocols import ApprovalRows
from dragoman.tool import Tool


class Sealer(Protocol):
    """Seals the arguments of a question, bound to where they are kept. The vault fills it."""

    def seal_bytes(self, value: bytes, *place: str) -> bytes: ...

    def open_bytes(self, sealed: bytes, *place: str) -> bytes: ...


class Approvals:
    def __init__(
        self, rows: ApprovalRows, sealer: Sealer, directory: Directory, events: Events, wait: float
    ) -> None:
        self._rows = rows
        self._sealer = sealer
        self._directory = directory
        self._events = events
        self._wait = wait

    async def admit(
        self, tool: Tool, connector: Connector, caller: Caller, arguments: Mapping[str, Any]
    ) -> bool:
        """Returns when the call may go on: True when somebody was waited for, so that the rest is old news.

        Raises `ApprovalRefused` when a person said no, `ApprovalPending` when nobody answered in time.
        """
        return False
