"""The wheel carries the examples, and they run from there without the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dragoman.examples import examples

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_has_the_example_servers_and_says_where_they_are(tmp_path: Path) -> None:
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    package = tmp_path / "installed" / "dragoman"
    said = subprocess.run(
        [sys.executable, str(package / "examples.py")], capture_output=True, text=True, check=True
    )
    found = Path(said.stdout.strip())
    assert found == package / "_examples"
    names = {path.relative_to(examples()) for path in examples().rglob("*.*") if path.suffix != ".pyc"}
    assert {path.relative_to(found) for path in found.rglob("*.*")} == names
    for server in ("email_server", "email_service", "chat_server", "tracker_server", "tasks_service"):
        help_ = [sys.executable, str(found / "servers" / f"{server}.py"), "--help"]
        shown = subprocess.run(help_, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert shown.stdout.startswith(f"usage: {server}.py ")


def test_a_checkout_finds_them_at_its_root() -> None:
    assert examples() == ROOT / "examples"
