"""What a conversation looks like: text as it comes, lines of what is done, and who is at work.

Where there is no terminal, text goes to stdout as it is and the rest to stderr, with nothing that steers one.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.screen import Screen, cleaned

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


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
