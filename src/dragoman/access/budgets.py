"""What users and connectors may use, counted in the store so that several processes agree.

Who has no bound is not counted and costs nothing.
"""

from dataclasses import dataclass

from dragoman.connector import Connector
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store.protocols import UsageRows
from dragoman.store.records import Lease
from dragoman.tool import Tool, ToolCall


@dataclass(frozen=True, slots=True)
class Ticket:
    """One admitted call: the places it holds, to be given back."""

    workspace: str
    user: str
    leases: tuple[Lease, ...]


class Budgets:
    def __init__(self, rows: UsageRows, directory: Directory) -> None:
        self._rows = rows
        self._directory = directory

    async def enter(
        self, call: ToolCall, tool: Tool, connector: Connector, caller: Caller, deadline: float
    ) -> Ticket | None:
        """Counts the call, or raises `LimitReached` with `retry_after`. None when nothing is bounded."""
        return None

    async def leave(self, ticket: Ticket, tokens: int) -> None:
        """Gives places back and adds what the call has used."""
