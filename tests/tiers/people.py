"""Who the tests of tiers act for: two workspaces, their admins and members."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from dragoman import Caller, Hub
from dragoman.people import User, UserLimits, Workspace
from dragoman.settings import Settings
from dragoman.store import open_store

ADA = Caller("north", "ada")
BOB = Caller("north", "bob")
NORA = Caller("north", "nora", role="admin")
SAM = Caller("south", "sam")
NONE = UserLimits()


@asynccontextmanager
async def open_team(
    home: Path, url: str, *, limits: UserLimits = NONE, admin_limits: UserLimits = NONE, **settings: Any
) -> AsyncGenerator[Hub]:
    """A hub where these people are known. `limits` are the workspace's, `admin_limits` ada's."""
    async with open_store(url) as store:
        for name in ("north", "south"):
            place = await store.people.find_workspace(name)
            revision = place.revision if place else 0
            await store.people.put_workspace(Workspace(id=name, name=name, limits=limits, revision=revision))
        for caller in (ADA, BOB, NORA, SAM):
            role = "admin" if caller.is_admin else "member"
            known = await store.people.find_user(caller.workspace, caller.user)
            user = User(
                id=caller.user,
                workspace=caller.workspace,
                name=caller.user,
                role=role,
                revision=known.revision if known else 0,
            )
            await store.people.put_user(replace(user, limits=admin_limits) if caller is ADA else user)
    async with Hub(Settings(home=home, database_url=url, **settings)) as hub:
        yield hub


async def bring(hub: Hub, slug: str, token: str, caller: Caller) -> None:
    """The caller's own token for a connector, and the list of tools that it opens."""
    await hub.acting_for(caller).credentials.set(slug, {"auth": SecretStr(token)})
    await hub.acting_for(caller).connectors.refresh(slug)
