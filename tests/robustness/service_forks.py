"""A process with everything imported from which services are forked: one starts in a fraction of a second.

Each line on stdin is JSON, `{"words": […], "log": FILE}`; it is answered with the id of a new process that
runs `dragoman` with these words, and with what `environment` adds to this one's. Whatever ends this process
ends its services.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys

from dragoman.cli.root import main

# What a service imports on its way to the first answer, and its first run.
NEEDED = (
    *("aiosqlite", "psycopg", "dragoman.server", "dragoman.store.sql", "dragoman.telemetry.logs"),
    *("dragoman.cli.serve", "dragoman.cli.worker", "structlog"),
    *("dragoman.runs.dispatch", "pydantic_ai.models.openai", "pydantic_ai.toolsets"),
)
PR_SET_PDEATHSIG = 1


def serve(words: list[str], log: str) -> None:
    """In the new process: the command as if it had been started by itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    sys.argv[:] = ["dragoman", *words]
    main()


def fork_on_demand() -> None:
    for module in NEEDED:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        if (pid := os.fork()) == 0:
            os.environ.update(order.get("environment", {}))
            serve(order["words"], order["log"])
            return
        print(pid, flush=True)


if __name__ == "__main__":
    fork_on_demand()
