"""Ctrl-C interrupts only what waits: output that is being written is written to its end."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Within its `with`, Ctrl-C raises `KeyboardInterrupt` inside `waiting` only; else it is kept for it."""

    def __init__(self) -> None:
        self._is_waiting = False
        self._is_pending = False
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def waiting(self) -> Generator[None]:
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self._is_waiting:
            raise KeyboardInterrupt
        self._is_pending = True
