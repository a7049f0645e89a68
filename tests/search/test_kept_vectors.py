"""Vectors on disk: found again, shared, and whole after a crash in the middle of a writing."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.catalog.search.vector_cache import VectorCache, key_of

KEYS = [key_of(text) for text in ("a", "b", "c")]
VECTORS = np.eye(3, dtype=np.float32)


def opened(folder: Path) -> VectorCache:
    kept = VectorCache(folder, "model")
    kept.read()
    return kept


def test_what_was_put_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    kept = opened(tmp_path / "deep" / "folder")
    assert (len(kept), kept.width) == (0, 0)
    kept.put(KEYS[:2], VECTORS[:2])
    kept.put(KEYS, VECTORS)
    again = opened(tmp_path / "deep" / "folder")
    assert (len(again), again.width) == (3, 3)
    assert np.allclose(again.get(KEYS), VECTORS)
    assert np.allclose(again.get(KEYS[::-1]), VECTORS[::-1])
    with pytest.raises(KeyError):
        again.get([key_of("d")])


def test_two_that_share_the_files_lose_nothing(tmp_path: Path) -> None:
    one, other = opened(tmp_path), opened(tmp_path)
    one.put(KEYS[:1], VECTORS[:1])
    other.put(KEYS[1:], VECTORS[1:])
    one.put(KEYS[:1], VECTORS[:1])
    for kept in (one, other, opened(tmp_path)):
        kept.read()
        assert np.allclose(kept.get(KEYS), VECTORS)


@pytest.mark.parametrize("suffix", [".keys", ".vectors"])
@pytest.mark.parametrize("lost", [1, 3, 8])
def test_what_a_crash_left_half_written_is_written_over(tmp_path: Path, suffix: str, lost: int) -> None:
    opened(tmp_path).put(KEYS[:2], VECTORS[:2])
    (path,) = tmp_path.glob(f"*{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - lost])
    kept = opened(tmp_path)
    assert KEYS[0] in kept or lost > 6
    kept.put(KEYS, VECTORS)
    assert np.allclose(opened(tmp_path).get(KEYS), VECTORS)


def test_a_file_of_something_else_is_begun_anew(tmp_path: Path) -> None:
    opened(tmp_path).put(KEYS[:2], VECTORS[:2])
    (path,) = tmp_path.glob("*.keys")
    path.write_bytes(b"something else")
    kept = opened(tmp_path)
    assert len(kept) == 0
    kept.put(KEYS, VECTORS)
    assert len(opened(tmp_path)) == 3


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    opened(tmp_path).put(KEYS, VECTORS)
    for path in tmp_path.glob("*.*s"):
        assert path.stat().st_mode & 0o077 == 0
