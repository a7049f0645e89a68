"""Who holds runs: one process, told apart from every other there is or was, and whether it has died.

Of processes of the same boot in the same pid namespace this one can know it; of all others it knows nothing,
and their leases decide. In doubt a process lives: who is taken for dead loses its runs at once.
"""

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Self

_UNKNOWN = "-"
_NODE = "node-"


@dataclass(frozen=True, slots=True)
class Worker:
    """`place` is where its process id means something: host name, boot, pid namespace; `began` is in the
    kernel's count since that boot. `word` tells hubs of one process apart; that of a node of a cluster names
    the node.
    """

    place: str
    pid: int
    began: str
    word: str

    @classmethod
    def of_this_process(cls, node: str | None = None) -> Self:
        """`node` is its id where it is one of a cluster, whose other nodes hear that it lives."""
        word = token_hex(4) if node is None else f"{_NODE}{node}"
        return cls(_place(), os.getpid(), _began(os.getpid()) or _UNKNOWN, word)

    @classmethod
    def find(cls, text: str) -> Self | None:
        """As it is kept with a run; None for what no process of this version wrote."""
        place, *rest = text.rsplit(":", 3)
        if len(rest) != 3 or not rest[0].isdigit():
            return None
        return cls(place, int(rest[0]), rest[1], rest[2])

    def __str__(self) -> str:
        return f"{self.place}:{self.pid}:{self.began}:{self.word}"

    @property
    def node(self) -> str | None:
        """The id of its node."""
        return self.word.removeprefix(_NODE) if self.word.startswith(_NODE) else None

    @property
    def is_dead(self) -> bool:
        """Only what can be known for certain."""
        if _UNKNOWN in (*self.place.split(":"), self.began) or self.place != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # somebody else's, and there
        # Where it is hidden from us, it is there all the same.
        return _began(self.pid) not in (None, self.began)


def dead_among(workers: Iterable[str]) -> list[str]:
    """Those whose process is gone: nobody has to wait for their leases."""
    known = [(text, Worker.find(text)) for text in workers]
    return [text for text, worker in known if worker is not None and worker.is_dead]


@cache
def _place() -> str:
    """Unknown where /proc is missing, or shows another pid namespace than ours."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
        is_ours = Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        boot, space, is_ours = _UNKNOWN, _UNKNOWN, False
    return ":".join((socket.gethostname().replace(":", "_"), boot, space if is_ours else _UNKNOWN))


def _began(pid: int) -> str | None:
    """In the kernel's count; "" for one that ended and nobody has waited for; None where it is not shown."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]
    except (OSError, ValueError, IndexError):
        return None
