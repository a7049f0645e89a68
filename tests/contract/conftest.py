"""What the tests of the contract share: committed snapshots, and one running service to ask."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from product import Service, running_service

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "pytest tests/contract --update-snapshots"

Compare = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots", action="store_true", help="write tests/contract/snapshots as it is now"
    )


@pytest.fixture(scope="session")
def is_updating(request: pytest.FixtureRequest) -> bool:
    # The option exists only where this folder was named on the command line.
    return bool(request.config.getoption("--update-snapshots", default=False))


@pytest.fixture
def compare(is_updating: bool) -> Compare:
    """Compares a text with the committed snapshot of that name, or writes it there."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if is_updating:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        told = f"snapshots/{name} differs. If the change is wanted: {UPDATE}"
        assert path.exists(), told
        assert text == path.read_text(encoding="utf-8"), told

    return compare


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[Service]:
    """`dragoman serve` on an empty home, for every test that only asks."""
    with running_service(tmp_path_factory.mktemp("contract") / "home") as service:
        yield service


@pytest.fixture
def is_migrated() -> bool:
    """Here stores make their own tables."""
    return False
