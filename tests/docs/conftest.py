"""The documentation, built once for the tests of this folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from patience import patient

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `scripts/docs` builds it: a link that leads nowhere fails here."""
    folder = tmp_path_factory.mktemp("docs")
    built = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs_site.py"), "build", str(folder)],
        capture_output=True,
        text=True,
        timeout=patient(100),
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"
