"""The operator's bearer token: from the environment, so that processes share it, or made at first start in a
file of the home that only its owner reads.
"""

import os
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic

from dragoman.errors import InvalidConfig, KeyFault
from dragoman.private_files import make_private_directory, write_draft
from dragoman.settings import Settings
from dragoman.telemetry.logs import get_logger

_PREFIX = "drg_"
_LOOK_EVERY = 1.0
_SHORTEST = 32


class ServiceToken:
    """The token as the environment has it, or else its file: who removes the file of a running service ends
    the old one. `InvalidConfig` for one that could be guessed.

    A file that is as it was is not read again: that takes a descriptor, and there may be none left.
    """

    def __init__(self, settings: Settings) -> None:
        self._path = None if settings.operator_token else settings.token_file
        self._tokens = [token.encode() for token in settings.operator_token]
        if any(len(token) < _SHORTEST for token in self._tokens):
            raise InvalidConfig(
                f"DRAGOMAN_OPERATOR_TOKEN must have at least {_SHORTEST} characters",
                hint="make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        self._state: tuple[int, ...] | None = None
        self._looked_at = 0.0
        if self._path is not None:
            self._state = _state_of(self._path)  # of before it is read, here as below
            self._tokens = [get_or_make_token(self._path).encode()]
            self._looked_at = monotonic()

    @property
    def current(self) -> str:
        """Of several the first: the others are on their way out."""
        return self._tokens[0].decode() if self._path is None else get_or_make_token(self._path)

    def is_token(self, word: bytes) -> bool:
        if self._path is not None and monotonic() - self._looked_at >= _LOOK_EVERY:
            self._look(self._path)
        # All of them, whichever it is: how long it takes tells nothing.
        return sum(compare_digest(word, token) for token in self._tokens) > 0

    def _look(self, path: Path) -> None:
        self._looked_at = monotonic()
        try:
            state = _state_of(path)
            if state is not None and state == self._state:
                return
            self._tokens = [get_or_make_token(path).encode()]
            self._state = state  # a change since then is seen next time
        except (KeyFault, OSError) as error:
            self._tokens, self._state = [], None  # until it can be read again nothing is taken for it
            get_logger().warning("service_token.unreadable", cause=type(error).__name__)


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Another after every change of the file, of its rights too; None where it cannot be told."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def get_or_make_token(path: Path) -> str:
    """What the file holds; a new token where there is none. Two that start at once agree on one."""
    if token := find_token(path):
        return token
    make_private_directory(path.parent)
    fresh = write_draft(path, f"{_PREFIX}{token_urlsafe(32)}\n".encode())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    token = find_token(path)
    if token is None:
        raise KeyFault(f"the token file {path} is empty", hint="remove it: a new one is made then")
    return token


def find_token(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFault(
            f"the token file {path} cannot be read: {type(error).__name__}",
            hint="mend its owner and mode, or remove it: a new one is made then",
        ) from None
