"""When to try again: a call that is safe to repeat, and a connection that must come back. Pure arithmetic."""

import random

from dragoman.connections.faults import WireFault
from dragoman.connector import RetryPolicy

_BACKOFF_FIRST = 1.0
_BACKOFF_CAP = 30.0
_JITTER = 0.15


def backoff(attempt: int) -> float:
    """Seconds before the next attempt to connect, after `attempt` failed ones: 1, 2, 4 … 30, with jitter."""
    if attempt == 0:
        return 0.0  # a session that was just lost gets its first new attempt at once
    delay = min(_BACKOFF_CAP, _BACKOFF_FIRST * 2.0 ** min(attempt - 1, 10))
    return delay * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - jitter, not a secret


def pause_before(policy: RetryPolicy, tries: int) -> float | None:
    """Seconds before the next try of a call that never left; None when there were enough."""
    if tries >= policy.tries:
        return None
    return min(policy.cap, policy.delay * policy.factor ** (tries - 1))


def pause_after(fault: WireFault, policy: RetryPolicy, tries: int, safe: bool) -> float | None:
    """The same for a request that met a fault; None also when repeating it is not safe."""
    pause = pause_before(policy, tries)
    if pause is None or not fault.may_be_repeated(safe):
        return None
    if tries == 1 and fault.is_repeated_at_once:
        return 0.0
    return pause if fault.retry_after is None else fault.retry_after
