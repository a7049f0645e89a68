"""`dragoman demo`: a service with four sample servers, to look at. Its processes and files go with it."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Annotated, Any

import typer

from dragoman.cli.door import Door, HttpDoor, Refused, RunningService, path_of
from dragoman.cli.screen import Screen
from dragoman.cli.session import failures_on
from dragoman.errors import Unreachable
from dragoman.examples import examples
from dragoman.private_files import make_private_directory, open_private
from dragoman.settings import Settings

# Of the variables that speak to Dragoman, those that a demonstration heeds: its home is its own.
_HEEDED = ("DRAGOMAN_MODEL", "DRAGOMAN_LOG_LEVEL", "DRAGOMAN_LOG_JSON")
_PORTS = (*range(8765, 8800), 0)
_STOP_LIMIT = 15.0
_OFFLINE = """
That was the built-in offline model: plain matching. It finds tools by words, and shows a form when not sure.
A language model adds what matching cannot: it understands, plans several steps over several connectors, and
writes. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, or start Ollama; then run it again.
"""
_NEXT = """  export {variables}
  dragoman chat
  dragoman tools list
  dragoman call email__send-email to=ada@example.com subject=Tea body='At four?'
  dragoman call tracker__list_issues repository=xyne assignee=octocat
  dragoman call chat__read_messages sender=oncall limit=1
  dragoman call tasks__list_tasks assignee=me
  dragoman connect claude
  curl -s -H "Authorization: Bearer $(dragoman token)" {url}/api/connectors
Ctrl-C stops everything."""


def demo(
    once: Annotated[bool, typer.Option("--once", help="Show it and stop, without waiting.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep everything here; else nothing is left afterwards.", show_default=False),
    ] = None,
) -> None:
    """Show Dragoman at work: a service with four sample servers, a call, a thread. Until Ctrl-C.

    \b
    dragoman demo
    dragoman demo --once
    dragoman demo --folder .demo

    It has a home of its own: nothing that you have is read or changed. It needs no key and no network.
    """
    signal.signal(signal.SIGTERM, end_by_interrupt)
    screen = Screen(False)
    with failures_on(screen), ExitStack() as stack:
        place = folder or Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-demo-")))
        make_private_directory(place)
        try:
            _show(screen, stack, place.absolute(), once)
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def _show(screen: Screen, stack: ExitStack, place: Path, once: bool) -> None:
    settings = Settings(home=place / "home")
    environment = clean_environment() | {"DRAGOMAN_HOME": str(settings.home)}

    show_title(screen, "1. A sample service for tasks, with an OpenAPI document")
    tasks = stack.enter_context(
        started([*sample("tasks_service"), "--data", str(place), "--port", "0"], environment, place)
    )
    tasks_url = first_line(tasks, "the sample service").strip()
    screen.text(f"{tasks_url}/openapi.json")

    show_title(screen, "2. Dragoman itself: dragoman serve")
    service = stack.enter_context(
        started([*COMMAND, "serve", "--json", "--port", str(_free_port())], environment)
    )
    facts = json.loads(first_line(service, "the service"))
    screen.text(f"It serves at {facts['url']}. Its console, signed in once by this link:\n{facts['console']}")
    door = HttpDoor(RunningService(facts["url"], settings.token_file.read_text().strip()))

    show_title(screen, "3. Four connectors: three local programs that speak MCP, and the service")
    _put_connectors(door, place, tasks_url)
    _dragoman(["connectors", "list"], environment)

    show_title(screen, "4. A call: dragoman call mcp_email_read-emails limit=2")
    _dragoman(["call", "mcp_email_read-emails", "limit=2"], environment)

    show_title(screen, "5. A thread: dragoman ask 'check my 2 latest emails'")
    _dragoman(["ask", "check my 2 latest emails"], environment)
    if any(one["is_default"] and one["model"] == "offline" for one in _models(door)):
        screen.text(_OFFLINE.rstrip())
    if once:
        show_title(screen, "That was it: everything is stopped again.")
        return
    show_title(screen, "Now try, in another terminal:")
    screen.text(_NEXT.format(variables=_variables(settings.home), url=facts["url"]))
    sys.stdout.flush()
    service.wait()


def clean_environment() -> dict[str, str]:
    """Without what speaks of another installation."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DRAGOMAN_") or name in _HEEDED
    }


COMMAND = (sys.executable, "-m", "dragoman")


def sample(name: str) -> list[str]:
    return [sys.executable, str(examples() / "servers" / f"{name}.py")]


@contextmanager
def started(
    words: list[str], environment: Mapping[str, str], logs: Path | None = None
) -> Generator[subprocess.Popen[str]]:
    """A process that ends with the block. Ctrl-C is not for it: who started it stops it."""
    with ExitStack() as stack:
        errors = stack.enter_context(os.fdopen(_log(logs), "wb")) if logs else None
        process = subprocess.Popen(  # noqa: S603 - our own programs
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _output(process).close()


def _output(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise ValueError("it was started without a pipe")
    return process.stdout


def first_line(process: subprocess.Popen[str], what: str) -> str:
    """What it says once it listens."""
    if line := _output(process).readline():
        return line
    raise Unreachable(f"{what} of the demonstration did not start", hint="dragoman doctor")


def _free_port() -> int:
    """The usual one, or the next that nobody has."""
    for port in _PORTS:
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    return 0


def _put_connectors(door: Door, place: Path, tasks_url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def program(name: str, *options: str) -> dict[str, Any]:
        command, *args = [*sample(name), *options]
        return {"command": command, "args": args}

    connectors: dict[str, dict[str, Any]] = {
        "email": {
            "description": "A mailbox: read and send e-mail",
            **program("email_server", "--mailbox", str(place / "mailbox.json")),
        },
        "tracker": {
            "description": "An issue tracker: repositories and their issues",
            **program("tracker_server", "--data", str(place)),
        },
        "chat": {
            "description": "A team chat: channels, messages, who is here",
            **program("chat_server", "--data", str(place)),
        },
        "tasks": {"description": "Tasks of a team with their due dates", "openapi": tasks_url},
    }
    with ThreadPoolExecutor(len(connectors)) as threads:
        list(threads.map(_put_connector, repeat(door), connectors, connectors.values()))


def _put_connector(door: Door, name: str, facts: Mapping[str, Any]) -> None:
    """A folder that was kept has it already, with the port of last time."""
    try:
        door.ask("POST", path_of("connectors"), {"name": name, **facts})
    except Refused as refused:
        if refused.problem.get("code") != "conflict":
            raise
        door.ask("PATCH", path_of("connectors", name), facts)


def _dragoman(words: list[str], environment: Mapping[str, str]) -> None:
    """A command as a person types it. What it says of a failure is part of the show."""
    sys.stdout.flush()
    subprocess.run([*COMMAND, *words], env=dict(environment), check=False)  # noqa: S603 - our own


def _models(door: Door) -> list[dict[str, Any]]:
    return door.ask("GET", path_of("models"))["models"]


def _variables(home: Path) -> str:
    """What another terminal must know; the search path only where it would not find the command."""
    folder = Path(sys.executable).parent
    is_found = shutil.which("dragoman") == str(folder / "dragoman")
    path = "" if is_found else f" PATH={shlex.quote(str(folder))}:$PATH"
    return f"DRAGOMAN_HOME={shlex.quote(str(home))}{path}"


def show_title(screen: Screen, text: str) -> None:
    from rich.text import Text

    screen.show(Text(f"\n{text}", "bold"))
    sys.stdout.flush()


def end_by_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _log(folder: Path) -> int:
    return open_private(folder / "tasks.log", os.O_WRONLY | os.O_TRUNC)
