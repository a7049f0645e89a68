"""A hostile server tries every way out of its box; what a mode cannot stop is written in SECURITY.md."""

import ctypes
import os
import pwd
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from boxes.boxed import added, called, needs, open_hub

pytestmark = pytest.mark.anyio
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
CANARY = f"canary-8d1f0c-{os.getpid()}"


def left_open(mode: str, network: str | list[str]) -> set[str]:
    """The ways that SECURITY.md says this mode cannot stop, or not with the whole network of one person."""
    words = ("open", "open with `full`") if network == "full" else ("open",)
    lines = SECURITY.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| What a box cannot stop"))
    column = [word.strip() for word in lines[start].split("|")].index(mode)
    found: set[str] = set()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.split("|")]
        if cells[column] in words:
            found.add(cells[1])
    return found


@contextmanager
def listening(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Generator[socket.socket]:
    """Answers whoever comes, for as long as the block lasts."""
    with socket.socket(family, kind) as server:
        server.bind(address)

        def streams() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                with one:
                    one.recv(100)
                    one.sendall(b"reached")

        def datagrams() -> None:
            while True:
                try:
                    _, sender = server.recvfrom(100)
                    server.sendto(b"reached", sender)
                except OSError:
                    return

        if kind == socket.SOCK_STREAM:
            server.listen(8)
        threading.Thread(target=streams if kind == socket.SOCK_STREAM else datagrams, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown(socket.SHUT_RDWR) if kind == socket.SOCK_STREAM else None


@contextmanager
def surroundings(tmp_path: Path, home: Path) -> Generator[dict[str, Any]]:
    """What is worth stealing on a machine, and where it is."""
    with ExitStack() as stack:
        sockets = {name: str(tmp_path / name) for name in ("dbus", "agent", "docker")}
        for path in sockets.values():
            stack.enter_context(listening(socket.AF_UNIX, path))
        stack.enter_context(listening(socket.AF_UNIX, f"\0{CANARY}"))
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(f"\0{CANARY}-datagrams")
        metadata = stack.enter_context(listening(socket.AF_INET, ("0.0.0.0", 0)))
        resolver = stack.enter_context(listening(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM))
        victim = subprocess.Popen(
            [sys.executable, "-S", "-c", "import sys; sys.stdin.read()", CANARY],
            stdin=subprocess.PIPE,
            env={"SECRET": CANARY},
            start_new_session=True,
        )
        stack.callback(victim.wait)
        assert victim.stdin is not None
        stack.callback(victim.stdin.close)
        shm = Path(f"/dev/shm/{CANARY}-{os.getpid()}")
        for file in (shm, tmp_path / "secret"):
            file.write_text(CANARY)
            stack.callback(file.unlink)
        other = home / "boxes" / "con_other" / "someone" / "home"
        other.mkdir(parents=True)
        (other / "state.json").write_text(CANARY)
        key = 0x8D1F0000 + os.getpid() % 0xFFFF
        libc = ctypes.CDLL(None)
        segment = libc.shmget(key, 4096, 0o1600)
        stack.callback(libc.shmctl, segment, 0, None)
        yield {
            **sockets,
            "home": str(home),
            "superuser": pwd.getpwuid(0).pw_dir,
            "key": str(home / "key"),
            "other": str(other),
            "other_file": str(other / "state.json"),
            "secret": str(tmp_path / "secret"),
            "tmp_file": str(tmp_path / "secret"),
            "shm_file": str(shm),
            "shm_key": key,
            "pid": victim.pid,
            "group": victim.pid,
            "canary": CANARY,
            "abstract": CANARY,
            "metadata_port": metadata.getsockname()[1],
            "resolver_port": resolver.getsockname()[1],
            "address": _own_address(),
        }


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
            return one.getsockname()[0]
        except OSError:
            return "127.0.0.1"


@pytest.mark.parametrize(
    ("mode", "network"),
    [
        ("bubblewrap", ["example.com:443"]),
        ("bubblewrap", "none"),
        ("bubblewrap", "full"),
        ("landlock", "none"),
        ("container", "full"),
    ],
)
async def test_a_hostile_server_finds_no_way_out_but_those_that_are_written_down(
    mode: str, network: str | list[str], tmp_path: Path
) -> None:
    needs(mode)
    home = tmp_path / "home"
    async with open_hub(home) as hub:
        await added(hub, sandbox=mode, network=network)
        with surroundings(tmp_path, home) as facts:
            found = await called(hub, "escape", **facts)
    assert found["tried"] >= 60
    assert set(found["out"]) <= left_open(mode, network), found["out"]


async def test_the_same_server_without_a_box_gets_out(tmp_path: Path) -> None:
    """Else the ways would prove nothing. None is tried that asks the kernel for more than it may give."""
    ways = [
        *("read the master key", "read another connector's home", "read a file of the person's"),
        *("the environment of a process", "the command line of any process"),
        *("signal a process", "an abstract socket", "D-Bus", "the SSH agent", "the docker socket"),
        *("the metadata of the cloud", "names asked of another resolver", "shared memory of System V"),
    ]
    home = tmp_path / "home"
    async with open_hub(home) as hub:
        await added(hub, sandbox="none")
        with surroundings(tmp_path, home) as facts:
            found = await called(hub, "escape", only=ways, **facts)
    assert sorted(found["out"]) == sorted(ways)
