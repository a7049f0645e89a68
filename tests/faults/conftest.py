"""Every fault test leaves no process, pipe or socket behind: checked here, after each of them."""

import gc
from collections.abc import Iterator

import pytest

from servers.hubs import children, open_channels
from servers.processes import prepare


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    prepare()
    processes, channels = children(), set(open_channels())
    yield
    gc.collect()
    assert children() - processes == set(), "processes were left behind"
    assert set(open_channels()) - channels == set(), "pipes or sockets were left behind"
