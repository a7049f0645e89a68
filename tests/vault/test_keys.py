import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import KeyFault
from dragoman.vault import Key, KeyFile, KeyRing
from patience import patient


def test_the_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "home" / "master.key")
    key = file.get_or_make()
    assert len(key.material) == 32
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700
    assert file.get_or_make() == key == file.get()
    assert os.listdir(file.path.parent) == ["master.key"]


@pytest.mark.slow
def test_processes_that_make_the_key_at_once_end_with_the_same(tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = (
        "import pathlib, time; from dragoman.vault import KeyFile\n"
        "print('ready', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): pass\n"
        f"print(KeyFile(pathlib.Path({str(tmp_path / 'home/key')!r})).get_or_make().id)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    go.touch()
    ids = {process.communicate(timeout=patient(60))[0].strip() for process in processes}
    assert ids == {KeyFile(tmp_path / "home/key").get().id}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_key_file_that_others_can_reach_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, mode: int
) -> None:
    file = KeyFile(tmp_path / "key")
    key = file.get_or_make()
    file.path.chmod(mode)
    with pytest.raises(KeyFault, match="others can read") as caught:
        file.get_or_make()
    assert caught.value.hint == f"chmod 600 {file.path}"
    file.path.chmod(0o600)
    assert file.get_or_make() == key


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_key_file_of_the_wrong_length_is_refused_and_not_overwritten(tmp_path: Path, size: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"k" * size)
    path.chmod(0o600)
    with pytest.raises(KeyFault, match=f"{size} bytes instead of 32"):
        KeyFile(path).get_or_make()
    assert path.read_bytes() == b"k" * size


def test_a_key_file_that_cannot_be_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(KeyFault, match="no key file"):
        KeyFile(tmp_path / "missing").get()
    (tmp_path / "directory").mkdir(mode=0o700)
    with pytest.raises(KeyFault, match="directory"):
        KeyFile(tmp_path / "directory").get_or_make()
    (tmp_path / "file").touch()
    with pytest.raises(KeyFault, match="cannot be used"):
        KeyFile(tmp_path / "file" / "key").get_or_make()


def test_a_key_of_the_wrong_length_is_no_key() -> None:
    with pytest.raises(KeyFault, match="32 bytes"):
        Key(b"short")


def test_no_repr_shows_a_key() -> None:
    ring = KeyRing(Key(b"canary" * 5 + b"ca"), (Key(b"yranac" * 5 + b"ya"),))
    assert "canary" not in f"{ring!r} {ring} {ring.current!r}"
    assert "yranac" not in f"{ring!r} {ring.older!r}"
