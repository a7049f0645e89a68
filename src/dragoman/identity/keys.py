"""API keys: how they are made, and who comes in with one. Only the hash of a key is ever kept.

A key is remembered for `FRESH` seconds, so that another process's word counts soon; this process's own
counts at once. When keys were last used is written in batches by `ApiKeyVerifier.write_uses`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic

from dragoman.identity.authenticated import AuthenticatedCaller, admitted
from dragoman.identity.directory import FRESH, Directory, Person
from dragoman.people import ApiKey
from dragoman.store.protocols import PeopleStore

PREFIX = "drk_"
HINT_LENGTH = 8
_LENGTH = len(PREFIX) + 43
_MOST = 10_000
_USE_STEP = timedelta(minutes=1)


def make_key() -> str:
    return PREFIX + token_urlsafe(32)


def hash_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class _Known:
    """A key as it was read, and what it meant with the person behind it."""

    read_at: float
    key: ApiKey
    person: Person
    admission: AuthenticatedCaller


class ApiKeyVerifier:
    def __init__(self, rows: PeopleStore, directory: Directory) -> None:
        self._rows = rows
        self._directory = directory
        self._known: dict[str, _Known] = {}
        self._changes = 0
        self._noted: dict[str, datetime] = {}
        self._uses: dict[str, datetime] = {}

    async def find(self, token: str) -> AuthenticatedCaller | None:
        """Who the key stands for; None for whatever reason it opens nothing."""
        if len(token) != _LENGTH or not token.startswith(PREFIX):
            return None
        digest = hash_of(token)
        known = self._known.get(digest)
        if known is None or monotonic() - known.read_at >= FRESH:
            known = await self._read(digest)
        if known is None or not _is_open(known.key):
            return None
        key = known.key
        person = await self._directory.find(key.workspace, key.user)
        if person is None or not person.user.is_active:
            return None
        if person is not known.person:
            known.person, known.admission = person, admitted(person, key)
        self._note_use(key.id)
        return known.admission

    def forget(self, workspace: str, user: str | None = None) -> None:
        """Something of their keys changed: the next use asks the store."""
        self._changes += 1
        for digest, known in [*self._known.items()]:
            if known.key.workspace == workspace and user in (None, known.key.user):
                del self._known[digest]

    def forget_all(self) -> None:
        self._changes += 1
        self._known.clear()

    async def write_uses(self) -> None:
        uses, self._uses = self._uses, {}
        await self._rows.used_keys(uses)

    @property
    def has_uses(self) -> bool:
        return bool(self._uses)

    async def _read(self, digest: str) -> _Known | None:
        self._known.pop(digest, None)
        changes, now = self._changes, monotonic()
        key = await self._rows.find_key(digest)
        if key is None or not compare_digest(key.hash, digest):
            return None
        person = await self._directory.find(key.workspace, key.user)
        if person is None:
            return None
        known = _Known(now, key, person, admitted(person, key))
        if changes == self._changes:  # else what was read may be older than what was forgotten
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[digest] = known
        return known

    def _note_use(self, key_id: str) -> None:
        now = datetime.now(UTC)
        before = self._noted.get(key_id)
        if before is None or now - before >= _USE_STEP:
            if len(self._noted) >= _MOST:
                self._noted.clear()
            self._noted[key_id] = self._uses[key_id] = now


def _is_open(key: ApiKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or datetime.now(UTC) < key.expires_at)
