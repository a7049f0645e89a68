"""Python's collector of garbage, held off while much is made that stays. Knows nothing of what it is."""

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
