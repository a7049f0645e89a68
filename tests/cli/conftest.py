"""No command of these tests touches the home of who runs them."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def on_a_home_of_its_own(home: Path) -> None: ...
