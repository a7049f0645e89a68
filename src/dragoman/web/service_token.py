"""The bearer token of this installation: made at first start, readable by its owner only."""

import os
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic

from dragoman.errors import KeyFault
from dragoman.private_files import make_private_directory, write_draft
from dragoman.telemetry.logs import get_logger

_PREFIX = "drg_"
_LOOK_EVERY = 1.0


class ServiceToken:
    """The token as its file has it: who removes the file of a running service ends the old one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = get_or_make_token(path).encode()
        self._looked_at = monotonic()

    def is_token(self, word: bytes) -> bool:
        if monotonic() - self._looked_at >= _LOOK_EVERY:
            self._look()
        return bool(self._token) and compare_digest(word, self._token)

    def _look(self) -> None:
        try:
            self._token = get_or_make_token(self._path).encode()
        except (KeyFault, OSError) as error:
            self._token = b""  # until it can be read again nothing is taken for it
            get_logger().warning("service_token.unreadable", cause=type(error).__name__)
        self._looked_at = monotonic()


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
