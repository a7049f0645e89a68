"""The file tools cannot be led out of their directory, and no call of theirs goes on for ever."""

import asyncio
import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.connections.native import NativeTools, standard_tools
from dragoman.connections.native.files import FileLimits
from dragoman.errors import InvalidArguments, InvalidConfig
from dragoman.scope import Caller
from dragoman.tool import RawResult
from patience import deadline, patient

pytestmark = pytest.mark.anyio
SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (inside / "notes.txt").write_text("one\ntwo\nthree\n")
    (inside / "code").mkdir()
    (inside / "code" / "main.py").write_text("print('hello')\n")
    return inside


def tools_over(root: Path, limits: FileLimits | None = None) -> NativeTools:
    tools = NativeTools()
    for tool in standard_tools(root, limits or FileLimits()):
        tools.add(tool)
    return tools


async def call(root: Path, name: str, **arguments: Any) -> RawResult:
    return await tools_over(root).call(name, arguments, Caller())


def text(answer: RawResult) -> str:
    return answer.content[0]["text"]


def test_annotations_tell_reading_from_writing(root: Path) -> None:
    found = {
        definition.original_name: definition.annotations for definition in tools_over(root).definitions()
    }
    assert found["read_file"].read_only is True
    assert found["grep"].read_only is True
    assert (
        found["write_file"].read_only,
        found["write_file"].destructive,
        found["write_file"].idempotent,
    ) == (
        False,
        True,
        True,
    )


async def test_a_file_is_read_in_parts(root: Path) -> None:
    whole = await call(root, "read_file", path="notes.txt")
    assert whole.structured == {
        "path": "notes.txt",
        "content": "one\ntwo\nthree\n",
        "first_line": 1,
        "lines": 3,
        "more": False,
    }
    part = await call(root, "read_file", path="./notes.txt", offset=1, limit=1)
    assert (part.structured["content"], part.structured["first_line"], part.structured["more"]) == (
        "two\n",
        2,
        True,
    )


async def test_a_large_file_is_cut(root: Path) -> None:
    (root / "large.txt").write_text("x" * 99 + "\n" * 1 + ("y" * 99 + "\n") * 10_000)
    tools = tools_over(root, FileLimits(read_bytes=1000))
    answer = await tools.call("read_file", {"path": "large.txt", "limit": 100_000}, Caller())
    assert answer.structured["lines"] == 10
    assert answer.structured["more"] is True


async def test_a_binary_file_is_refused(root: Path) -> None:
    (root / "data.bin").write_bytes(b"\0\1\2")
    assert (await call(root, "read_file", path="data.bin")).is_error


async def test_a_file_is_written_whole_with_its_directories(root: Path) -> None:
    answer = await call(root, "write_file", path="new/deep/file.txt", content="hé")
    assert answer.structured == {"path": "new/deep/file.txt", "bytes": 3, "created": True}
    assert (root / "new/deep/file.txt").read_text() == "hé"
    (root / "new/deep/file.txt").chmod(0o640)
    again = await call(root, "write_file", path="new/deep/file.txt", content="again")
    assert again.structured["created"] is False
    assert (root / "new/deep/file.txt").read_text() == "again"
    assert stat.S_IMODE((root / "new/deep/file.txt").stat().st_mode) == 0o640
    assert [item.name for item in (root / "new/deep").iterdir()] == ["file.txt"]


async def test_too_much_content_is_refused_and_nothing_is_written(root: Path) -> None:
    tools = tools_over(root, FileLimits(write_bytes=10))
    assert (await tools.call("write_file", {"path": "a/b.txt", "content": "x" * 11}, Caller())).is_error
    assert not (root / "a").exists()


async def test_grep_finds_lines_by_pattern_path_and_glob(root: Path) -> None:
    everything = await call(root, "grep", pattern="t.*e|hello")
    assert [(match["path"], match["line"]) for match in everything.structured["matches"]] == [
        ("notes.txt", 3),
        ("code/main.py", 1),
    ]
    by_glob = await call(root, "grep", pattern=".", glob="*.py")
    assert {match["path"] for match in by_glob.structured["matches"]} == {"code/main.py"}
    by_path = await call(root, "grep", pattern=".", path="code")
    assert {match["path"] for match in by_path.structured["matches"]} == {"code/main.py"}
    by_file = await call(root, "grep", pattern="hel+o", path="code/main.py")
    assert by_file.structured["matches"] == [{"path": "code/main.py", "line": 1, "text": "print('hello')"}]
    limited = await call(root, "grep", pattern=".", limit=1)
    assert len(limited.structured["matches"]) == 1
    assert limited.structured["more"] is True


@pytest.mark.parametrize(
    "path", ["../outside/secret.txt", "code/../../outside/secret.txt", "/etc/passwd", "..", "a\0b", "code/.."]
)
@pytest.mark.parametrize("name", ["read_file", "write_file", "grep"])
async def test_no_path_leads_out(root: Path, name: str, path: str) -> None:
    extra = {"write_file": {"content": "changed"}, "grep": {"pattern": "."}}.get(name, {})
    answer = await call(root, name, path=path, **extra)
    assert answer.is_error
    assert SECRET not in text(answer)
    assert (root.parent / "outside/secret.txt").read_text() == SECRET


@pytest.mark.parametrize("name", ["read_file", "write_file", "grep"])
@pytest.mark.parametrize("path", ["link.txt", "folder/secret.txt", "relative/secret.txt", "chain.txt"])
async def test_no_link_leads_out(root: Path, name: str, path: str) -> None:
    (root / "link.txt").symlink_to(root.parent / "outside/secret.txt")
    (root / "folder").symlink_to(root.parent / "outside", target_is_directory=True)
    (root / "relative").symlink_to("../outside", target_is_directory=True)
    (root / "chain.txt").symlink_to("link.txt")
    extra = {"write_file": {"content": "changed"}, "grep": {"pattern": "."}}.get(name, {})
    answer = await call(root, name, path=path, **extra)
    assert answer.is_error
    assert "link" in text(answer)
    assert SECRET not in text(answer)
    assert (root.parent / "outside/secret.txt").read_text() == SECRET


async def test_grep_over_the_directory_follows_no_link(root: Path) -> None:
    (root / "link.txt").symlink_to(root.parent / "outside/secret.txt")
    (root / "folder").symlink_to(root.parent / "outside", target_is_directory=True)
    answer = await call(root, "grep", pattern="secret")
    assert answer.structured["matches"] == []


async def test_a_link_into_a_missing_file_is_not_created_through(root: Path) -> None:
    (root / "trap").symlink_to(root.parent / "outside/created.txt")
    assert (await call(root, "write_file", path="trap", content="x")).is_error
    assert not (root.parent / "outside/created.txt").exists()


async def test_a_directory_that_is_swapped_for_a_link_meanwhile_never_leads_out(root: Path) -> None:
    """A race: one thread swaps a directory for a link and back while the tools walk through it."""
    (root / "swap").mkdir()
    (root / "swap/secret.txt").write_text("inside")
    (root / "away").symlink_to(root.parent / "outside", target_is_directory=True)
    stop = threading.Event()
    tools = tools_over(root)

    def rename(source: str, target: str) -> None:
        while not stop.is_set():
            try:
                os.rename(root / source, root / target)
                return
            except OSError:  # write_file has made the directory anew meanwhile
                shutil.rmtree(root / target, ignore_errors=True)

    def swap() -> None:
        while not stop.is_set():
            rename("swap", "kept")
            rename("away", "swap")
            rename("swap", "away")
            rename("kept", "swap")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        answers = [await tools.call("read_file", {"path": "swap/secret.txt"}, Caller()) for _ in range(1000)]
        for _ in range(300):
            await tools.call("write_file", {"path": "swap/new.txt", "content": "x"}, Caller())
    finally:
        stop.set()
        swapper.join()
    assert not any(SECRET in text(answer) for answer in answers)
    assert sorted(item.name for item in (root.parent / "outside").iterdir()) == ["secret.txt"]


@pytest.mark.parametrize("name", ["read_file", "write_file", "grep"])
async def test_pipes_and_sockets_are_refused_at_once(root: Path, name: str) -> None:
    os.mkfifo(root / "pipe")
    extra = {"write_file": {"content": "x"}, "grep": {"pattern": "."}}.get(name, {})
    async with deadline(5):
        answer = await call(root, name, path="pipe", **extra)
    assert answer.is_error
    assert "no regular file" in text(answer)


async def test_grep_over_a_directory_with_a_pipe_and_a_socket_passes_them_by(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        previous = os.getcwd()
        os.chdir(root)
        try:
            listener.bind("socket")
        finally:
            os.chdir(previous)
        async with deadline(5):
            answer = await call(root, "grep", pattern="one")
    assert len(answer.structured["matches"]) == 1
    assert answer.structured["skipped"] == 2


async def test_a_pattern_that_never_ends_is_stopped_and_the_loop_goes_on(root: Path) -> None:
    (root / "evil.txt").write_text("a" * 60 + "!\n")
    tools = tools_over(root, FileLimits(search_seconds=patient(1)))
    began = time.monotonic()
    search = asyncio.ensure_future(tools.call("grep", {"pattern": "(a+)+$"}, Caller()))
    beats = 0
    while not search.done():
        await asyncio.sleep(0.02)
        beats += 1
    answer = await search
    assert answer.is_error
    assert "was stopped" in text(answer)
    assert time.monotonic() - began < patient(5)
    assert beats > 20


async def test_a_bad_pattern_is_an_error_that_says_so(root: Path) -> None:
    answer = await call(root, "grep", pattern="(")
    assert answer.is_error
    assert "no regular expression" in text(answer)


async def test_long_lines_are_cut(root: Path) -> None:
    (root / "long.txt").write_text("needle" + "x" * 100_000)
    answer = await call(root, "grep", pattern="needle")
    assert len(answer.structured["matches"][0]["text"]) == 500


async def test_a_missing_file_is_an_error(root: Path) -> None:
    for name, extra in (("read_file", {}), ("grep", {"pattern": "x"})):
        answer = await call(root, name, path="missing.txt", **extra)
        assert answer.is_error
        assert "does not exist" in text(answer)


async def test_arguments_are_checked(root: Path) -> None:
    with pytest.raises(InvalidArguments):
        await call(root, "read_file", path="notes.txt", offset=-1)


def test_only_a_directory_that_exists_can_be_a_root(root: Path) -> None:
    for bad in (root / "missing", root / "notes.txt", Path("/")):
        with pytest.raises(InvalidConfig) as caught:
            standard_tools(bad)
        assert caught.value.hint


@pytest.mark.slow
async def test_no_descriptor_is_left_open(root: Path) -> None:
    await call(root, "grep", pattern="one")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await call(root, "read_file", path="notes.txt")
        await call(root, "read_file", path="missing/notes.txt")
        await call(root, "write_file", path="a/b/c.txt", content="x")
        await call(root, "grep", pattern="one")
    assert len(os.listdir("/proc/self/fd")) <= before + 2
