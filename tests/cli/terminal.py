"""A command at a terminal of its own: what it shows is read, keys are typed. Gone with the block.

It is a process that is forked from one that has imported what it needs.
"""

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess

from patience import patient
from servers.processes import FORKS, end_with_parent

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]|\r|[\x01\x02]")


class Terminal:
    def __init__(self, process: ForkServerProcess, master: int) -> None:
        self.process = process
        self._master = master
        self._seen = b""
        self._read_to = 0

    @property
    def shown(self) -> str:
        """All of it so far, without what moves the cursor."""
        return _CODES.sub("", self._seen.decode(errors="replace"))

    @property
    def screen(self) -> str:
        """What a person sees in the end, scrolled back to the beginning."""
        return screen_of(self._seen.decode(errors="replace"))

    def until(self, text: str, within: float = 90.0) -> str:
        """What was shown since the last `until`, up to and with the text."""
        limit = time.monotonic() + patient(within)
        while (at := self.shown.find(text, self._read_to)) < 0:
            left = limit - time.monotonic()
            is_going_on = left > 0 and self._take(left)
            assert is_going_on, f"{text!r} never came:\n{self.shown[self._read_to :]}"
        begin, self._read_to = self._read_to, at + len(text)
        return self.shown[begin : self._read_to]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press_interrupt(self) -> None:
        """As quick as a person: between its prompt and its reading, `input` hears nothing for an instant."""
        time.sleep(patient(0.3))
        self.type("\x03")

    def press_end(self) -> None:
        self.type("\x04")

    def wait(self, within: float = 60.0) -> int:
        limit = time.monotonic() + patient(within)
        while self._take(max(0.0, limit - time.monotonic())):
            pass
        self.process.join(max(0.1, limit - time.monotonic()))
        assert self.process.exitcode is not None, f"it goes on:\n{self.shown[self._read_to :]}"
        return self.process.exitcode

    def _take(self, within: float) -> bool:
        """False at the end of the process, or of the time."""
        ready, _, _ = select.select([self._master, self.process.sentinel], [], [], within)
        data = os.read(self._master, 65536) if self._master in ready else b""
        self._seen += data
        return bool(data)


def screen_of(text: str) -> str:
    """The little of a terminal that Rich and readline use: lines, cursor up, erase, return, backspace."""
    lines, row, column = [""], 0, 0
    for match in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>]|([^\x1b])", text):
        number, code, sign = match.groups()
        amount = int(number) if number and number.isdigit() else 1
        if code == "A":
            row = max(0, row - amount)
        elif code == "C":
            column += amount
        elif code == "D":
            column = max(0, column - amount)
        elif code == "K":
            lines[row] = "" if number == "2" else lines[row][:column]
        elif sign == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif sign == "\r":
            column = 0
        elif sign == "\b":
            column = max(0, column - 1)
        elif sign and sign >= " ":
            lines[row] = lines[row].ljust(column)[:column] + sign + lines[row][column + 1 :]
            column += 1
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def at_terminal(*words: str, columns: int = 100, rows: int = 30) -> Generator[Terminal]:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    environment = os.environ | {"TERM": "xterm-256color"}
    process = FORKS.Process(target=_command, args=(os.ttyname(slave), words, environment), daemon=True)
    process.start()
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.join()
        process.close()
        os.close(slave)
        os.close(master)


def _command(terminal: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
    """In the new process: `dragoman` as a shell would start it at this terminal."""
    from dragoman.cli import root

    end_with_parent()
    os.setsid()
    opened = os.open(terminal, os.O_RDWR)  # the first that a leader of a session opens is its own
    for number in (0, 1, 2):
        os.dup2(opened, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(root.run([*words]))
