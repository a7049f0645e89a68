"""How one service stands, out of what its calls and its document meet. Pure but for the clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dragoman.connections.retry import backoff
from dragoman.connections.source import State
from dragoman.errors import DragomanError, Forbidden, InvalidConfig, NeedsAuth

_FINAL = (InvalidConfig, NeedsAuth, Forbidden)


@dataclass(frozen=True, slots=True)
class ServicePhase:
    state: State = "disconnected"
    cause: str | None = None
    hint: str | None = None
    attempt: int = 0
    next_attempt: datetime | None = None
    since: datetime | None = None


class ServiceState:
    """Tells `on_change` of every new phase.

    A service whose calls succeed is connected, also while its document cannot be read: the cause says so.
    """

    def __init__(self, auto_reconnect: bool, on_change: Callable[[], None]) -> None:
        self.phase = ServicePhase()
        self.was_ever_connected = False
        self.reconnects = 0
        self._auto_reconnect = auto_reconnect
        self._on_change = on_change
        self._served_since = False  # a call succeeded since the document was last tried

    @property
    def is_connected(self) -> bool:
        return self.phase.state == "connected"

    def trying(self) -> None:
        if not self.is_connected:
            before = self.phase
            state: State = "reconnecting" if self.was_ever_connected else "connecting"
            self._enter(ServicePhase(state, before.cause, before.hint, before.attempt, None))

    def document_read(self) -> bool:
        """Whether that made a connection of it."""
        return self._connected(ServicePhase("connected"))

    def document_failed(self, error: DragomanError) -> None:
        attempt = self.phase.attempt + 1
        is_final = isinstance(error, _FINAL) and not self.was_ever_connected
        is_final = is_final or isinstance(error, NeedsAuth) or not self._auto_reconnect
        at = None if is_final else datetime.now(UTC) + timedelta(seconds=backoff(attempt))
        state: State = "needs_auth" if isinstance(error, NeedsAuth) else "error"
        if self._served_since:
            state = "connected"
        self._served_since = False
        self._enter(ServicePhase(state, error.message, error.hint, attempt, at))

    def call_answered(self) -> bool:
        """Whether that made a connection of it."""
        self._served_since = True
        if self.is_connected:
            return False
        before = self.phase
        is_waiting = before.next_attempt is not None and before.attempt > 0
        phase = ServicePhase("connected", before.cause, before.hint, before.attempt, before.next_attempt)
        return self._connected(phase if is_waiting else ServicePhase("connected"))

    def call_failed(self, error: DragomanError, is_tried_again: bool) -> None:
        """The service could not be reached, or refused our credential."""
        self._served_since = False
        if isinstance(error, NeedsAuth):
            self._enter(ServicePhase("needs_auth", error.message, error.hint))
        elif self.phase.state not in ("error", "reconnecting"):
            at = (
                datetime.now(UTC) + timedelta(seconds=backoff(1))
                if is_tried_again and self._auto_reconnect
                else None
            )
            self._enter(ServicePhase("error", error.message, error.hint, 1, at))

    def left(self) -> None:
        self._enter(ServicePhase("disconnected"))

    def _connected(self, phase: ServicePhase) -> bool:
        before, is_new = self.phase, not self.is_connected
        self.reconnects += is_new and self.was_ever_connected
        self.was_ever_connected = True
        if is_new or (phase.cause, phase.attempt) != (before.cause, before.attempt):
            self._enter(phase)
        return is_new

    def _enter(self, phase: ServicePhase) -> None:
        before = self.phase
        since = before.since if before.state == phase.state and before.since else datetime.now(UTC)
        self.phase = ServicePhase(
            phase.state, phase.cause, phase.hint, phase.attempt, phase.next_attempt, since
        )
        self._on_change()
