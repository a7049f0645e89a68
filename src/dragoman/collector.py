"""Python's collector of garbage, held off what is made to stay. Knows nothing of what it is."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused() -> Generator[None]:
    """Nothing is looked for inside: the collector would walk again and again through what is being made.

    For code that makes no cycles to throw away, such as imports and parsing, and that does not wait.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Process:
    """Whether it has frozen something. To count that walks through all of it, so a yes is remembered."""

    def __init__(self) -> None:
        self._has_frozen = False

    @property
    def has_frozen(self) -> bool:
        self._has_frozen = self._has_frozen or gc.get_freeze_count() > 0
        return self._has_frozen


_process = _Process()


def keep() -> None:
    """What is there now stays: where the process has frozen what it had before, this is frozen, too.

    For much that came late and lasts; what goes all the same is freed as ever, unless it is in cycles.
    """
    if _process.has_frozen:
        gc.freeze()
