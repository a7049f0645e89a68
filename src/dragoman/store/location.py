"""Where a database is: what people write as its URL, checked, and what of it may be shown."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from dragoman import extras
from dragoman.errors import InvalidConfig
from dragoman.private_files import make_private_directory, open_private

_FORMS = "use sqlite:////path/to/dragoman.db or postgresql://user:password@host/database"
LONGEST_STATEMENT = 10.0  # seconds after which a PostgreSQL that lives ends a statement
LONGEST_SILENCE = 12.0  # seconds after which one that says nothing is not waited for any more
_POSTGRES_LIMITS = {
    # Seconds for each of the hosts that the URL names.
    "connect_timeout": "5",
    # A machine that vanished says nothing: its connections are over after 19 s in which nobody asks anything,
    # and after 12 s once something was sent that it does not acknowledge.
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "12000",
}
_CREDENTIALS = re.compile(r"(?<=://).*@", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """One database. `shown` has no user, no password and no options; `url` has all of them."""

    url: URL = field(repr=False)
    shown: str

    @classmethod
    def of(cls, text: str) -> "DatabaseLocation":
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            raise InvalidConfig("the database URL cannot be read", hint=_FORMS) from None
        backend = url.drivername.partition("+")[0]
        if backend in ("postgres", "postgresql"):
            return cls._postgres(url, text)
        if backend == "sqlite":
            return cls._sqlite(url)
        raise InvalidConfig(f"{backend[:40]!r} is no database that Dragoman can use", hint=_FORMS)

    @classmethod
    def _postgres(cls, url: URL, text: str) -> "DatabaseLocation":
        if "@" in (url.host or "") or "@" in (url.database or ""):
            raise InvalidConfig(
                "the database URL has more than one @", hint="in a password, write @ as %40, / as %2F"
            )
        extras.require("postgres")
        shown = _CREDENTIALS.sub("", text).partition("?")[0]
        url = url.set(drivername="postgresql+psycopg")
        return cls(url.set(query={**_POSTGRES_LIMITS, **url.query}), shown)

    @classmethod
    def _sqlite(cls, url: URL) -> "DatabaseLocation":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise InvalidConfig(
                "a SQLite store needs a file", hint="for example sqlite:////home/me/dragoman.db"
            )
        return cls(url.set(drivername="sqlite+aiosqlite"), url.database)

    @property
    def is_sqlite(self) -> bool:
        return self.url.drivername.startswith("sqlite")

    @property
    def blocking_url(self) -> URL:
        """The same database through a driver that blocks: psycopg is both kinds, aiosqlite is not."""
        return self.url.set(drivername="sqlite+pysqlite") if self.is_sqlite else self.url

    def without_password(self, text: str) -> str:
        return text.replace(self.url.password, "***") if self.url.password else text

    def make_file(self) -> None:
        """Makes SQLite's file and its directory, for their owner alone; existing ones stay as they are."""
        path = Path(self.url.database or "")
        make_private_directory(path.parent)
        # Never opened when it exists: closing a second descriptor drops the locks that SQLite holds.
        if not path.exists():
            try:
                os.close(open_private(path, os.O_RDWR | os.O_EXCL))
            except FileExistsError:
                return  # another process was first
