"""A process beside a node of a cluster that ends its servers when the node cannot: it is frozen, or dead.

Run as a program, without site-packages. It reads lines from its parent: `lease SECONDS` says until when, on
the clock of the machine, the node may hold servers; `server PID` names the leader of a server's group. When
the time is over, or the parent is gone, every server that was named is killed.
"""

import os
import select
import signal
import sys
import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_MANY = 256


def started_at(pid: int) -> str:
    """Tells a process from a later one with the same number; empty where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


class _Guard:
    def __init__(self) -> None:
        self._servers: dict[int, str] = {}
        self._until = 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the servers must be gone; None where there are none."""
        return max(0.0, self._until - time.clock_gettime(_CLOCK)) if self._servers else None

    def take(self, line: bytes) -> None:
        word, _, value = line.partition(b" ")
        if word == b"lease":
            self._until = float(value)
        elif word == b"server":
            if len(self._servers) > _MANY:
                self._servers = {pid: at for pid, at in self._servers.items() if started_at(pid) == at}
            self._servers[int(value)] = started_at(int(value))

    def kill(self) -> None:
        for pid, at in self._servers.items():
            if started_at(pid) == at:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
        self._servers.clear()


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its parent
    guard, rest = _Guard(), b""
    while True:
        is_ready, _, _ = select.select([0], [], [], guard.left)
        if not is_ready:
            guard.kill()
            continue
        data = os.read(0, 65536)
        if not data:
            guard.kill()
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            guard.take(line)


if __name__ == "__main__":
    sys.exit(main())
