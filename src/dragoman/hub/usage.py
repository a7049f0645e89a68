"""What a user has used and may still use."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from dragoman.access.budgets import SECONDS, end_of, set_by, user_subject, window_of
from dragoman.errors import NotFound
from dragoman.hub.bound import BoundService
from dragoman.identity.directory import Person
from dragoman.people import UserLimits


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
class UsageView:
    """`calls_last_hour` and `calls_last_day` are counted for everybody, about a second late."""

    user: str
    name: str
    calls_last_hour: int
    calls_last_day: int
    uses: tuple[UsedLimit, ...]


class Usage(BoundService):
    """The caller's own; an admin's also those of the workspace."""

    __slots__ = ()

    async def show(self, user: str | None = None) -> UsageView:
        """The caller's own; admins may ask for any user of their workspace, by id or name."""
        person = await self._person(user)
        workspace, user_id, moment = self._caller.workspace, person.user.id, self._runtime.store.clock.now()
        now = moment.timestamp()
        counted = await self._runtime.store.usage.read(workspace, user_subject(user_id))
        running = await self._runtime.store.usage.count_places(workspace, user_subject(user_id), moment)
        used = {name: counted.get((name, window_of(name, now)), 0.0) for name in SECONDS}
        calls = self._runtime.store.calls
        return UsageView(
            user=user_id,
            name=person.user.name,
            calls_last_hour=await calls.count(workspace, user_id, moment - timedelta(hours=1)),
            calls_last_day=await calls.count(workspace, user_id, moment - timedelta(days=1)),
            uses=tuple(
                _use(person, item.name, used | {"max_concurrency": running}, now)
                for item in fields(UserLimits)
            ),
        )

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


def _use(person: Person, name: str, used: dict[str, float], now: float) -> UsedLimit:
    limit = getattr(person.limits, name)
    is_limited = limit is not None
    return UsedLimit(
        name=name,
        used=used.get(name) if is_limited else None,
        limit=limit,
        set_by=set_by(person, name) if is_limited else None,
        resets_at=datetime.fromtimestamp(end_of(name, now), UTC) if is_limited and name in SECONDS else None,
    )
