"""App configuration in files: `dragoman.toml`, `action_servers.json`, `agent_configs/{agent}.json`.

Read at every start before anything else, and again whenever they change. Their connectors are the app's:
every workspace sees them. One that no living process has in its files any more is removed with its tools;
while a file cannot be read, nothing is. Assignments are written back to the agent's own file.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from dragoman.connector import Connector
from dragoman.errors import Denied, DragomanError, InvalidConfig
from dragoman.formats import FoundAgent, ImportPlan, ImportProblem
from dragoman.formats.action_servers import assigned_entries, list_key
from dragoman.formats.import_files import read_file
from dragoman.formats.json_splice import with_list
from dragoman.formats.parsing import read_document, table
from dragoman.hub.bundles import FILES, Bundles
from dragoman.hub.connectors import Connectors
from dragoman.hub.imports import Imports, ImportStep
from dragoman.names import slug_from
from dragoman.people import UserLimits
from dragoman.private_files import make_private_directory, mode_of, write_whole
from dragoman.runs.workers import Worker, dead_among
from dragoman.scope import APP, Caller
from dragoman.setting import changed
from dragoman.store.shared_lock import SharedLock
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

LOOK_EVERY = 1.0
START_LIMIT = 5.0
_DESCRIBED = timedelta(seconds=30)  # for which what a process says of its files holds, should it die
_DESCRIBE_EVERY = 10.0
_LOCK = "the app configuration"
_DEFAULTS = frozenset({"limits", "bounds"})  # the second is what they were called before
_AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,99}")
log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppFiles:
    """Where the app configuration is; None where there is none."""

    configuration: Path | None = None
    action_servers: Path | None = None
    agent_configs: Path | None = None

    @property
    def are_given(self) -> bool:
        return any((self.configuration, self.action_servers, self.agent_configs))

    def paths(self) -> list[Path]:
        given = [path for path in (self.configuration, self.action_servers) if path]
        return given + (sorted(self.agent_configs.glob("*.json")) if self.agent_configs else [])

    def marks(self) -> tuple[Any, ...]:
        """Different whenever a file was written, came or went."""
        marks: list[Any] = []
        for path in self.paths():
            with suppress(OSError):
                facts = path.stat()
                marks.append((str(path), facts.st_mtime_ns, facts.st_size, facts.st_ino))
        return tuple(marks)

    def read(self) -> list[ImportPlan]:
        plans = [read_file(path) for path in self.paths()]
        if self.agent_configs and not self.agent_configs.is_dir():
            problem = ImportProblem(entry="", reason=f"{self.agent_configs} is no folder")
            plans.append(ImportPlan(format="unknown", source=str(self.agent_configs), problems=(problem,)))
        return plans


class ConfigurationFiles:
    """`agents` and `problems` are those of the last reading."""

    def __init__(self, runtime: "Runtime") -> None:
        settings = runtime.settings
        self._runtime = runtime
        self._files = AppFiles(
            configuration=settings.configuration,
            action_servers=settings.action_servers,
            agent_configs=settings.agent_configs,
        )
        self._app = Caller(workspace=APP, user="", role="operator")
        self._busy = asyncio.Lock()
        self._seen: tuple[Any, ...] = ()
        self._process = str(Worker.of_this_process())
        self._lock = SharedLock(runtime.store.usage, runtime.store.clock)
        self._described: frozenset[str] = frozenset()  # slugs
        self._described_at = 0.0
        self._has_all = False  # every file could be read
        self._has_defaults = False
        self.agents: tuple[FoundAgent, ...] = ()
        self.problems: tuple[ImportStep, ...] = ()

    async def start(self) -> None:
        """Takes the files over and gives their servers a moment to be discovered."""
        if not self._files.are_given:
            return
        fresh = await self.sync()
        with suppress(TimeoutError):
            async with asyncio.timeout(START_LIMIT), asyncio.TaskGroup() as discoveries:
                for connector in fresh:
                    discoveries.create_task(self._discover(connector))

    async def watch(self) -> None:
        """Takes them over again whenever they change; for ever, where there are any."""
        try:
            await self._keep_watching()
        except asyncio.CancelledError:
            if self._described:
                with suppress(DragomanError):
                    await self._runtime.store.connectors.withdraw(self._process)
            raise

    async def _keep_watching(self) -> None:
        while self._files.are_given:
            await asyncio.sleep(LOOK_EVERY)
            if await asyncio.to_thread(self._files.marks) == self._seen:
                if monotonic() - self._described_at > _DESCRIBE_EVERY:
                    await self._look_after()
                continue
            for connector in await self.sync():
                self._runtime.tasks.start(self._discover(connector), f"first list of {connector.slug}")

    async def sync(self) -> list[Connector]:
        """What the files say, made true. The connectors that are new or changed, and may be discovered."""
        async with self._busy, self._lock.turn(APP, _LOCK):
            await self._runtime.changes.look()  # what another process has just done is not done again
            marks = await asyncio.to_thread(self._files.marks)
            await self._take_defaults()
            plans = await asyncio.to_thread(self._files.read)
            self.agents = tuple(agent for plan in plans for agent in plan.agents)
            # The agents stay in their folder: nothing is kept of them elsewhere.
            told = [replace(plan, agents=()) for plan in plans]
            steps = await Imports(self._runtime, self._app).apply(told, replace=True, connect=False)
            self.problems = tuple(
                step for step in steps if step.action in ("conflict", "invalid", "needs_input")
            )
            for step in self.problems:
                log.warning("configuration.problem", source=step.source, entry=step.name, reason=step.reason)
            self._has_all = not any(step.kind == "file" for step in steps)
            kept = frozenset(step.slug or slug_from(step.name) for step in steps)
            self._described = kept if self._has_all else self._described | kept
            described = await self._describe()
            if self._has_all:
                await self._remove_vanished(described)
            self._seen = marks  # not before all of it is done: a fault on the way is no end of it
        views = [step.view for step in steps if step.view is not None]
        return [
            view.connector
            for view in views
            if view.connector.enabled and view.connector.configuration.auto_discover
        ]

    async def assign(self, agent: str, connector: str, caller: Caller) -> FoundAgent:
        """Writes the connector into the agent's list; an agent that has no file gets one.

        The files are the app's: only who runs the installation has them rewritten.
        """
        found = self._assignable(connector, caller)
        name = next(iter(found.aliases), found.slug)
        return await self._rewrite(agent, lambda items: items if _lists(items, found) else [*items, name])

    async def remove(self, agent: str, connector: str, caller: Caller) -> FoundAgent:
        """Takes the connector out of the agent's list."""
        found = self._assignable(connector, caller)
        return await self._rewrite(agent, lambda items: [item for item in items if not _lists([item], found)])

    # Parts

    async def _discover(self, connector: Connector) -> None:
        await self._runtime.lists.try_first(connector, self._runtime.owner)

    def _assignable(self, connector: str, caller: Caller) -> Connector:
        if caller.role != "operator":
            raise Denied(
                "the agents of the configuration belong to the whole installation",
                hint="ask who runs it to change them",
            )
        return self._runtime.registry.get(connector, caller)

    async def _take_defaults(self) -> None:
        """UserLimits of every user; while they are wrong, those of before hold. At start that raises."""
        path = self._files.configuration
        if path is None:
            return
        try:
            limits = await asyncio.to_thread(read_default_limits, path)
        except DragomanError as error:
            if not self._has_defaults:
                raise InvalidConfig(f"{path}: {error.message}", hint=error.command_hint) from None
            log.warning("configuration.problem", source=str(path), entry="defaults", reason=error.message)
            return
        if limits is not None:
            self._runtime.directory.allow(limits)
            self._has_defaults = True

    async def _describe(self) -> frozenset[str]:
        """Says what the files here have; returns what those of all living processes have."""
        store = self._runtime.store
        await store.clock.read()
        now = store.clock.now()
        described = await store.connectors.describe(self._process, self._described, now + _DESCRIBED, now)
        self._described_at = monotonic()
        dead = dead_among(described)
        return frozenset(
            slug for process, slugs in described.items() if process not in dead for slug in slugs
        )

    async def _look_after(self) -> None:
        """Goes on to say so, and removes what only files of processes had that are gone."""
        described = await self._describe()
        if self._has_all and (self._vanished(described) or self._lost_bundles(described)):
            async with self._busy, self._lock.turn(APP, _LOCK):
                await self._remove_vanished(await self._describe())

    def _vanished(self, described: frozenset[str]) -> list[Connector]:
        return [
            connector
            for connector in self._runtime.registry.all()
            if connector.origin == "files"
            and connector.kind != "native"
            and not (connector.workspace == APP and connector.slug in described)
        ]

    def _lost_bundles(self, described: frozenset[str]) -> list[str]:
        """Names of those that no file of a living process describes any more."""
        known = self._runtime.catalog.list_bundles(self._app)
        return [one.name for one in known if one.origin == FILES and one.word not in described]

    async def _remove_vanished(self, described: frozenset[str]) -> None:
        for name in self._lost_bundles(described):
            log.info("configuration.removed", bundle=name)
            await Bundles(self._runtime, self._app).remove(name)
        for connector in self._vanished(described):
            log.info("configuration.removed", connector=connector.slug)
            holder = replace(self._app, workspace=connector.workspace)
            await Connectors(self._runtime, holder).remove(connector.id)

    async def _rewrite(self, agent: str, change: Callable[[list[Any]], list[Any]]) -> FoundAgent:
        async with self._busy:
            return await asyncio.to_thread(self._rewrite_file, agent, change)

    def _rewrite_file(self, agent: str, change: Callable[[list[Any]], list[Any]]) -> FoundAgent:
        path = self._file_of(agent)
        text = path.read_text(encoding="utf-8") if path.exists() else f'{{\n  "name": "{agent}"\n}}\n'
        document = table(read_document(text, str(path)))
        before = assigned_entries(document)
        after = change(before)
        if after != before:
            written = with_list(text, list_key(document) or "action_servers", after, str(path))
            target = path.resolve()  # a link stays a link
            make_private_directory(target.parent)
            write_whole(target, written.encode(), mode_of(target))
        if path.exists() and (agents := read_file(path).agents):
            return agents[0]
        return FoundAgent(name=agent)

    def _file_of(self, agent: str) -> Path:
        folder = self._files.agent_configs
        if folder is None:
            raise InvalidConfig(
                "there is no folder for agents", hint="set DRAGOMAN_AGENT_CONFIGS to a folder agent_configs/"
            )
        if not _AGENT_NAME.fullmatch(agent):
            raise InvalidConfig(f"{agent[:80]!r} cannot be the name of an agent's file")
        own = folder / f"{agent}.json"
        if own.exists():
            return own
        for path in sorted(folder.glob("*.json")):
            if any(found.name == agent for found in read_file(path).agents):
                return path
        return own


def _lists(items: Sequence[Any], connector: Connector) -> bool:
    names = {connector.slug, connector.id, *connector.aliases}
    return any((item if isinstance(item, str) else table(item).get("name")) in names for item in items)


def read_default_limits(path: Path) -> UserLimits | None:
    """None when the file cannot be read at all, which is told of with its connectors."""
    try:
        document = table(read_document(path.read_text(encoding="utf-8"), str(path)))
    except (OSError, UnicodeDecodeError, InvalidConfig):
        return None
    defaults = table(document.get("defaults"))
    if unknown := sorted(defaults.keys() - _DEFAULTS):
        raise InvalidConfig(f"defaults has no {unknown[0][:60]!r}", hint="it has a table defaults.limits")
    return changed(UserLimits(), table(defaults.get("limits", defaults.get("bounds"))))
