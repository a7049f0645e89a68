"""How tests start the test servers: the words for a stdio connector, and HTTP servers as processes.

Who starts an HTTP server ends it: `HttpProcess` is a context manager. Servers are forked from one process
that has imported what they need: each is a real process with a port of its own, and starts in milliseconds.
"""

import json
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from patience import patient, wait_until

HERE = Path(__file__).parent
START_LIMIT = 20.0
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["aiohttp.web", "mcp.server.mcpserver", "uvicorn", "dragoman.hub.hub"])


def stdio(*arguments: str, sandbox: str = "none") -> dict[str, Any]:
    """Command and args of the raw stdio server, as `hub.connectors.add` takes them.

    Not in a box by itself: it writes where tests say, and tells processes by their numbers on this machine.
    """
    # Without site-packages it starts in 30 ms.
    words = ["-S", "-E", str(HERE / "stdio_server.py"), *arguments]
    return {"command": sys.executable, "args": words, "sandbox": sandbox}


def read_log(path: Path) -> list[dict[str, Any]]:
    """What a server wrote with `--log`, oldest first. A line that is being written does not count yet."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def starts(path: Path) -> int:
    """How many server processes were started with this log."""
    return sum(entry["event"] in ("start", "refused") for entry in read_log(path))


def running(log: Path) -> set[int]:
    """Ids of the server processes with this log that live."""
    pids = {one["pid"] for one in read_log(log) if one["event"] == "start"}
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def journal(path: Path) -> list[str]:
    """What was executed, in order: one entry per `send`."""
    return path.read_text().splitlines() if path.exists() else []


def prepare() -> None:
    """Starts what servers are forked from, for a test that counts processes and pipes."""
    forkserver.ensure_running()


def end_with_parent() -> None:
    """In a new process: whatever kills the tests, nothing of them stays."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _run(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """In the new process: the program as if it had been started by itself."""
    end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, str(Path(words[0]).parent))
    sys.argv[:] = words
    runpy.run_path(words[0], run_name="__main__")


class HttpProcess:
    """A test server with a port, as a process that can be killed, stopped and started again."""

    def __init__(self, folder: Path, *arguments: str, program: str = "http_server.py") -> None:
        self._folder = folder
        self._program = program
        self._arguments = arguments
        self._port_file = folder / f"{Path(program).name}.{id(self)}.port"
        self._process: ForkServerProcess | None = None
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/sse" if self._is_sse else f"{self.origin}/mcp"

    @property
    def _is_sse(self) -> bool:
        return self._program == "sse_server.py" or "sse" in self._arguments

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    def start(self) -> None:
        """Starts, on the same port as before where there was one, and waits until it listens."""
        self._port_file.unlink(missing_ok=True)
        words = [str(HERE / self._program), *self._arguments]
        words += ["--port-file", str(self._port_file), "--port", str(self.port)]
        self._process = process = FORKS.Process(target=_run, args=(words, dict(os.environ)), daemon=True)
        process.start()
        wait_until(lambda: self._port_file.exists() or process.exitcode is not None, START_LIMIT)
        assert process.exitcode is None, f"{self._program} did not start: {process.exitcode}"
        self.port = int(self._port_file.read_text())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def plan(self, kind: str, **facts: Any) -> None:
        """The next tool call meets this fault; see `wire_faults.Fault`."""
        self.control(faults=[{"kind": kind, **facts}])

    def control(self, **order: Any) -> None:
        request = urllib.request.Request(
            f"{self.origin}/control", json.dumps(order).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=patient(5)) as response:
            response.read()

    def state(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.origin}/control", timeout=patient(5)) as response:
            return json.load(response)

    def seen(self, method: str) -> list[dict[str, Any]]:
        return [request for request in self.state()["seen"] if request["method"] == method]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
