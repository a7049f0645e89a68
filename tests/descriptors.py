"""A process that has no file descriptors left, for as long as a block runs. Nothing may be awaited in it."""

import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_descriptors() -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
