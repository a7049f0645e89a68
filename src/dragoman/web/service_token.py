"""The bearer token of this installation: made at first start, readable by its owner only."""

import os
from pathlib import Path
from secrets import token_urlsafe

from dragoman.errors import KeyFault

_PREFIX = "drg_"


def get_or_make_token(path: Path) -> str:
    """What the file holds; a new token where there is none. Two that start at once agree on one."""
    if token := find_token(path):
        return token
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, f"{_PREFIX}{token_urlsafe(32)}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    token = find_token(path)
    if token is None:
        raise KeyFault(
            f"the token file {path} is empty", hint="remove it: a new one is made at the next start"
        )
    return token


def find_token(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFault(
            f"the token file {path} cannot be read: {type(error).__name__}",
            hint="mend its owner and mode, or remove it: a new one is made at the next start",
        ) from None
