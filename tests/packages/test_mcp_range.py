"""Other packages want the MCP SDK too: a range of its versions is allowed, and both ends of it are tested."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from patience import patient

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "mcp_versions"
OLDEST, NEWEST = re.findall(r"(?:oldest|newest)=([\d.]+)", SCRIPT.read_text())


def test_the_range_ends_where_the_tested_versions_do() -> None:
    needed: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (wanted,) = (one for one in needed if one.startswith("mcp>"))
    major, minor, _ = map(int, NEWEST.split("."))
    assert wanted == f"mcp>={OLDEST.removesuffix('.0')},<{major}.{minor + 1}"
    assert f"\nmcp=={NEWEST} " in (ROOT / "requirements.lock").read_text()


@pytest.mark.slow
def test_the_oldest_version_keeps_the_contract_with_its_session() -> None:
    command = [str(SCRIPT), OLDEST, "--", "tests/connections/test_sdk_seam.py"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=patient(100)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"mcp {OLDEST}" in done.stdout
