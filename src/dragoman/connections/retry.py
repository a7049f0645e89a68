"""When to try again: a call that is safe to repeat, and a connection that must come back. Pure arithmetic."""

import random

from dragoman.connections.wire_faults import WireFault
from dragoman.connector import ReconnectPolicy, RetryPolicy

_JITTER = 0.15


def backoff(policy: ReconnectPolicy, attempt: int) -> float | None:
    """Seconds before the next attempt to connect, after so many failed ones; None after the last."""
    if policy.attempts is not None and attempt >= policy.attempts:
        return None
    if attempt == 0:
        return 0.0  # a session that was just lost gets its first new attempt at once
    delay = min(policy.cap, policy.delay * policy.factor ** min(attempt - 1, 30))
    return delay * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - jitter, not a secret


class RetrySchedule:
    """The tries of one call. A pause that would outlast the deadline is none: better told now than then."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.count = 0

    def pause(self, left: float) -> float | None:
        """Seconds before the next try of a call that never left; None when there were enough.

        `left` are the seconds until the deadline.
        """
        policy = self._policy
        pause = min(policy.cap, policy.delay * policy.factor ** (self.count - 1))
        return None if self.count >= policy.tries or pause >= left else pause

    def pause_after(self, fault: WireFault, safe: bool, left: float) -> float | None:
        """The same for a request that met a fault; None also when repeating it is not safe."""
        if self.count >= self._policy.tries or not fault.may_be_repeated(safe):
            return None
        if self.count == 1 and fault.is_repeated_at_once:
            return 0.0
        if fault.retry_after is not None:
            return fault.retry_after if fault.retry_after < left else None
        return self.pause(left)
