"""What other processes changed, told to the parts of this one: `FollowedChanges.tell` is the one place.

A change says what was written, not how it is now: each part reads that from the store, so that telling one
twice, late or in another order does no harm. A process that was away for too long reads everything again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING, Any

from dragoman.connector import Connector
from dragoman.errors import DragomanError, NotFound
from dragoman.events import Event, EventKind
from dragoman.hub.bundles import tell_bundle
from dragoman.hub.recipes import tell_recipe
from dragoman.store.records import Change, ChangeKind, ChangePosition
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

log = get_logger()

_SOON = 0.25  # seconds between two looks while there is news
_LIVELY = 5.0  # seconds for which there is, after the last
_TOLD = 5.0  # seconds between two looks where others tell of their changes
_GATHER = 0.01  # seconds in which changes are gathered: whoever makes one often makes several
_AT_LEAST = 60.0  # seconds after which the store is asked, whatever its files say
_RENEWED = "oauth"  # a token that is renewed stays the same credential


class FollowedChanges:
    """`position` is where it goes on from: read before anything that is kept in memory."""

    def __init__(self, runtime: "Runtime", position: ChangePosition) -> None:
        self._runtime = runtime
        self._position = position
        self._asked_at = self._news_at = monotonic()
        self._bell = asyncio.Event()
        self._name = token_hex(8)
        self._kinds: Mapping[ChangeKind, Callable[[Change], Awaitable[None]]] = {
            "connector": self._connector,
            "tools": self._tools,
            "credential": self._credential,
            "workspace": self._workspace,
            "user": self._user,
            "key": self._key,
            "thread": self._thread,
            "loaded_tools": self._loaded_tools,
            "agent": self._agent,
            "approval": self._approval,
            "recipe": self._recipe,
            "bundle": self._bundle,
            "model_provider": self._model_provider,
            "rollout": self._rollout,
            "client_session": self._client_session,
            "one_time_value": self._one_time_value,
        }

    async def follow(self) -> None:
        """For as long as the hub is open; a store that is away is asked again."""
        cluster, was_away = self._runtime.cluster, False
        self._runtime.store.changes.on_written(lambda: cluster.tell("changes", self._name))
        with cluster.listen("changes", self._heard), self._glancing():
            while True:
                await self._bell.wait()
                await asyncio.sleep(_GATHER)
                self._bell.clear()
                try:
                    await self.look()
                except DragomanError as error:
                    if not was_away:
                        log.warning("changes.not_read", cause=error.message)
                    was_away = True
                else:
                    was_away = False

    def _heard(self, who: str) -> None:
        if who != self._name:  # nobody is told what they wrote themselves
            self._bell.set()

    @contextmanager
    def _glancing(self) -> Generator[None]:
        """Rings when there may be news. A timer and no task: while nothing happens, it costs microseconds."""
        loop, changes = asyncio.get_running_loop(), self._runtime.store.changes

        def glance() -> None:
            nonlocal timer
            now = monotonic()
            if changes.may_be_new() or now - self._asked_at > _AT_LEAST:
                self._bell.set()
            pause = _TOLD if self._runtime.cluster.is_connected else changes.interval
            timer = loop.call_later(min(pause, _SOON) if now - self._news_at < _LIVELY else pause, glance)

        timer = loop.call_soon(glance)
        try:
            yield
        finally:
            timer.cancel()

    async def look(self) -> None:
        """Tells what is new by now."""
        now = monotonic()
        batch = await self._runtime.store.changes.after(self._position)
        self._asked_at = now
        if batch.changes is None:
            await self.reload()
        elif batch.changes:
            await self.tell(batch.changes)
            self._news_at = now
        self._position = batch.position

    async def tell(self, changes: Iterable[Change]) -> None:
        for change in changes:
            try:
                await self._kinds[change.kind](change)
            except NotFound:
                continue  # gone meanwhile: another change says so
            except DragomanError:
                raise  # the store is away: these are told again
            except Exception:
                # boundary: what goes wrong with one change is no reason to miss the next
                log.exception("changes.not_told", kind=change.kind, subject=change.subject)

    async def reload(self) -> None:
        """Everything that is remembered here, as the store has it now."""
        runtime = self._runtime
        stored = {one.id: one for one in await runtime.store.connectors.list()}
        known = {one.id: one for one in runtime.registry.all() if one.kind != "native"}
        for connector in (known | stored).values():
            async with runtime.locks.of("connector", connector.id):
                await runtime.connector_lifecycle.read_again(connector.workspace, connector.id)
        for connector in stored.values():
            with suppress(NotFound):
                await runtime.catalog.reload(connector)
        runtime.catalog.replace_bundles(await runtime.store.bundles.list())
        runtime.authenticator.forget_all()
        runtime.authorizations.forget_all()
        runtime.agent_records.forget_all()
        runtime.active.forget_all()
        runtime.given_providers.forget()
        runtime.rollout.forget()
        await runtime.loaded.reload()
        await runtime.door_clients.told_all()
        runtime.events.tell_missed()

    # One kind of change each

    async def _connector(self, change: Change) -> None:
        async with self._runtime.locks.of("connector", change.subject):
            await self._runtime.connector_lifecycle.read_again(change.workspace, change.subject)

    async def _tools(self, change: Change) -> None:
        await self._runtime.catalog.reload(self._connector_of(change))

    async def _credential(self, change: Change) -> None:
        """What was brought for it before is not used any more; a renewed token closes no connection."""
        connector, holder = self._connector_of(change), (change.workspace, change.user)
        self._runtime.authorizations.forget(connector, holder)
        put, removed = change.details.get("put", ()), change.details.get("removed", ())
        if not change.user or (not removed and set(put) <= {_RENEWED}):
            return
        source = self._runtime.sources[connector.kind]
        self._start(source.close_for_user(*holder, connector.id), f"close {connector.slug} for its user")
        facts = {"action": "set" if put else "removed", "names": sorted({*put, *removed})}
        self._publish("credential.changed", change, facts, connector.slug)

    async def _workspace(self, change: Change) -> None:
        self._runtime.authenticator.forget(change.workspace)
        if change.what == "removed":
            await self.reload()

    async def _user(self, change: Change) -> None:
        self._runtime.authenticator.forget(change.workspace, change.user)
        if change.what == "removed":
            self._runtime.agent_records.forget(change.workspace)
            self._runtime.catalog.replace_bundles(await self._runtime.store.bundles.list())
            self._start(self._runtime.close_for_user(change.workspace, change.user), "close for a user")
        names = (name.partition(".") for name in change.details.get("changed", ()))
        if chosen := [name for column, _, name in names if column == "preferences"]:
            self._publish("preferences.changed", change, {"changed": chosen})

    async def _key(self, change: Change) -> None:
        self._runtime.authenticator.forget(change.workspace, change.user)

    async def _thread(self, change: Change) -> None:
        key = (change.workspace, change.user, change.subject)
        self._runtime.active.changed(key)
        if change.what == "removed":
            self._runtime.loaded.forget(key)
        if not self._runtime.events.has_listeners:
            return  # every run of another node that begins a thread would cost a read here
        found = await self._runtime.store.threads.find(*key)
        connectors = None if found is None or found.connectors is None else [*found.connectors]
        what = {"added": "created", "updated": "changed", "removed": "removed"}[change.what]
        facts = {"thread": change.subject, "what": what, "connectors": connectors}
        self._publish("thread.changed", change, facts)

    async def _loaded_tools(self, change: Change) -> None:
        await self._runtime.loaded.read((change.workspace, change.user, change.subject))
        kinds: tuple[tuple[EventKind, str], ...] = (
            ("tools.unloaded", "unloaded"),
            ("tools.loaded", "loaded"),
        )
        for kind, names in kinds:
            if tools := change.details.get(names):
                self._publish(kind, change, {"thread": change.subject, "tools": tools})

    async def _agent(self, change: Change) -> None:
        self._runtime.agent_records.forget(change.workspace)
        if not self._runtime.events.has_listeners:
            return
        found = await self._runtime.store.agents.find(change.workspace, change.subject)
        what = {"added": "created"}.get(change.what, change.what)
        if found is not None:
            connector = self._runtime.registry.find_by_id(found.connector_id or "")
            name = found.name if connector is None else connector.slug
            facts = {"name": name, "what": what, "status": found.status}
        else:
            facts = {"name": change.details.get("name", ""), "what": "removed", "status": "stopped"}
        self._publish("agent.changed", change, facts)

    async def _approval(self, change: Change) -> None:
        found = await self._runtime.store.approvals.find(change.workspace, change.subject)
        if found is not None and found.status == "pending":
            self._runtime.approvals.tell_asked(found)
        elif found is not None:
            self._runtime.approvals.tell_answered(found)

    async def _recipe(self, change: Change) -> None:
        """Nothing is remembered of them: each run reads those of its agent."""
        what = {"added": "kept", "updated": "edited", "removed": "deleted"}[change.what]
        what = "shared" if what == "kept" and not change.user else what
        tell_recipe(self._runtime, change.workspace, change.user, change.subject, what)

    async def _bundle(self, change: Change) -> None:
        key = (change.workspace, change.user, change.subject)
        found = await self._runtime.store.bundles.find(*key)
        if found is None:
            self._runtime.catalog.drop_bundle(*key)
        else:
            self._runtime.catalog.put_bundle(found)
        what = {"added": "created"}.get(change.what, change.what)
        tell_bundle(self._runtime, *key, what)

    async def _model_provider(self, change: Change) -> None:
        self._runtime.given_providers.forget()

    async def _rollout(self, change: Change) -> None:
        self._runtime.rollout.forget()
        self._publish("rollout.changed", change, {"what": await self._runtime.rollout.last_word()})

    async def _client_session(self, change: Change) -> None:
        await self._runtime.door_clients.told_session(change.subject)

    async def _one_time_value(self, change: Change) -> None:
        await self._runtime.door_clients.told_value(change.subject)

    # Parts

    def _connector_of(self, change: Change) -> Connector:
        """As it is known here: one of another change that is still to come is in the store then."""
        if connector := self._runtime.registry.find_by_id(change.subject):
            return connector
        raise NotFound(f"the connector {change.subject!r} is gone")

    def _start(self, work: Awaitable[object], name: str) -> None:
        self._runtime.tasks.start(work, name)

    def _publish(
        self, kind: EventKind, change: Change, data: Mapping[str, Any], connector: str | None = None
    ) -> None:
        self._runtime.events.publish(
            Event(
                kind=kind, workspace=change.workspace, user=change.user, connector=connector, data=dict(data)
            )
        )
