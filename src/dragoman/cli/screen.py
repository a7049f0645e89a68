"""What a person or a program sees: data on stdout, everything else on stderr.

Text of servers is somebody else's: what could steer a terminal is taken out before it is shown.
"""

import json
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status

# Control characters but tab and newline, C1, and what turns the direction of writing.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PIPE_WIDTH = 160


class Screen:
    """`as_json` turns every answer into one JSON document on stdout."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def _out(self) -> "Console":
        return _console(is_error=False)

    @cached_property
    def _err(self) -> "Console":
        return _console(is_error=True)

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    def show(self, *parts: "RenderableType") -> None:
        for part in parts:
            self._out.print(part, highlight=False)

    def aside(self, *parts: "RenderableType") -> None:
        """What is no data, as it is, on stderr."""
        for part in parts:
            self._err.print(part, highlight=False, soft_wrap=True)

    @property
    def out(self) -> "Console":
        """For what moves on the screen."""
        return self._out

    def data(self, value: Any) -> None:
        """Any JSON value, indented; coloured for a person."""
        text = json.dumps(value, indent=2, ensure_ascii=False)
        if self.is_terminal and not self.as_json:
            from rich.json import JSON

            self._out.print(JSON(cleaned(text)))
        else:
            # A lone surrogate is legal JSON and no legal UTF-8.
            sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")

    def text(self, text: str) -> None:
        """Text of a tool: unchanged for a program, harmless for a terminal."""
        shown = cleaned(text) if self.is_terminal else text.encode("utf-8", "backslashreplace").decode()
        sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")

    def note(self, text: str) -> None:
        self._say("note", "cyan", text)

    def warn(self, text: str) -> None:
        self._say("warning", "yellow", text)

    def fail(self, problem: Mapping[str, Any]) -> None:
        """`error:`, why, and what to do next; with --json the problem itself as well."""
        if self.as_json:
            self.data(problem)
        self._say("error", "bold red", str(problem.get("detail") or problem.get("title") or "it failed"))
        if (cause := problem.get("cause")) and cause != problem.get("code"):
            self._say("cause", "red", str(cause))
        if hint := problem.get("hint"):
            self._say("hint", "cyan", str(hint))

    @contextmanager
    def busy(self, text: str, news: Callable[[], str | None] | None = None) -> Generator[None]:
        """A spinner while something takes its time, for people only. `news` is asked each second for more."""
        if not text or self.as_json or not sys.stderr.isatty():
            yield
            return
        with self._err.status(plain(text)) as status:
            if news is None:
                yield
                return
            over = Event()
            watcher = Thread(target=_watched, args=(status, text, news, over), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                over.set()
                watcher.join()

    def status(self) -> "StatusLine":
        """A line that changes while something takes its time; whoever takes it closes it."""
        return StatusLine(self._err)

    def _say(self, label: str, style: str, text: str) -> None:
        from rich.text import Text

        line = Text.assemble((f"{label}: ", style), cleaned(text))
        self._err.print(line, highlight=False, soft_wrap=True)


class StatusLine:
    """A spinner with words, on stderr, that makes room while a person is asked."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if self._status is None:
            self._status = self._console.status(plain(text))
            self._status.start()
        else:
            self._status.update(plain(text))

    def hide(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    close = hide


def _watched(status: "Status", text: str, news: Callable[[], str | None], over: Event) -> None:
    started = monotonic()
    while not over.wait(1.0):
        told = news()
        status.update(plain(f"{text} {monotonic() - started:.0f} s{f': {told}' if told else ''}", 120))


def _console(is_error: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if is_error else sys.stdout
    return Console(stderr=is_error, width=None if stream.isatty() else _PIPE_WIDTH)


def cleaned(text: str) -> str:
    return _STEERING.sub("�", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode()


def plain(text: str, limit: int = 0) -> str:
    """One line for a cell or a label, with nothing that Rich would read as markup."""
    from rich.markup import escape

    line = " ".join(cleaned(text).split())
    if limit and len(line) > limit:
        line = line[: limit - 1] + "…"
    return escape(line)


def ago(moment: str | None) -> str:
    """`3 minutes ago`, `in 12 s`; empty without a time."""
    if not moment:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    size = abs(seconds)
    if size < 1:
        return "now"
    for limit, unit, name in ((100, 1, "s"), (5400, 60, "min"), (172800, 3600, "h"), (10**12, 86400, "days")):
        if size < limit:
            amount = f"{size / unit:.0f} {name}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return moment


def milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 10_000 else f"{value / 1000:.1f} s"
