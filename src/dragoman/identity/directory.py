"""Who belongs where, with what limits: workspaces and users in memory over the store's rows.

A change by this process is seen at once, one by another process after `FRESH` seconds.
"""

from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from dragoman.errors import Conflict, NotFound, StoreUnavailable
from dragoman.people import User, UserLimits, Workspace
from dragoman.remembered import Remembered, SingleFlight
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE, Caller
from dragoman.store.protocols import PeopleStore

FRESH = 1.5  # seconds; what another process did counts within two, streams included
_MOST = 10_000
_LOCAL_WORKSPACE = Workspace(id=LOCAL_WORKSPACE, name="local")


@dataclass(frozen=True, slots=True)
class Person:
    """A user inside a workspace. `limits` are those in force: the workspace's, the admin's and their own."""

    workspace: Workspace
    user: User
    limits: UserLimits


class Directory:
    def __init__(self, rows: PeopleStore, limits: UserLimits = UserLimits()) -> None:  # noqa: B008 - frozen
        self._rows = rows
        self._limits = limits
        self._people: dict[tuple[str, str], tuple[float, Person]] = {}
        self._workspaces = Remembered(self._workspace, FRESH)
        self._changes = 0
        # Fifty callers at once, every `FRESH` seconds, would otherwise read the same person fifty times.
        self._recorded = SingleFlight[tuple[str, str], Person | None]()
        self._unrecorded = SingleFlight[tuple[str, str], Person]()

    @property
    def limits(self) -> UserLimits:
        """What the app allows every user."""
        return self._limits

    def allow(self, limits: UserLimits) -> None:
        """The app allows something else from now on."""
        self._limits = limits
        self.forget_all()

    async def find(self, workspace: str, user: str) -> Person | None:
        known = self._people.get((workspace, user))
        if known is not None and monotonic() - known[0] < FRESH:
            return known[1]
        return await self._recorded.share((workspace, user), lambda: self._refreshed(workspace, user))

    async def of(self, caller: Caller) -> Person:
        """Whom a caller stands for. Somebody without a record is a member of their workspace, no more.

        A library may call for users that only it knows; the doors let in nobody without a record.
        """
        if person := await self.find(caller.workspace, caller.user):
            return person
        return await self._unrecorded.share((caller.workspace, caller.user), lambda: self._member(caller))

    async def get(self, workspace: str, user: str) -> Person:
        if person := await self.find(workspace, user):
            return person
        raise NotFound(f"there is no user {user[:80]!r}", hint="dragoman users list shows those there are")

    async def hooks_of(self, workspace: str) -> tuple[str, ...]:
        """The rules of hooks that a workspace has."""
        return (await self._workspaces.get(workspace)).hooks

    async def model_of(self, workspace: str) -> str | None:
        """The language model that a workspace chose."""
        return (await self._workspaces.get(workspace)).model

    def forget(self, workspace: str, user: str | None = None) -> None:
        """Something of them changed: the next question asks the store."""
        self._change()
        self._workspaces.forget(workspace)
        for key in [key for key in self._people if key[0] == workspace and user in (None, key[1])]:
            del self._people[key]

    def forget_all(self) -> None:
        self._change()
        self._people.clear()
        self._workspaces.forget_all()

    def _change(self) -> None:
        self._changes += 1
        self._recorded.forget()
        self._unrecorded.forget()

    def _remember(self, key: tuple[str, str], person: Person, changes: int, read_at: float) -> None:
        if changes != self._changes:
            return  # what was read may be older than what was forgotten meanwhile
        if len(self._people) >= _MOST:
            self._people.clear()
        self._people[key] = (read_at, person)

    async def _refreshed(self, workspace: str, user: str) -> Person | None:
        known = self._people.get((workspace, user))
        changes, now = self._changes, monotonic()
        try:
            person = await self._read(workspace, user)
        except StoreUnavailable:
            if known is None:
                raise
            return known[1]  # calls go on while the store is away
        if person is None:
            self._people.pop((workspace, user), None)
        else:
            self._remember((workspace, user), person, changes, now)
        return person

    async def _member(self, caller: Caller) -> Person:
        changes, now = self._changes, monotonic()
        workspace = await self._workspace(caller.workspace)
        user = User(id=caller.user, workspace=caller.workspace, name=caller.user)
        person = Person(workspace, user, self._limits.narrowed_by(workspace.limits))
        self._remember((caller.workspace, caller.user), person, changes, now)
        return person

    async def _read(self, workspace: str, user: str) -> Person | None:
        found = await self._rows.find_user(workspace, user)
        if found is None:
            return None
        place = await self._workspace(workspace)
        above = self._limits.narrowed_by(place.limits).narrowed_by(found.limits)
        return Person(place, found, above.narrowed_by(found.preferences.limits))

    async def _workspace(self, workspace: str) -> Workspace:
        return await self._rows.find_workspace(workspace) or Workspace(id=workspace, name=workspace)


async def make_local(rows: PeopleStore) -> None:
    """The local owner is there from the first start: no sign-up. Of two that start at once, one makes it."""
    if await rows.find_workspace(LOCAL_WORKSPACE) is None:
        with suppress(Conflict):
            await rows.put_workspace(_LOCAL_WORKSPACE)
    if await rows.find_user(LOCAL_WORKSPACE, LOCAL_USER) is None:
        owner = User(id=LOCAL_USER, workspace=LOCAL_WORKSPACE, name=LOCAL_USER, role="admin")
        with suppress(Conflict):
            await rows.put_user(owner)
