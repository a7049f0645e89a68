"""`dragoman` and `python` for snippets, forked from one process that has imported everything.

A shell finds two small programs on its path; each hands its words, folder, environment and files to that
process and waits for the end. Real processes, at a hundredth of the cost of starting them.
"""

import array
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from patience import patient
from servers.processes import stdio

# Started without site-packages, in 15 ms. When it is killed its socket closes, and its program is stopped.
_CLIENT = """#!{python} -ISE
import array, json, os, socket, sys
if {program!r} == "python" and sys.argv[1:2] and sys.argv[1].startswith("-"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])  # only scripts are forked
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
wish = {{"program": {program!r}, "itself": __file__, "words": sys.argv[1:], "folder": os.getcwd()}}
wish["environment"] = dict(os.environ)
files = array.array("i", [0, 1, 2])
line.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
line.sendall(json.dumps(wish).encode() + b"\\n")
os.close(0)
os.close(1)
sys.exit(int(line.makefile().readline() or 1))
"""


@contextmanager
def forked_programs(folder: Path) -> Generator[Path]:
    """A folder for the path of a shell: its `dragoman` and `python` are started by forking."""
    address, programs = folder / "socket", folder / "bin"
    programs.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, __file__, str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            for program in ("dragoman", "python"):
                file = programs / program
                facts = {"python": sys.executable, "address": str(address), "program": program}
                file.write_text(_CLIENT.format(**facts))
                file.chmod(0o755)
            yield programs
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait(patient(10))


def serve(address: str) -> None:
    """Until stdin ends."""
    _warm_up()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    print("ready", flush=True)
    while True:
        line, _ = listener.accept()
        files = array.array("i")
        _, parts, _, _ = line.recvmsg(1, socket.CMSG_SPACE(3 * files.itemsize))
        files.frombytes(parts[0][2][: 3 * files.itemsize])
        wish = json.loads(line.makefile().readline())
        child = os.fork()
        if child == 0:
            line.close()
            listener.close()
            os._exit(_perform(wish, list(files)))
        for file in files:
            os.close(file)
        threading.Thread(target=_look_after, args=(line, child), daemon=True).start()


def _warm_up() -> None:
    """What a command imports and builds when it first needs it is then there for all of them."""
    import dragoman.server
    import email_server
    import tasks_service

    _ = dragoman.server, email_server, tasks_service
    with TemporaryDirectory() as home, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        os.environ.update({"DRAGOMAN_HOME": home, "DRAGOMAN_MODEL": "offline"})
        raw = stdio()
        _dragoman(["connectors", "add", "raw", "--", raw["command"], *raw["args"]])
        _dragoman(["ask", "hello"])
    gc.collect()
    gc.freeze()


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def _look_after(line: socket.socket, child: int) -> None:
    """Tells a client how its program ended."""
    threading.Thread(target=_stop_without_client, args=(line, child), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):
        line.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
        line.shutdown(socket.SHUT_RDWR)


def _stop_without_client(line: socket.socket, child: int) -> None:
    with line, suppress(OSError):
        if not line.recv(1):
            os.kill(child, signal.SIGTERM)


def _perform(wish: dict[str, Any], files: list[int]) -> int:
    for place, file in enumerate(files):
        os.dup2(file, place)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(wish["environment"])
    os.chdir(wish["folder"])
    # Servers that are started find these programs first, as they would find those of the installation.
    sys.executable = str(Path(wish["itself"]).with_name("python"))
    try:
        return _dragoman(wish["words"]) if wish["program"] == "dragoman" else _python(wish["words"])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _dragoman(words: list[str]) -> int:
    from dragoman.cli.root import run

    return run(words)


def _python(words: list[str]) -> int:
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).parent.resolve()))
    runpy.run_path(words[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
