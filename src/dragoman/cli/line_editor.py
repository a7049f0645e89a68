"""The line that a person types: with editing, history and completion on a terminal, as it comes elsewhere."""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dragoman.private_files import open_private

_MOST = 1000
_BOLD, _PLAIN = "\001\033[1;36m\002", "\001\033[0m\002"  # the marks tell readline that these take no room
Words = Callable[[], Sequence[str]]


class LineEditor:
    """Fills `Prompt`. Only what `say` reads is remembered: answers are not."""

    def __init__(self, is_edited: bool) -> None:
        self._is_edited = is_edited

    def say(self, label: str) -> str:
        """A message; a line that ends with a backslash goes on in the next."""
        lines = [self.read(label)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self.read("… "))
        text = "\n".join(lines).strip()
        if text and self._is_edited:
            import readline

            readline.add_history(text.replace("\n", " "))
        return text

    def read(self, label: str) -> str:
        if self._is_edited:
            return input(f"{_BOLD}{label}{_PLAIN}")
        if sys.stdin.isatty():
            sys.stderr.write(label)
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


@contextmanager
def open_editor(history: Path, words: Words) -> Generator[LineEditor]:
    """`words` are what a word can be completed to. The history is a file of its owner's alone."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield LineEditor(is_edited=False)
        return
    import readline

    _read_history(history)
    readline.set_auto_history(False)
    readline.set_completer_delims(" \t\n")
    readline.set_completer(_completer(words))
    readline.parse_and_bind("tab: complete")
    try:
        yield LineEditor(is_edited=True)
    finally:
        readline.set_completer(None)
        _write_history(history)


def _completer(words: Words) -> Callable[[str, int], str | None]:
    def complete(text: str, state: int) -> str | None:
        found = [word for word in words() if text[:1] in ("/", "@") and word.startswith(text)]
        return found[state] + " " if state < len(found) else None

    return complete


def _read_history(path: Path) -> None:
    import readline

    readline.clear_history()
    try:
        readline.read_history_file(path)
    except OSError:
        return  # the first time, or not a file of ours: then there is none


def _write_history(path: Path) -> None:
    import readline

    readline.set_history_length(_MOST)
    try:
        os.close(open_private(path))
        readline.write_history_file(path)
    except OSError:
        return  # a home that cannot be written to is no reason to fail at the very end
