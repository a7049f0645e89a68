"""What is kept for how long, and what is deleted when that is over.

The operator says how long the installation keeps things; a workspace may keep them for less, and alone says
how long it keeps chats. The audit trail is the operator's: no workspace shortens it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dragoman.people import Thread, Workspace
from dragoman.scope import Caller
from dragoman.settings import Settings

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

_AT_ONCE = 100
_ITSELF = "dragoman"


def days_kept(settings: Settings, workspace: Workspace) -> Mapping[str, float | None]:
    """Days that are in force, by what is kept; None: until somebody deletes it."""
    return {
        "chats": workspace.keep_chats_days,
        "calls": min(workspace.keep_calls_days or settings.keep_calls_days, settings.keep_calls_days),
        "results": min(workspace.keep_results_days or settings.keep_results_days, settings.keep_results_days),
        "audit": settings.keep_audit_days,
    }


async def forget_old(runtime: "Runtime", now: datetime) -> None:
    """Deletes what is older than it is kept, here and in each workspace."""
    settings, calls = runtime.settings, runtime.store.calls
    await calls.forget_results(now - timedelta(days=settings.keep_results_days))
    await calls.forget(now - timedelta(days=settings.keep_calls_days))
    for workspace in await runtime.store.people.workspaces():
        if workspace.keep_results_days is not None:
            await calls.forget_results(now - timedelta(days=workspace.keep_results_days), workspace.id)
        if workspace.keep_calls_days is not None:
            await calls.forget(now - timedelta(days=workspace.keep_calls_days), workspace.id)
        if workspace.keep_chats_days is not None:
            await _forget_chats(runtime, workspace, now - timedelta(days=workspace.keep_chats_days))


async def _forget_chats(runtime: "Runtime", workspace: Workspace, before: datetime) -> None:
    threads = 0
    while idle := await runtime.store.threads.list_idle(workspace.id, before, limit=_AT_ONCE):
        threads += sum([await _forget_chat(runtime, thread, before) for thread in idle])
    runs = await runtime.store.runs.forget(workspace.id, before)
    if threads or runs:
        itself = Caller(workspace=workspace.id, user=_ITSELF)
        counts = {"threads": threads, "runs": runs, "days": workspace.keep_chats_days}
        await runtime.auditor.done(itself, "retention.applied", workspace.id, details=counts)


async def _forget_chat(runtime: "Runtime", thread: Thread, before: datetime) -> bool:
    """Unless somebody has written in it, or pinned it, since it was listed."""
    key = (thread.workspace, thread.user, thread.id)
    async with runtime.locks.of("thread", *key):
        found = await runtime.store.threads.find(*key)
        if found is None or found.pinned or found.updated_at >= before:
            return False
        await runtime.forget_thread(key)
    return True
