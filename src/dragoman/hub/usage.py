"""What a user has used and may still use."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from dragoman.access.budgets import (
    SECONDS,
    end_of,
    key_subject,
    set_by,
    set_by_key,
    user_subject,
    window_of,
)
from dragoman.errors import NotFound
from dragoman.hub.bound import BoundService
from dragoman.identity.directory import Person
from dragoman.identity.keys import is_open
from dragoman.people import NO_LIMITS, ApiKey, CallLimits, UserLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedLimit:
    """One limit and what was used of it in its window. Nothing is counted where there is no limit."""

    name: str
    used: float | None
    limit: float | None
    set_by: str | None
    resets_at: datetime | None

    @property
    def bound(self) -> str:
        """What `name` was called before; for one version."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUsage:
    """What was used through a key or a client that has limits of its own."""

    id: str
    name: str
    is_client: bool
    uses: tuple[UsedLimit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """`calls_last_hour` and `calls_last_day` are counted for everybody, about a second late.

    `keys` are those of the user's that have limits and still open something.
    """

    user: str
    name: str
    calls_last_hour: int
    calls_last_day: int
    uses: tuple[UsedLimit, ...]
    keys: tuple[KeyUsage, ...]


class Usage(BoundService):
    """The caller's own; an admin's also those of the workspace."""

    __slots__ = ()

    async def show(self, user: str | None = None) -> UsageView:
        """The caller's own; admins may ask for any user of their workspace, by id or name."""
        person = await self._person(user)
        workspace, user_id, moment = self._caller.workspace, person.user.id, self._runtime.store.clock.now()
        used = await self._used(workspace, user_subject(user_id), moment)
        keys = [key for key in await self._runtime.store.people.keys(workspace, user_id) if is_open(key)]
        calls = self._runtime.store.calls
        return UsageView(
            user=user_id,
            name=person.user.name,
            calls_last_hour=await calls.count(workspace, user_id, moment - timedelta(hours=1)),
            calls_last_day=await calls.count(workspace, user_id, moment - timedelta(days=1)),
            uses=tuple(
                _use(person.limits, item.name, used, moment, set_by(person, item.name))
                for item in fields(UserLimits)
            ),
            keys=tuple([await self.of_key(key) for key in keys if key.limits != NO_LIMITS]),
        )

    async def of_key(self, key: ApiKey) -> KeyUsage:
        """What was used through a key or client that the caller has read."""
        moment = self._runtime.store.clock.now()
        used = await self._used(key.workspace, key_subject(key), moment)
        uses = [
            _use(key.limits, item.name, used, moment, set_by_key(key))
            for item in fields(CallLimits)
            if getattr(key.limits, item.name) is not None
        ]
        return KeyUsage(id=key.id, name=key.name, is_client=key.client is not None, uses=tuple(uses))

    async def _used(self, workspace: str, subject: str, moment: datetime) -> dict[str, float]:
        counted, places = await self._runtime.budgets.blocks.read(workspace, subject, moment)
        now = moment.timestamp()
        used = {name: counted.get((name, window_of(name, now)), 0.0) for name in SECONDS}
        return used | {"max_concurrency": places}

    async def _person(self, user: str | None) -> Person:
        caller = self._caller
        if user is None or user == caller.user:
            return await self._runtime.directory.of(caller)
        if caller.is_admin:
            if person := await self._runtime.directory.find(caller.workspace, user):
                return person
            for other in await self._runtime.store.people.users(caller.workspace):
                if other.name == user:
                    return await self._runtime.directory.get(caller.workspace, other.id)
        raise NotFound(f"there is no user {user[:80]!r}", hint="admins see the users of their workspace")


def _use(limits: CallLimits, name: str, used: dict[str, float], moment: datetime, setter: str) -> UsedLimit:
    limit, now = getattr(limits, name), moment.timestamp()
    is_limited = limit is not None
    return UsedLimit(
        name=name,
        used=used.get(name) if is_limited else None,
        limit=limit,
        set_by=setter if is_limited else None,
        resets_at=datetime.fromtimestamp(end_of(name, now), UTC) if is_limited and name in SECONDS else None,
    )
