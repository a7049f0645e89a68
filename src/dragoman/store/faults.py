"""What the databases' own errors mean in Dragoman's words. No driver error leaves the store.

Neither SQL nor parameters nor a password get into a message: only the driver's own sentence does.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dragoman.errors import Conflict, InvalidArguments, NotFound, StoreFull, StoreUnavailable
from dragoman.store.location import DatabaseLocation

_BUSY = ("the database is locked by another process", "close what else writes to it, then try again")
_FULL = ("the disk is full: nothing was written", "free some space; reading still works")
_SQLITE = {
    3: ("Dragoman may not use the database file", "check who owns the file and its directory"),
    5: _BUSY,
    6: _BUSY,
    8: ("the database file is read-only", "check who owns the file and its directory"),
    10: ("the disk reports an error", "check the disk and the file system"),
    11: ("the database file is damaged", "restore it from a backup"),
    13: _FULL,
    14: ("the database file cannot be opened", "check that its directory exists and may be written"),
    26: ("the file is no SQLite database", "choose another path in DRAGOMAN_DATABASE_URL"),
}
_POSTGRES = {
    "25006": ("the database is read-only", "connect to the primary server"),
    "25P03": (
        "this process was held up for too long: nothing was written",
        "is its machine too busy? try again",
    ),
    "28000": ("PostgreSQL refuses this user", "check user and pg_hba.conf"),
    "28P01": ("PostgreSQL refuses this password", "check user and password in DRAGOMAN_DATABASE_URL"),
    "3D000": ("PostgreSQL has no database of this name", "create it first: createdb NAME"),
    "42501": ("this PostgreSQL user may not do that", "grant it the right to create tables in its database"),
    "42P07": ("the database has tables of another program", "give Dragoman a database of its own"),
    "53100": _FULL,
    "53300": ("PostgreSQL has no free connection", "raise max_connections or run fewer processes"),
    "55P03": _BUSY,
    "57014": ("the database took too long", "see what else it does: pg_stat_activity; then try again"),
    "57P03": ("PostgreSQL is starting or stopping", "try again in a moment"),
}
# A refused connection has no code, only a sentence; on a server in another language it stays "unknown".
_SENTENCES = {
    "password authentication failed": "28P01",
    "no pg_hba.conf entry": "28000",
    "does not exist": "3D000",
    "too many clients": "53300",
    "the database system is": "57P03",
}
_UNKNOWN = ("the database does not answer", "check that it runs and that DRAGOMAN_DATABASE_URL is right")
_FOREIGN_KEY = ("23503", 787)
_TEXT = "a value holds characters that the database cannot keep"


@contextmanager
def translated(location: DatabaseLocation) -> Generator[None]:
    """Turns what a driver raises inside the block into errors of ours."""
    try:
        yield
    except DBAPIError as error:
        _raise(error, location)
    except (PoolTimeout, OSError) as error:
        raise _unavailable(_UNKNOWN, location, str(error)) from None
    except UnicodeEncodeError:
        raise InvalidArguments(_TEXT) from None


def _raise(error: DBAPIError, location: DatabaseLocation) -> NoReturn:
    code = _code(error)
    if isinstance(error, IntegrityError):
        if code in _FOREIGN_KEY:
            raise NotFound("the connector is gone", hint="it was removed in the meantime") from None
        raise Conflict("this already exists", cause=_sentence(error, location)) from None
    if isinstance(error, DataError):
        raise InvalidArguments(_TEXT, cause=_sentence(error, location)) from None
    known = _SQLITE.get(code & 0xFF) if isinstance(code, int) else _POSTGRES.get(code or "")
    raise _unavailable(known or _UNKNOWN, location, _sentence(error, location)) from None


def _code(error: DBAPIError) -> int | str | None:
    for name in ("sqlite_errorcode", "sqlstate"):
        code = getattr(error.orig, name, None)
        if code is not None:
            return code
    sentence = str(error.orig)
    return next((code for words, code in _SENTENCES.items() if words in sentence), None)


def _sentence(error: DBAPIError, location: DatabaseLocation) -> str:
    lines = str(error.orig).strip().splitlines()
    return location.without_password(lines[0]) if lines else type(error.orig).__name__


def _unavailable(known: tuple[str, str], location: DatabaseLocation, cause: str) -> StoreUnavailable:
    message, hint = known
    kind = StoreFull if known is _FULL else StoreUnavailable
    return kind(f"{message} ({location.shown})", hint=hint, cause=location.without_password(cause))
