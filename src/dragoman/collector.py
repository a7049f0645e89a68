"""Python's collector of garbage, held off what is made to stay. Knows nothing of what it is."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock


class _Process:
    """What is frozen in it: objects that the collector never looks at again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._has_frozen = False

    def freeze_more(self) -> None:
        """Freezes what is there now, where something was frozen before."""
        with self._lock:
            if self._is_freezing():
                gc.freeze()

    def age(self) -> None:
        """What is there now counts as old: it is not looked at soon. Where some is frozen it stays young."""
        with self._lock:
            if not self._is_freezing():
                gc.freeze()
                gc.unfreeze()

    def _is_freezing(self) -> bool:
        """To count what is frozen walks through all of it, so a yes is remembered."""
        self._has_frozen = self._has_frozen or gc.get_freeze_count() > 0
        return self._has_frozen


_process = _Process()


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
        _process.age()
        gc.enable()


def keep() -> None:
    """What is there now stays: where the process has frozen what it had before, this is frozen, too.

    For much that came late and lasts; what goes all the same is freed as ever, unless it is in cycles.
    """
    _process.freeze_more()
