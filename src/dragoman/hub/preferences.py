"""What a user chooses for themselves: the connectors of a new thread, and limits below those from above."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from dragoman.errors import InvalidArguments, NotFound
from dragoman.events import Event
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import takes_bounds
from dragoman.names import did_you_mean
from dragoman.people import Preferences, User, UserLimits

LIMITS = tuple(item.name for item in fields(UserLimits))
_IN_PARTS = frozenset({"cost_per_day"})
_LARGEST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencesView:
    """`above` is what app, workspace and admins allow; `in_force` the smaller of that and the user's own.

    `tiers` are what each of them says, from the highest down: app, workspace, admin, user.
    """

    preferences: Preferences
    above: UserLimits
    in_force: UserLimits
    tiers: Mapping[str, UserLimits]


class UserPreferences(BoundService):
    """The caller's own, and nobody else's."""

    __slots__ = ()

    async def get(self) -> PreferencesView:
        """What the caller chose, and the limits in force with the tier that each comes from."""
        caller = self._caller
        person = await self._runtime.directory.of(caller)
        user, chosen = person.user, person.user.preferences
        app, workspace = self._runtime.directory.limits, person.workspace.limits
        above = app.narrowed_by(workspace).narrowed_by(user.limits)
        if chosen.connectors is not None:
            seen = {connector.slug for connector in self._runtime.registry.list(caller)}
            chosen = replace(chosen, connectors=tuple(slug for slug in chosen.connectors if slug in seen))
        return PreferencesView(
            preferences=chosen,
            above=above,
            in_force=above.narrowed_by(chosen.limits),
            tiers={"app": app, "workspace": workspace, "admin": user.limits, "user": chosen.limits},
        )

    @takes_bounds
    async def update(
        self,
        *,
        connectors: Sequence[str] | Literal["all"] | None = None,
        auto_load: bool | None = None,
        limits: Mapping[str, float | None] | None = None,
    ) -> PreferencesView:
        """Changes what is given and keeps the rest. Effective for the next call.

        `connectors` are those of a new thread, `auto_load` whether it starts with them or with none. In
        `limits`, None takes an own one away; one above what the tiers above allow is refused.
        """
        caller = self._caller
        above = (await self.get()).above
        user = await self._record()
        before = user.preferences
        after = replace(
            before,
            connectors=self._chosen(connectors, before),
            auto_load=before.auto_load if auto_load is None else auto_load,
            limits=narrowed_limits(before.limits, limits or {}, above),
        )
        if after != before:
            await self._runtime.store.people.put_user(replace(user, preferences=after))
            self._runtime.directory.forget(caller.workspace, caller.user)
            await self._tell(before, after)
        return await self.get()

    def _chosen(
        self, connectors: Sequence[str] | Literal["all"] | None, before: Preferences
    ) -> tuple[str, ...] | None:
        if connectors is None:
            return before.connectors
        if isinstance(connectors, str):
            return None
        return tuple(
            dict.fromkeys(self._runtime.registry.get(name, self._caller).slug for name in connectors)
        )

    async def _record(self) -> User:
        """As it is now: an admin may have changed it a moment ago."""
        caller = self._caller
        if user := await self._runtime.store.people.find_user(caller.workspace, caller.user):
            return user
        raise NotFound(
            "there is no record of this user, so nothing can be kept for them",
            hint="an admin adds users: dragoman users add",
        )

    async def _tell(self, before: Preferences, after: Preferences) -> None:
        caller = self._caller
        changed = [
            item.name for item in fields(after) if getattr(after, item.name) != getattr(before, item.name)
        ]
        self._runtime.events.publish(
            Event(
                kind="preferences.changed",
                workspace=caller.workspace,
                user=caller.user,
                data={"changed": changed},
            )
        )
        await self._runtime.auditor.done(
            caller, "preferences.changed", caller.user, details={"changed": changed}
        )


def narrowed_limits(own: UserLimits, changes: Mapping[str, float | None], above: UserLimits) -> UserLimits:
    """The own limits with the changes; `InvalidArguments` where one makes no sense or exceeds those above."""
    for name, value in changes.items():
        if name not in LIMITS:
            raise InvalidArguments(
                f"there is no limit {name[:80]!r}",
                hint=did_you_mean(name[:80], [*LIMITS]) or ", ".join(LIMITS),
            )
        if value is None:
            own = replace(own, **{name: None})
            continue
        _check_number(name, value)
        most = getattr(above, name)
        if most is not None and value > most:
            raise InvalidArguments(
                f"{name} may be at most {most:g} here, not {value:g}",
                hint="a limit of your own can only be lower; ask an admin for more",
            )
        own = replace(own, **{name: float(value) if name in _IN_PARTS else int(value)})
    return own


def _check_number(name: str, value: object) -> None:
    """Whatever a file or a library says."""
    kinds = (int, float) if name in _IN_PARTS else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= _LARGEST:  # nan is not
        kind = "a number" if name in _IN_PARTS else "a whole number"
        raise InvalidArguments(f"{name} must be {kind} of 0 or more", hint="null takes the limit away")
