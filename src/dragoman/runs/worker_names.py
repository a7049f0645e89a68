"""Names of the processes that execute runs, and which of those of this machine are gone."""

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex


def new_worker() -> str:
    """Machine, process, when it began, and a word of its own: one process may hold two hubs."""
    return f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}:{token_hex(4)}"


def dead_among(workers: Iterable[str]) -> list[str]:
    """Workers of this machine whose process is gone: nobody has to wait for their leases."""
    here = socket.gethostname()
    dead: list[str] = []
    for worker in workers:
        host, pid, began, *_ = (*worker.split(":"), "", "", "")
        if host == here and pid.isdigit() and _began(int(pid)) != began:
            dead.append(worker)
    return dead


def _began(pid: int) -> str:
    """In the kernel's count; "" when there is no such process. Tells apart who has the same id."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]  # one that nobody has waited for yet is dead all the same
    except (OSError, ValueError, IndexError):
        pass
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "alive"
    return "alive"
