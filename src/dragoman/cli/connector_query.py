"""`dragoman ask --connector`: a whole job for the agent of one connector, in the form this always has."""

import time
from collections.abc import Container, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any

from dragoman.cli import run_lines
from dragoman.cli.door import Door, path_of
from dragoman.cli.run_endings import CODES, tell_end
from dragoman.cli.run_watcher import RunWatcher
from dragoman.cli.screen import Screen

_LOOK = 0.1  # seconds between two looks for the run that the query started
Answer = Mapping[str, Any]


def query_connector(
    door: Door, screen: Screen, watching: RunWatcher, connector: str, query: Mapping[str, Any]
) -> int:
    """The code for how it ended. Its answer comes when all is done, so the run is watched beside it."""
    body = {name: value for name, value in query.items() if value is not None}
    known = {run["id"] for run in _runs(door)}
    answer = _asked(door, path_of("connectors", connector, "query"), body)
    run = _run_of(door, answer, body["query"], known) or answer.result()["metadata"].get("run")
    if run is not None:
        ending = watching.follow(run)
        if ending.end in ("waiting", "left", "cancelled"):
            tell_end(door, screen, run, ending)
            return CODES[ending.end]
    _show(screen, answer.result())
    return 0 if answer.result()["status"] == "success" else 1


def _asked(door: Door, path: str, body: Mapping[str, Any]) -> "Future[Answer]":
    """In a thread that does not keep the process: who leaves finds the answer with the run."""
    answer: Future[Answer] = Future()

    def ask() -> None:
        try:
            answer.set_result(door.ask("POST", path, body))
        except BaseException as error:  # noqa: BLE001
            # boundary: whatever it is belongs to whoever waits for the answer
            answer.set_exception(error)

    Thread(target=ask, name="query", daemon=True).start()
    return answer


def _run_of(door: Door, answer: "Future[Answer]", query: str, known: Container[str]) -> str | None:
    """The run that works on it; None when it was answered at once."""
    while not answer.done():
        for run in _runs(door):
            if run["id"] not in known and query.startswith(run["request"].removesuffix("…")):
                return run["id"]
        time.sleep(_LOOK)
    return None


def _runs(door: Door) -> list[dict[str, Any]]:
    """The newest of those that belong to no thread."""
    return [run for run in door.ask("GET", path_of("runs"), limit=50)["runs"] if run["thread"] is None]


def _show(screen: Screen, answer: Answer) -> None:
    """The text was shown as it came; here is what it rests on, or why there is none."""
    if screen.as_json:
        return screen.data(answer)
    metadata: Mapping[str, Any] = answer["metadata"]
    if answer["status"] == "error":
        error = answer["error"]
        screen.fail({"detail": f"{error['message']} ({error['code']})", "hint": error.get("hint")})
    for context in metadata.get("contexts", ()):
        screen.aside(f"[dim]{run_lines.source(context)}[/]")
    if metadata.get("usage") and (used := run_lines.usage_line(metadata)):
        screen.aside(f"[dim]{used}[/]")
    return None
