"""What a user chooses for themselves: the connectors of a new thread, and limits below those from above."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

from dragoman.errors import InvalidArguments, NotFound
from dragoman.events import Event
from dragoman.hub.bound import BoundService
from dragoman.hub.bundles import chosen_source, visible_sources
from dragoman.hub.people_settings import PreferenceSettings
from dragoman.hub.revisions import revised
from dragoman.hub.user_rights import takes_bounds
from dragoman.people import Preferences, User, UserLimits, find_zone
from dragoman.setting import changed


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
            seen = visible_sources(self._runtime, caller)
            chosen = replace(chosen, connectors=tuple(slug for slug in chosen.connectors if slug in seen))
        return PreferencesView(
            preferences=chosen,
            above=above,
            in_force=above.narrowed_by(chosen.limits),
            tiers={"app": app, "workspace": workspace, "admin": user.limits, "user": chosen.limits},
        )

    @takes_bounds
    async def update(self, **settings: Unpack[PreferenceSettings]) -> PreferencesView:
        """Changes what is given and keeps the rest; None sets back. Effective for the next call.

        `connectors` are those of a new thread, all of them with None; `auto_load` whether it starts
        with them or with none. A limit above what the tiers above allow is refused.
        """
        caller = self._caller
        above = (await self.get()).above
        given: dict[str, Any] = {**settings}

        async def change(user: User) -> User:
            before = user.preferences
            after = changed(before, given)
            check_below(before.limits, after.limits, above)
            if after.time_zone is not None and find_zone(after.time_zone) is None:
                raise InvalidArguments(
                    f"there is no time zone {after.time_zone!r}", hint="name one as in Europe/Berlin"
                )
            if "connectors" in given and after.connectors is not None:
                slugs = (chosen_source(self._runtime, name, caller) for name in after.connectors)
                after = replace(after, connectors=tuple(dict.fromkeys(slugs)))
            return replace(user, preferences=after)

        async def read(user: User) -> User:
            return await self._record()

        people = self._runtime.store.people
        before, after = await revised(await self._record(), change, people.put_user, read)
        if after != before:
            self._runtime.directory.forget(caller.workspace, caller.user)
            await self._tell(before.preferences, after.preferences)
        return await self.get()

    async def _record(self) -> User:
        """As it is now: an admin may have changed it a moment ago."""
        caller = self._caller
        if user := await self._runtime.store.people.find_user(caller.workspace, caller.user):
            return user
        raise NotFound(
            "there is no record of this user, so nothing can be kept for them",
            hint="an admin can: dragoman users add",
        )

    async def _tell(self, before: Preferences, after: Preferences) -> None:
        caller = self._caller
        names = [
            item.name for item in fields(after) if getattr(after, item.name) != getattr(before, item.name)
        ]
        self._runtime.events.publish(
            Event(
                kind="preferences.changed",
                workspace=caller.workspace,
                user=caller.user,
                data={"changed": names},
            )
        )
        await self._runtime.auditor.done(
            caller, "preferences.changed", caller.user, details={"changed": names}
        )


def check_below(before: UserLimits, after: UserLimits, above: UserLimits) -> None:
    """`InvalidArguments` where a limit is set above what the tiers above allow."""
    for item in fields(after):
        value, most = getattr(after, item.name), getattr(above, item.name)
        if value != getattr(before, item.name) and most is not None and value is not None and value > most:
            raise InvalidArguments(
                f"{item.name} may be at most {most:g} here, not {value:g}",
                hint="a limit of your own can only be lower; ask an admin for more",
            )
