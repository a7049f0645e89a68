"""API keys: how they are made, and who comes in with one. Only the hash of a key is ever kept.

A key is remembered for `FRESH` seconds, so that another process's word counts soon; this process's own
counts at once. When keys were last used is written in batches by `ApiKeyVerifier.write_uses`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic

from dragoman.errors import StoreUnavailable
from dragoman.identity.authenticated import AuthenticatedCaller, admitted
from dragoman.identity.directory import FRESH, Directory, Person
from dragoman.people import ApiKey
from dragoman.store.protocols import PeopleStore

PREFIX = "drk_"
HINT_LENGTH = 8
_LENGTH = len(PREFIX) + 43
_MOST = 10_000
_USE_STEP = timedelta(minutes=1)
_Find = Callable[[str], Awaitable[ApiKey | None]]


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
        found = await self._find(hash_of(token), self._rows.find_key)
        return None if found is None or found[0].client is not None else found[1]

    async def find_by_id(self, key_id: str) -> tuple[ApiKey, AuthenticatedCaller] | None:
        """The key that an access token names, and who it stands for."""
        return await self._find(key_id, self._rows.find_key_by_id)

    async def get(self, key_id: str) -> ApiKey | None:
        """Whether or not it still opens anything: what was begun with it goes on under its limits."""
        known = self._known.get(key_id)
        if known is None or monotonic() - known.read_at >= FRESH:
            try:
                known = await self._read(key_id, self._rows.find_key_by_id)
            except StoreUnavailable:
                if known is None:
                    raise
                # Calls go on while the store is away; those with a limit are refused where they are counted.
        return None if known is None else known.key

    async def _find(self, name: str, find: _Find) -> tuple[ApiKey, AuthenticatedCaller] | None:
        known = self._known.get(name)
        if known is None or monotonic() - known.read_at >= FRESH:
            known = await self._read(name, find)
        if known is None or not is_open(known.key):
            return None
        key = known.key
        person = await self._directory.find(key.workspace, key.user)
        if person is None or not person.user.is_active:
            return None
        if person is not known.person:
            known.person, known.admission = person, admitted(person, key)
        self._note_use(key.id)
        return key, known.admission

    def forget(self, workspace: str, user: str | None = None) -> None:
        """Something of their keys changed: the next use asks the store."""
        self._changes += 1
        for name, known in [*self._known.items()]:
            if known.key.workspace == workspace and user in (None, known.key.user):
                del self._known[name]

    def forget_all(self) -> None:
        self._changes += 1
        self._known.clear()

    async def write_uses(self) -> None:
        uses, self._uses = self._uses, {}
        await self._rows.used_keys(uses)

    @property
    def has_uses(self) -> bool:
        return bool(self._uses)

    async def _read(self, name: str, find: _Find) -> _Known | None:
        changes, now = self._changes, monotonic()
        key = await find(name)
        if key is None or not (compare_digest(key.hash, name) or compare_digest(key.id, name)):
            self._known.pop(name, None)
            return None
        person = await self._directory.find(key.workspace, key.user)
        if person is None:
            self._known.pop(name, None)
            return None
        known = _Known(now, key, person, admitted(person, key))
        if changes == self._changes:  # else what was read may be older than what was forgotten
            if len(self._known) >= _MOST:
                self._known.clear()
            # By its id as well: the limits of a key are looked up with every call that is made through it.
            self._known[name] = self._known[key.id] = known
        return known

    def _note_use(self, key_id: str) -> None:
        now = datetime.now(UTC)
        before = self._noted.get(key_id)
        if before is None or now - before >= _USE_STEP:
            if len(self._noted) >= _MOST:
                self._noted.clear()
            self._noted[key_id] = self._uses[key_id] = now


def is_open(key: ApiKey) -> bool:
    """Whether it lets anybody in: neither revoked nor over."""
    return key.revoked_at is None and (key.expires_at is None or datetime.now(UTC) < key.expires_at)
