"""What a conversation looks like: text as it comes, lines of what is done, and who is at work.

On a terminal Markdown is set block by block, above a line that moves. Where there is none, text goes to
stdout as it is and the rest to stderr, with nothing that steers one.
"""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.screen import Screen, cleaned, plain

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.live import Live
    from rich.spinner import Spinner

_FENCES = ("```", "~~~")
_MOVES = 10  # times a second


class Transcript(Protocol):
    def text(self, delta: str) -> None:
        """A piece of an answer."""
        ...

    def end_text(self) -> None: ...

    def heading(self, agent: str) -> None:
        """Who begins to work, or speaks."""
        ...

    def line(self, markup: str) -> None:
        """Beside the text: what is done."""
        ...

    def working(self, text: str) -> None:
        """Who is at work; empty for nobody."""
        ...

    def still(self) -> "AbstractContextManager[None]":
        """Nothing moves within: somebody is asked."""
        ...


class SilentTranscript:
    """Shows nothing: what came of it is printed as one document."""

    def text(self, delta: str) -> None: ...

    def end_text(self) -> None: ...

    def heading(self, agent: str) -> None: ...

    def line(self, markup: str) -> None: ...

    def working(self, text: str) -> None: ...

    @contextmanager
    def still(self) -> Generator[None]:
        yield


class PipedTranscript(SilentTranscript):
    """Text to stdout, lines to stderr."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._is_open = False

    def text(self, delta: str) -> None:
        shown = cleaned(delta) if self._screen.is_terminal else delta.encode("utf-8", "replace").decode()
        sys.stdout.write(shown)
        sys.stdout.flush()
        self._is_open = not delta.endswith("\n") if delta else self._is_open

    def end_text(self) -> None:
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False

    def line(self, markup: str) -> None:
        self.end_text()
        self._screen.aside(markup)


class QuietTranscript(PipedTranscript):
    """The text and nothing else."""

    def line(self, markup: str) -> None:
        self.end_text()


class Terminal:
    """Whole blocks are printed for good; the one being written moves, with who is at work below it."""

    def __init__(self, screen: Screen) -> None:
        self._console = screen.out
        self._text = ""
        self._working = ""
        self._is_apart = True  # whether a blank line, or nothing, is above
        self._spinner: Spinner | None = None
        self._motion = Motion(self._console, self._moving)

    def text(self, delta: str) -> None:
        with self._motion.lock:
            self._text += cleaned(delta)
            whole, self._text = split_blocks(self._text)
            if whole.strip():
                self._print(whole)
        self._move()

    def end_text(self) -> None:
        with self._motion.lock:
            rest, self._text = self._text, ""
            if rest.strip():
                self._print(rest)
        self._move()

    def heading(self, agent: str) -> None:
        self.end_text()
        with self._motion.lock:
            if not self._is_apart:
                self._console.print()
            self._console.print(f"[bold magenta]{plain(agent)}[/]", highlight=False)
            self._is_apart = True

    def line(self, markup: str) -> None:
        self.end_text()
        with self._motion.lock:
            self._console.print(markup, highlight=False)
            self._is_apart = not markup

    def working(self, text: str) -> None:
        self._working = text
        self._move()

    @contextmanager
    def still(self) -> Generator[None]:
        self.end_text()
        working = self._working
        self.working("")
        try:
            yield
        except (KeyboardInterrupt, EOFError):
            self._console.print()  # what was being typed stays in its line
            raise
        finally:
            self._is_apart = False
            self.working(working)

    def _print(self, text: str) -> None:
        if not self._is_apart:
            self._console.print()
        self._console.print(_markdown(text))
        self._is_apart = False

    def _move(self) -> None:
        if self._working or self._text.strip():
            self._motion.start()
        else:
            self._motion.stop()

    def _moving(self) -> "RenderableType":
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        parts: list[RenderableType] = []
        if self._text.strip():
            parts += [] if self._is_apart else [""]
            parts.append(_Tail(_markdown(self._text)))
        if self._working:
            self._spinner = self._spinner or Spinner("dots", style="cyan")
            self._spinner.update(text=Text.from_markup(f"[dim]{plain(self._working)}[/]"))
            parts.append(self._spinner)
        return Group(*parts)


class Motion:
    """What moves below all that is printed. Who prints holds the lock: Rich counts lines while it moves."""

    def __init__(self, console: "Console", picture: "Callable[[], RenderableType]") -> None:
        self._console = console
        self._picture = picture
        self._live: Live | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.lock = threading.RLock()

    def start(self) -> None:
        if self._live is not None:
            return
        from rich.live import Live

        self._live = Live(
            console=self._console, transient=True, auto_refresh=False, get_renderable=self._picture
        )
        self._live.start()
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, args=(self._live,), name="motion", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._live is None or self._thread is None:
            return
        self._stopped.set()
        self._thread.join()
        self._live.stop()
        self._live = self._thread = None

    def _run(self, live: "Live") -> None:
        while not self._stopped.wait(1 / _MOVES):
            with self.lock:
                live.refresh()


class _Tail:
    """The last lines of something that may be higher than the screen."""

    def __init__(self, content: "RenderableType") -> None:
        self._content = content

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.segment import Segment

        lines = console.render_lines(self._content, options, pad=False)
        for line in lines[-max(3, console.height - 4) :]:
            yield from line
            yield Segment.line()


def split_blocks(text: str) -> tuple[str, str]:
    """What is complete, up to the last blank line outside of fenced code, and the rest."""
    lines = text.splitlines(keepends=True)
    end, fence = 0, ""
    for at, line in enumerate(lines):
        word = line.strip()
        if fence:
            fence = "" if word.startswith(fence) else fence
        elif word.startswith(_FENCES):
            fence = word[:3]
        elif not word and line.endswith("\n"):
            end = at + 1
    return "".join(lines[:end]), "".join(lines[end:])


def markdown(text: str) -> "RenderableType":
    """Links are written out: what is shown is where they lead."""
    return _markdown(cleaned(text))


def _markdown(text: str) -> "RenderableType":
    from rich.markdown import Markdown

    return Markdown(text.strip("\n"), hyperlinks=False)
