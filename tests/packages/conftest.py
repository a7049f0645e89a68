"""One wheel, and one environment without any extra, for all tests here."""

from pathlib import Path

import pytest

from packages.installed import Environment, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.make(tmp_path_factory.mktemp("core") / "environment", wheel)
