"""How many calls of one connector run at once. First come, first served; free room costs next to nothing."""

import asyncio
from collections import deque

from dragoman.connector import Connector
from dragoman.errors import DragomanError, LimitReached


class ConcurrencyGate:
    """The room of one connector. Who has entered must leave."""

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def try_enter(self, limit: int) -> bool:
        """Without waiting, and never ahead of somebody who waits."""
        if self._waiting or self._running >= limit:
            return False
        self._running += 1
        return True

    async def enter(self, connector: Connector, deadline: float) -> None:
        """Waits for room until the deadline on the event loop's clock, then `LimitReached`."""
        if self.try_enter(self.limit_of(connector)):
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        alarm = loop.call_at(deadline, _end, turn)
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(connector)
            raise
        except TimeoutError:
            raise self.refusal(connector) from None
        finally:
            alarm.cancel()
            if not turn.done() or turn.cancelled() or turn.exception() is not None:
                self._withdraw(turn)

    def leave(self, connector: Connector) -> None:
        """Gives the room to whoever has waited longest. A raised limit lets several in."""
        self._running -= 1
        if self._waiting:
            self.let_in(self.limit_of(connector))

    def let_in(self, limit: int) -> None:
        """Those who have waited longest, as many as there is room for."""
        while self._waiting and self._running < limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._running += 1
                turn.set_result(None)

    def limit_of(self, connector: Connector) -> int:
        return connector.configuration.max_concurrency

    def refusal(self, connector: Connector) -> LimitReached:
        return LimitReached(
            f"{self._running} calls of {connector.slug!r} were running and none ended in time",
            hint="call again later, allow more time, or raise max_concurrency of the connector",
        )

    def refuse(self, error: DragomanError) -> None:
        """Whoever waits now is told this."""
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(error)

    def _withdraw(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)


class ConcurrencyLimits:
    """One gate per connector."""

    def __init__(self) -> None:
        self._gates: dict[str, ConcurrencyGate] = {}

    def gate(self, connector: Connector) -> ConcurrencyGate:
        gate = self._gates.get(connector.id)
        if gate is None:
            gate = self._gates[connector.id] = ConcurrencyGate()
        return gate

    def forget(self, connector_id: str) -> None:
        """For a connector that is gone. Calls under way keep the gate they entered."""
        self._gates.pop(connector_id, None)


def _end(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_exception(TimeoutError())
