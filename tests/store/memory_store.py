"""A store of plain dictionaries that fills the Protocols: for one process, gone with it.

No method awaits anything, so each is one transaction; what it keeps are the frozen values themselves.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from dragoman.agent import Agent, AgentNumbers
from dragoman.bundle import Bundle
from dragoman.connector import Connector
from dragoman.errors import Conflict, NotFound, Outdated
from dragoman.people import ApiKey, Thread, ThreadPosition, ThreadSort, User, Workspace
from dragoman.recipe import Recipe
from dragoman.run import Message, Question, Run, RunEvent, RunSort, RunStatus, Step
from dragoman.scope import APP, Caller, identity_of
from dragoman.store import Store
from dragoman.store.audit_chain import link
from dragoman.store.clock import Clock
from dragoman.store.records import (
    AcceptedRun,
    Allowance,
    Approval,
    AuditEntry,
    AuthorizationFlow,
    BucketQuery,
    BucketSum,
    CallBinding,
    CallRecord,
    ClientSession,
    ConcurrencyLease,
    HeldRuns,
    JournalBatch,
    KeptResult,
    LoadedTool,
    ModelProvider,
    NewRun,
    OneTimeValue,
    RegisteredClient,
    RestingRun,
    RolloutSample,
    SealedSecret,
    SealedSigningKey,
    TakenUsage,
    ToolVersion,
    UsageMeter,
)
from dragoman.telemetry.metrics import ConnectorCounters
from dragoman.telemetry.time_buckets import MEASURES, BucketRow, level_for
from dragoman.tool import Tool

Value = TypeVar("Value")
_MONTH = timedelta(days=30)


class Tables:
    """What the aggregates share: removing a person, a thread or a connector reaches into several."""

    def __init__(self) -> None:
        self.connectors: dict[str, Connector] = {}
        self.secrets: dict[tuple[str, str, str, str], SealedSecret] = {}
        self.tools: dict[tuple[str, str, str, str], Tool] = {}
        self.versions: dict[tuple[str, str, str, str], dict[int, ToolVersion]] = {}
        self.metrics: dict[str, ConnectorCounters] = {}
        self.buckets: dict[tuple[Any, ...], list[float]] = {}
        self.app_files: dict[str, tuple[frozenset[str], datetime]] = {}
        self.flows: dict[str, AuthorizationFlow] = {}
        self.workspaces: dict[str, Workspace] = {}
        self.users: dict[tuple[str, str], User] = {}
        self.keys: dict[str, ApiKey] = {}
        self.threads: dict[tuple[str, str, str], Thread] = {}
        self.messages: dict[tuple[str, str, str], list[Message]] = {}
        self.loaded: dict[tuple[str, str, str, str], LoadedTool] = {}
        self.runs: dict[tuple[str, str], Run] = {}
        self.steps: dict[tuple[str, str], list[Step]] = {}
        self.events: dict[tuple[str, str], dict[int, RunEvent]] = {}
        self.questions: dict[tuple[str, str], Question] = {}
        self.calls: dict[tuple[str, str], CallRecord] = {}
        self.results: dict[tuple[str, str], KeptResult] = {}
        self.approvals: dict[tuple[str, str], Approval] = {}
        self.allowances: dict[tuple[str, str, str, str, str, str], Allowance] = {}
        self.usage: dict[tuple[str, str, str, int], float] = {}
        self.leases: dict[tuple[str, str, str], ConcurrencyLease] = {}
        self.slots: dict[str, dict[str, list[datetime]]] = {}
        self.audit: dict[str, list[AuditEntry]] = {}
        self.anchors: dict[str, tuple[int, str]] = {}
        self.agents: dict[tuple[str, str], Agent] = {}
        self.numbers: dict[tuple[str, str], AgentNumbers] = {}
        self.recipes: dict[tuple[str, str], Recipe] = {}
        self.bundles: dict[tuple[str, str, str], Bundle] = {}
        self.model_providers: dict[tuple[str, str], ModelProvider] = {}
        self.states: dict[str, Mapping[str, Any]] = {}
        self.samples: dict[tuple[str, str], RolloutSample] = {}
        self.sessions: dict[str, ClientSession] = {}
        self.values: dict[str, OneTimeValue] = {}
        self.oauth_clients: dict[str, RegisteredClient] = {}
        self.signing_keys: dict[str, SealedSigningKey] = {}

    def add_message(self, message: Message) -> Message:
        place = (message.workspace, message.user, message.thread)
        said = self.messages.setdefault(place, [])
        said.append(replace(message, number=len(said) + 1))
        if message.author == "person" and place in self.threads:
            self.threads[place] = replace(self.threads[place], updated_at=message.created_at)
        return said[-1]

    def head(self, workspace: str) -> tuple[int, str]:
        trail = self.audit.get(workspace)
        return (trail[-1].number, trail[-1].hash) if trail else self.anchors.get(workspace, (0, ""))

    def append_audit(self, entry: AuditEntry) -> None:
        number, previous = self.head(entry.workspace)
        numbered = replace(entry, number=number + 1, previous=previous)
        trail = self.audit.setdefault(entry.workspace, [])
        trail.append(replace(numbered, hash=link(numbered)))

    def remove_families(self, is_theirs: Callable[[Run], bool]) -> int:
        roots = {key for key, run in self.runs.items() if run.is_root and is_theirs(run)}
        for key in [key for key, run in self.runs.items() if (run.workspace, run.root) in roots]:
            del self.runs[key]
            self.steps.pop(key, None)
            self.events.pop(key, None)
        drop(self.questions, lambda one: (one.workspace, one.root) in roots)
        return len(roots)

    def remove_connector(self, connector_id: str) -> None:
        self.connectors.pop(connector_id, None)
        self.metrics.pop(connector_id, None)
        for table in (self.secrets, self.tools, self.flows, self.allowances, self.recipes):
            drop(table, lambda one: one.connector_id == connector_id)
        for key in [key for key in self.versions if key[1] == connector_id]:
            del self.versions[key]

    def remove_all(self, workspace: str, user: str | None) -> None:
        """Of a user, or of the whole workspace."""

        def is_theirs(one: Any) -> bool:
            return one.workspace == workspace and user in (None, getattr(one, "user", ""))

        def is_owned(one: Any) -> bool:
            return one.workspace == workspace and user in (None, one.owner)

        self.remove_families(is_theirs)
        for agent in [one for one in self.agents.values() if is_owned(one)]:
            self.numbers.pop((workspace, agent.id), None)
        for connector in [one for one in self.connectors.values() if is_owned(one)]:
            self.remove_connector(connector.id)
        drop(self.agents, is_owned)
        drop(self.recipes, is_owned)
        drop(self.bundles, is_owned)
        drop(self.approvals, lambda one: is_theirs(one.binding))
        for table in (self.threads, self.loaded, self.allowances, self.flows, self.secrets):
            drop(table, is_theirs)
        for table in (self.results, self.calls, self.samples, self.keys, self.sessions, self.values):
            drop(table, is_theirs)
        for place in [place for place in self.messages if place[0] == workspace and user in (None, place[1])]:
            del self.messages[place]
        drop_keys(self.buckets, lambda key: key[0] == workspace and user in (None, key[4]))
        if user is not None:
            identity = identity_of(Caller(workspace, user), "user")
            drop(self.tools, lambda tool: tool.identity == identity)
            self.users.pop((workspace, user), None)
            return
        drop(self.users, is_theirs)
        drop(self.model_providers, is_theirs)
        drop(self.leases, is_theirs)
        for counts in (self.usage, self.numbers):
            drop_keys(counts, lambda key: key[0] == workspace)
        self.workspaces.pop(workspace, None)


def drop(table: dict[Any, Any], is_gone: Callable[[Any], bool]) -> int:
    return drop_keys(table, lambda key: is_gone(table[key]))


def drop_keys(table: dict[Any, Any], is_gone: Callable[[Any], bool]) -> int:
    gone = [*filter(is_gone, table)]
    for key in gone:
        del table[key]
    return len(gone)


def put(table: dict[Any, Any], key: Any, one: Any) -> None:
    """A value that was read at its revision, or a new one."""
    known = table.get(key)
    if known is None and one.revision:
        raise NotFound("it was removed meanwhile")
    if known is not None and not one.revision:
        raise Conflict("this already exists")
    if known is not None and known.revision != one.revision:
        raise outdated()
    table[key] = replace(one, revision=one.revision + 1)


def outdated() -> Outdated:
    return Outdated("somebody else has changed this meanwhile", hint="look at it again")


def newest(
    found: Collection[Value], time: Callable[[Value], datetime], id: Callable[[Value], str]
) -> list[Value]:
    return sorted(sorted(found, key=id), key=time, reverse=True)


def run_figure(sort: RunSort, run: Run) -> float:
    if sort == "costliest":
        return run.usage.cost
    if run.started_at is None or run.finished_at is None:
        return -1.0
    return (run.finished_at - run.started_at).total_seconds()


class Aggregate:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables


class MemoryConnectors(Aggregate):
    async def list(self, workspace: str | None = None) -> Sequence[Connector]:
        found = [one for one in self._tables.connectors.values() if workspace in (None, one.workspace)]
        return sorted(found, key=lambda one: (one.workspace, one.slug))

    async def find(self, workspace: str, connector_id: str) -> Connector | None:
        found = self._tables.connectors.get(connector_id)
        return found if found is not None and found.workspace == workspace else None

    async def add(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None:
        self._check_names(connector)
        self._check_sealed_for(connector, secrets)
        if connector.id in self._tables.connectors:
            raise Conflict("this already exists")
        self._tables.connectors[connector.id] = connector
        self._keep(secrets)

    async def update(
        self,
        connector: Connector,
        secrets: Sequence[SealedSecret] | None = None,
        *,
        forget_personal: bool = False,
    ) -> None:
        self._check_names(connector)
        self._check_there(connector)
        self._check_sealed_for(connector, secrets or ())
        known = self._tables.connectors[connector.id]
        if known.revision != connector.revision - 1:
            raise outdated()
        told = {"instructions": known.instructions, "server": known.server}
        era = None if connector.era is None else known.era
        self._tables.connectors[connector.id] = replace(connector, era=era, **told)
        if secrets is not None:
            drop(self._tables.secrets, lambda one: one.connector_id == connector.id and not one.user)
            self._keep(secrets)
        if forget_personal:
            drop(self._tables.secrets, lambda one: one.connector_id == connector.id and bool(one.user))

    async def learn(self, connector: Connector) -> bool:
        known = self._tables.connectors.get(connector.id)
        if known is None or (known.workspace, known.revision) != (connector.workspace, connector.revision):
            return False
        told = {name: getattr(connector, name) for name in ("era", "instructions", "server")}
        self._tables.connectors[connector.id] = replace(known, **told)
        return True

    async def remove(self, workspace: str, connector_id: str) -> None:
        known = self._tables.connectors.get(connector_id)
        if known is not None and known.workspace == workspace:
            self._tables.remove_connector(connector_id)

    async def secrets(self, connector: Connector, workspace: str, user: str) -> Sequence[SealedSecret]:
        places = {(connector.workspace, ""), (workspace, user) if user else (connector.workspace, "")}
        found = [
            one
            for one in self._tables.secrets.values()
            if one.connector_id == connector.id and (one.workspace, one.user) in places
        ]
        return sorted(found, key=lambda one: (one.user, one.name))

    async def put_secrets(
        self,
        connector: Connector,
        holder: tuple[str, str],
        secrets: Sequence[SealedSecret],
        removed: Sequence[str] = (),
    ) -> None:
        if any((one.workspace, one.user, one.connector_id) != (*holder, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another place")
        self._check_there(connector)
        stored = self._tables.connectors[connector.id]
        if secrets and connector.configuration.leads_elsewhere(stored.configuration):
            raise Conflict(f"the connector {connector.slug!r} leads somewhere else since a moment ago")
        for name in removed:
            self._tables.secrets.pop((holder[0], connector.id, holder[1], name), None)
        self._keep(secrets)

    async def secret_names(self, workspace: str, user: str) -> Mapping[str, frozenset[str]]:
        names: dict[str, frozenset[str]] = {}
        for one in self._tables.secrets.values():
            if (one.workspace, one.user) == (workspace, user):
                names[one.connector_id] = names.get(one.connector_id, frozenset()) | {one.name}
        return names

    async def key_ids(self) -> frozenset[str]:
        return frozenset(one.key_id for one in self._tables.secrets.values())

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        return [one for one in self._tables.secrets.values() if one.key_id != key_id][:limit]

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        is_same = self._tables.secrets.get(_place(before)) == before
        if is_same:
            self._keep([after])
        return is_same

    async def tools(self, workspace: str | None = None, connector_id: str | None = None) -> Sequence[Tool]:
        found = [
            one
            for one in self._tables.tools.values()
            if workspace in (None, one.workspace) and connector_id in (None, one.connector_id)
        ]
        return sorted(found, key=lambda one: (one.workspace, one.name, one.identity))

    async def save_tools(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        owners = {tool.name: tool for tool in tools}
        if versions and len(owners) != len(tools):
            raise ValueError("versions can be saved for one connector and identity at a time")
        if any(version.tool not in owners for version in versions):
            raise ValueError("a version without the tool itself")
        for tool in tools:
            known = self._tables.connectors.get(tool.connector_id)
            if known is None or known.workspace != tool.workspace:
                raise NotFound("the connector is gone")
        for tool in tools:
            before = self._tables.tools.get(_key(tool))
            if (before.revision if before else 0) != tool.revision:
                raise outdated()
        for tool in removed:
            self._tables.tools.pop(_key(tool), None)
            self._tables.versions.pop(_key(tool), None)
        for tool in tools:
            before = self._tables.tools.get(_key(tool))
            first_seen = before.first_seen if before else tool.first_seen
            self._tables.tools[_key(tool)] = replace(tool, first_seen=first_seen, revision=tool.revision + 1)
        for version in versions:
            self._tables.versions.setdefault(_key(owners[version.tool]), {})[version.version] = version

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        return [version for _, version in sorted(self._tables.versions.get(_key(tool), {}).items())]

    async def metrics(self) -> Mapping[str, ConnectorCounters]:
        return {key: one.copy() for key, one in self._tables.metrics.items()}

    async def add_metrics(self, grown: Mapping[str, ConnectorCounters]) -> Mapping[str, ConnectorCounters]:
        known = self._tables.metrics
        added = {
            key: known.get(key, ConnectorCounters("", "")).plus(one)
            for key, one in grown.items()
            if key in self._tables.connectors
        }
        known |= added
        return {key: one.copy() for key, one in added.items()}

    async def describe(
        self, process: str, slugs: Collection[str], until: datetime, now: datetime
    ) -> Mapping[str, frozenset[str]]:
        drop(self._tables.app_files, lambda one: one[1] <= now)
        self._tables.app_files[process] = (frozenset(slugs), until)
        return {name: described for name, (described, _) in self._tables.app_files.items()}

    async def withdraw(self, process: str) -> None:
        self._tables.app_files.pop(process, None)

    async def put_flow(self, flow: AuthorizationFlow) -> None:
        drop(self._tables.flows, lambda one: one.expires_at <= datetime.now(UTC))
        self._tables.flows[flow.state_hash] = flow

    async def take_flow(self, state_hash: str, now: datetime) -> AuthorizationFlow | None:
        flow = self._tables.flows.pop(state_hash, None)
        return flow if flow and flow.expires_at > now else None

    def _check_there(self, connector: Connector) -> None:
        known = self._tables.connectors.get(connector.id)
        if known is None or known.workspace != connector.workspace:
            raise NotFound(f"the connector {connector.slug!r} is gone")

    def _check_names(self, connector: Connector) -> None:
        wanted = {connector.slug, *connector.aliases}
        for one in self._tables.connectors.values():
            is_above = one.workspace in (connector.workspace, APP) and one.owner in ("", connector.owner)
            if is_above and one.id != connector.id and (taken := wanted & {one.slug, *one.aliases}):
                raise Conflict(
                    f"the name {min(taken)!r} is taken by the connector {one.slug!r}", hint="choose another"
                )

    def _check_sealed_for(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None:
        if any((one.workspace, one.connector_id) != (connector.workspace, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another connector")

    def _keep(self, secrets: Sequence[SealedSecret]) -> None:
        self._tables.secrets |= {_place(one): one for one in secrets}


def _place(secret: SealedSecret) -> tuple[str, str, str, str]:
    return (secret.workspace, secret.connector_id, secret.user, secret.name)


def _key(tool: Tool) -> tuple[str, str, str, str]:
    return (tool.workspace, tool.connector_id, tool.identity, tool.name)


class MemoryPeople(Aggregate):
    async def workspaces(self) -> Sequence[Workspace]:
        return sorted(self._tables.workspaces.values(), key=lambda one: (one.name, one.id))

    async def find_workspace(self, workspace: str) -> Workspace | None:
        return self._tables.workspaces.get(workspace)

    async def put_workspace(self, workspace: Workspace) -> None:
        put(self._tables.workspaces, workspace.id, workspace)

    async def remove_workspace(self, workspace: str) -> None:
        self._tables.remove_all(workspace, None)

    async def users(self, workspace: str) -> Sequence[User]:
        found = [one for one in self._tables.users.values() if one.workspace == workspace]
        return sorted(found, key=lambda one: (one.name, one.id))

    async def find_user(self, workspace: str, user: str) -> User | None:
        return self._tables.users.get((workspace, user))

    async def find_external(self, external: str) -> User | None:
        return next((one for one in self._tables.users.values() if one.external == external), None)

    async def put_user(self, user: User) -> None:
        for key, one in self._tables.users.items():
            same_name = (one.workspace, one.name) == (user.workspace, user.name)
            same_person = bool(user.external) and one.external == user.external
            if key != (user.workspace, user.id) and (same_name or same_person):
                raise Conflict(f"there is a user {user.name[:80]!r} already", hint="choose another name")
        if user.workspace not in self._tables.workspaces:
            raise NotFound("the workspace is gone")
        put(self._tables.users, (user.workspace, user.id), user)

    async def remove_user(self, workspace: str, user: str) -> None:
        self._tables.remove_all(workspace, user)

    async def keys(self, workspace: str, user: str | None = None) -> Sequence[ApiKey]:
        found = [
            one
            for one in self._tables.keys.values()
            if one.workspace == workspace and user in (None, one.user)
        ]
        return newest(found, lambda one: one.created_at, lambda one: one.id)

    async def find_key(self, hash: str) -> ApiKey | None:
        return next((one for one in self._tables.keys.values() if one.hash == hash), None)

    async def find_key_by_id(self, key: str) -> ApiKey | None:
        return self._tables.keys.get(key)

    async def put_key(self, key: ApiKey) -> None:
        if (key.workspace, key.user) not in self._tables.users:
            raise NotFound("the user is gone")
        known = self._tables.keys.get(key.id)
        put(self._tables.keys, key.id, replace(key, last_used_at=known.last_used_at) if known else key)

    async def used_keys(self, moments: Mapping[str, datetime]) -> None:
        for key, at in moments.items():
            if key in self._tables.keys:
                self._tables.keys[key] = replace(self._tables.keys[key], last_used_at=at)


class MemoryThreads(Aggregate):
    async def list(
        self,
        workspace: str,
        user: str,
        limit: int = 100,
        *,
        after: ThreadPosition | None = None,
        words: str = "",
        among: int | None = None,
        sort: ThreadSort = "latest",
    ) -> Sequence[Thread]:
        threads = self._tables.threads.items()
        own = [one for key, one in threads if key[:2] == (workspace, user) and one.remove_at is None]
        own.sort(key=lambda one: one.position, reverse=True)
        if sort == "title":
            own.sort(key=lambda one: (not one.pinned, one.title.lower()))
        if after is not None:
            own = own[[one.id for one in own].index(after.id) + 1 :]

        def has_words(place: int, one: Thread) -> bool:
            said = self._tables.messages.get((workspace, user, one.id), ())
            read = said if among is None or place < among else ()
            return any(words.lower() in text.lower() for text in [one.title, *(each.text for each in read)])

        return [one for place, one in enumerate(own) if has_words(place, one)][:limit]

    async def list_due(self, now: datetime) -> Sequence[Thread]:
        return [one for one in self._tables.threads.values() if one.remove_at and one.remove_at <= now]

    async def list_idle(self, workspace: str, before: datetime, limit: int) -> Sequence[Thread]:
        works = {(run.user, run.thread) for run in self._tables.runs.values() if not run.is_finished}
        idle = [
            one
            for one in self._tables.threads.values()
            if one.workspace == workspace
            and not one.pinned
            and one.updated_at < before
            and (one.user, one.id) not in works
        ]
        return sorted(idle, key=lambda one: (one.updated_at, one.id))[:limit]

    async def find(self, workspace: str, user: str, thread: str) -> Thread | None:
        return self._tables.threads.get((workspace, user, thread))

    async def put(self, thread: Thread) -> None:
        put(self._tables.threads, (thread.workspace, thread.user, thread.id), thread)

    async def remove(self, workspace: str, user: str, thread: str) -> None:
        place = (workspace, user, thread)
        self._tables.remove_families(lambda run: (run.workspace, run.user, run.thread) == place)
        self._tables.threads.pop(place, None)
        self._tables.messages.pop(place, None)
        drop(self._tables.loaded, lambda one: (one.workspace, one.user, one.thread) == place)

    async def messages(
        self, workspace: str, user: str, thread: str, *, after: int = 0, limit: int = 1000, last: bool = False
    ) -> Sequence[Message]:
        said = self._tables.messages.get((workspace, user, thread), [])
        found = [one for one in said if one.number > after]
        return found[max(len(found) - limit, 0) :] if last else found[:limit]

    async def add_message(self, message: Message) -> Message:
        return self._tables.add_message(message)

    async def note(
        self, workspace: str, user: str, thread: str, number: int, details: Mapping[str, Any]
    ) -> bool:
        said = self._tables.messages.get((workspace, user, thread), [])
        if not 0 < number <= len(said):
            return False
        before = said[number - 1]
        said[number - 1] = replace(before, details={**before.details, **details})
        return True

    async def loaded(self, workspace: str, user: str, thread: str) -> Sequence[LoadedTool]:
        place = (workspace, user, thread)
        found = [one for key, one in self._tables.loaded.items() if key[:3] == place]
        return sorted(found, key=lambda one: (one.loaded_at, one.tool))

    async def last_loaded(self, limit: int) -> Sequence[LoadedTool]:
        found = sorted(self._tables.loaded.values(), key=lambda one: (one.loaded_at, one.tool))
        return found[max(len(found) - limit, 0) :]

    async def change_loaded(self, put: Sequence[LoadedTool], removed: Sequence[LoadedTool]) -> None:
        for one in removed:
            self._tables.loaded.pop((one.workspace, one.user, one.thread, one.tool), None)
        self._tables.loaded |= {(one.workspace, one.user, one.thread, one.tool): one for one in put}

    async def forget_loaded(self, before: datetime) -> None:
        threads = self._tables.threads
        drop(
            self._tables.loaded,
            lambda one: one.loaded_at < before and (one.workspace, one.user, one.thread) not in threads,
        )


class MemoryRuns(Aggregate):
    async def accept(self, new: Sequence[NewRun]) -> Sequence[AcceptedRun]:
        runs, ids = self._tables.runs, [(one.run.workspace, one.run.id) for one in new]
        if len(set(ids)) != len(ids) or any(key in runs for key in ids):
            raise Conflict("this already exists")
        roots = {(one.run.workspace, one.run.root) for one in new if not one.run.is_root}
        if not roots <= runs.keys():
            raise NotFound("the run that this one belongs to is gone")
        places = [
            (one.begun.thread.workspace, one.begun.thread.user, one.begun.thread.id)
            for one in new
            if one.begun is not None
        ]
        if any(place in self._tables.threads for place in places):
            raise Conflict("this already exists")
        accepted: list[AcceptedRun] = []
        for one in new:
            if one.begun is not None:
                thread = one.begun.thread
                put(self._tables.threads, (thread.workspace, thread.user, thread.id), thread)
                self._tables.append_audit(one.begun.entry)
            message = None if one.message is None else self._tables.add_message(one.message)
            run = one.run if message is None else replace(one.run, message=message.number)
            is_placed = not run.thread or bool(run.message)
            if one.worker is not None and is_placed and not any(map(_is_open, self._of_thread(run))):
                run = replace(run, worker=one.worker, lease_until=one.until)
            runs[run.workspace, run.id] = run
            self._add_events(one.events)
            accepted.append(AcceptedRun(run=run, message=message))
        return accepted

    async def find(self, workspace: str, run: str) -> Run | None:
        return self._tables.runs.get((workspace, run))

    async def list(
        self,
        workspace: str,
        user: str | None = None,
        *,
        thread: str | None = None,
        agent: str | None = None,
        status: RunStatus | None = None,
        roots_only: bool = False,
        before: datetime | None = None,
        words: str = "",
        among: int | None = None,
        sort: RunSort = "newest",
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        found = [
            run
            for run in self._tables.runs.values()
            if run.workspace == workspace
            and user in (None, run.user)
            and thread in (None, run.thread)
            and agent in (None, run.agent)
            and status in (None, run.status)
            and (run.is_root or not roots_only)
            and (before is None or run.created_at < before)
        ]
        ordered = newest(found, lambda run: run.created_at, lambda run: run.id)
        if sort != "newest":
            ordered.sort(key=partial(run_figure, sort), reverse=True)
        if after is not None:
            ids = [run.id for run in ordered]
            ordered = ordered[ids.index(after) + 1 :] if after in ids else []
        return [run for run in ordered[:among] if words.lower() in run.request.lower()][:limit]

    async def family(self, workspace: str, root: str) -> Sequence[Run]:
        found = [run for run in self._tables.runs.values() if (run.workspace, run.root) == (workspace, root)]
        return sorted(found, key=lambda run: (not run.is_root, run.created_at, run.id))

    async def child(self, workspace: str, parent: str, parent_call: str) -> Run | None:
        wanted = (workspace, parent, parent_call)
        found = [
            run
            for run in self._tables.runs.values()
            if (run.workspace, run.parent, run.parent_call) == wanted
        ]
        return min(found, key=lambda run: (run.created_at, run.id), default=None)

    async def roots_after(self, workspace: str, user: str, thread: str, message: int) -> Sequence[Run]:
        place = (workspace, user, thread)
        found = [
            run
            for run in self._tables.runs.values()
            if (run.workspace, run.user, run.thread) == place and run.is_root and (run.message or 0) > message
        ]
        return sorted(found, key=lambda run: (run.message or 0, run.created_at, run.id))

    async def steps(self, workspace: str, run: str) -> Sequence[Step]:
        return [*self._tables.steps.get((workspace, run), [])]

    async def events(
        self, workspace: str, root: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[RunEvent]:
        told = sorted(self._tables.events.get((workspace, root), {}).items())
        return [event for number, event in told if number > after][:limit]

    async def last_event(self, workspace: str, root: str) -> int:
        return max(self._tables.events.get((workspace, root), {}), default=0)

    async def write(self, batch: JournalBatch) -> Sequence[Message]:
        return self._write(batch, lambda _: True)[1]

    async def write_held(self, batch: JournalBatch, worker: str) -> frozenset[str]:
        return self._write(batch, lambda root: root.worker == worker)[0]

    async def claim(
        self,
        worker: str,
        until: datetime,
        now: datetime,
        *,
        dead: Sequence[str] = (),
        limit: int = 100,
        only: Sequence[tuple[str, str]] | None = None,
    ) -> Sequence[Run]:
        free = [run for run in self._free(now, dead) if only is None or (run.workspace, run.id) in only]
        taken = [replace(run, worker=worker, lease_until=until) for run in free[:limit]]
        self._tables.runs |= {(run.workspace, run.id): run for run in taken}
        return taken

    async def claimable(
        self,
        now: datetime,
        *,
        dead: Sequence[str] = (),
        limit: int = 100,
        thread: tuple[str, str, str] | None = None,
    ) -> Sequence[tuple[str, str]]:
        free = [
            run for run in self._free(now, dead) if thread in (None, (run.workspace, run.user, run.thread))
        ]
        return [(run.workspace, run.id) for run in free[:limit]]

    async def backlog(self, now: datetime) -> tuple[int, datetime | None]:
        since = [run.lease_until or run.created_at for run in self._free(now, ())]
        return len(since), min(since, default=None)

    def _free(self, now: datetime, dead: Sequence[str]) -> Sequence[Run]:
        """Open roots that nobody holds and whose turn it is."""

        def is_held(run: Run) -> bool:
            if run.worker is None or run.lease_until is None:
                return False
            return run.lease_until > now and run.worker not in dead

        def is_in_the_way(other: Run, run: Run) -> bool:
            return other.id != run.id and _is_open(other) and (is_held(other) or _turn(other) < _turn(run))

        roots = sorted(filter(_is_open, self._tables.runs.values()), key=lambda run: (run.created_at, run.id))
        return [
            run
            for run in roots
            if not is_held(run) and not any(is_in_the_way(one, run) for one in self._of_thread(run))
        ]

    async def renew(
        self, worker: str, until: datetime, runs: Collection[str] | None = None
    ) -> frozenset[str]:
        held = self._held(worker, runs)
        self._tables.runs |= {(run.workspace, run.id): replace(run, lease_until=until) for run in held}
        return frozenset(run.id for run in held)

    async def release(self, worker: str, runs: Collection[str] | None = None) -> Sequence[tuple[str, str]]:
        held, now = self._held(worker, runs), datetime.now(UTC)
        for run in held:
            self._tables.runs[run.workspace, run.id] = replace(run, worker=None, lease_until=now)
        return [(run.workspace, run.id) for run in held]

    async def holders(self) -> Mapping[str, HeldRuns]:
        found: dict[str, HeldRuns] = {}
        for run in self._tables.runs.values():
            if run.worker is not None and not run.is_finished:
                until, runs = found.get(run.worker, HeldRuns(datetime.min.replace(tzinfo=UTC), 0))
                found[run.worker] = HeldRuns(max(until, run.lease_until or until), runs + 1)
        return found

    async def has_open(self) -> bool:
        return any(map(_is_open, self._tables.runs.values()))

    async def ask_cancel(self, workspace: str, run: str) -> bool:
        found, now = self._tables.runs.get((workspace, run)), datetime.now(UTC)
        if found is None or not _is_open(found):
            return False
        is_free = found.worker is None or found.lease_until is None or found.lease_until <= now
        ended: dict[str, Any] = {}
        if found.status == "queued" and is_free:
            ended = {"status": "cancelled", "finished_at": now}
        self._tables.runs[workspace, run] = replace(found, cancel_asked=True, **ended)
        return True

    async def cancels(self, worker: str) -> frozenset[str]:
        return frozenset(run.id for run in self._held(worker, None) if run.cancel_asked)

    async def forget(self, workspace: str, before: datetime) -> int:
        return self._tables.remove_families(
            lambda run: (
                (run.workspace, run.thread) == (workspace, "")
                and run.is_finished
                and run.finished_at is not None
                and run.finished_at < before
            )
        )

    async def ask(self, question: Question) -> Question:
        wanted = (question.workspace, question.run, question.key)
        for one in self._tables.questions.values():
            if (one.workspace, one.run, one.key) == wanted:
                return one
        self._tables.questions[question.workspace, question.id] = question
        return question

    async def find_question(self, workspace: str, user: str, question: str) -> Question | None:
        found = self._tables.questions.get((workspace, question))
        return found if found and found.user == user else None

    async def questions(
        self,
        workspace: str,
        user: str,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        found = [
            one
            for one in self._tables.questions.values()
            if (one.workspace, one.user) == (workspace, user)
            and thread in (None, one.thread)
            and status in (None, one.status)
        ]
        return newest(found, lambda one: one.created_at, lambda one: one.id)[:limit]

    async def answer(self, workspace: str, user: str, question: str, answer: Any, now: datetime) -> bool:
        found = await self.find_question(workspace, user, question)
        if found is None or found.status != "pending" or found.expires_at <= now:
            return False
        answered = replace(found, status="answered", answer=answer, answered_at=now)
        self._tables.questions[workspace, question] = answered
        return True

    async def decline(self, workspace: str, user: str, question: str, now: datetime) -> bool:
        if not await self.answer(workspace, user, question, None, now):
            return False
        found = self._tables.questions[workspace, question]
        self._tables.questions[workspace, question] = replace(found, status="declined")
        return True

    async def answer_by(self, message: Message, question: str, now: datetime) -> Message | None:
        if not await self.answer(message.workspace, message.user, question, message.text, now):
            return None
        return self._tables.add_message(message)

    async def resting(self, roots: Sequence[tuple[str, str]]) -> Mapping[str, RestingRun]:
        found: dict[str, RestingRun] = {}
        for workspace, root in roots:
            open_ones = [
                one
                for one in self._tables.questions.values()
                if (one.workspace, one.root, one.run, one.status) == (workspace, root, root, "pending")
                and not one.connector
            ]
            has_child = any(
                not run.is_root and not run.is_finished for run in await self.family(workspace, root)
            )
            steps = await self.steps(workspace, root)
            ended = {step.key for step in steps if step.kind == "call.finished"}
            has_call = any(step.kind == "call.departed" and step.key not in ended for step in steps)
            if len(open_ones) == 1 and not has_child and not has_call:
                found[root] = RestingRun(open_ones[0], await self.last_event(workspace, root))
        return found

    async def settled_questions(self, questions: Collection[str]) -> frozenset[str]:
        pending = {one.id for one in self._tables.questions.values() if one.status == "pending"}
        return frozenset(questions) - pending

    async def close_questions(self, workspace: str, root: str, status: Any) -> None:
        for key, one in self._tables.questions.items():
            if (one.workspace, one.root, one.status) == (workspace, root, "pending"):
                self._tables.questions[key] = replace(one, status=status)

    async def expire_questions(self, now: datetime) -> None:
        for key, one in self._tables.questions.items():
            if one.status == "pending" and one.expires_at <= now:
                self._tables.questions[key] = replace(one, status="expired")
        drop(
            self._tables.questions,
            lambda one: one.expires_at < now - _MONTH and (one.workspace, one.run) not in self._tables.runs,
        )

    def _of_thread(self, run: Run) -> Sequence[Run]:
        """Empty for a run that is in no thread: nobody is in its way."""
        place = (run.workspace, run.user, run.thread)
        runs = self._tables.runs.values() if run.thread else ()
        return [one for one in runs if (one.workspace, one.user, one.thread) == place]

    def _held(self, worker: str, runs: Collection[str] | None) -> Sequence[Run]:
        found = [run for run in self._tables.runs.values() if run.worker == worker and not run.is_finished]
        return [run for run in found if runs is None or run.id in runs]

    def _add_events(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            told = self._tables.events.setdefault((event.workspace, event.root), {})
            told.setdefault(event.number, event)

    def _write(
        self, batch: JournalBatch, may_write: Callable[[Run], bool]
    ) -> tuple[frozenset[str], Sequence[Message]]:
        known, new = self._tables.runs, {(run.workspace, run.id): run for run in batch.runs}

        def is_present(workspace: str, run: str) -> bool:
            found = known.get((workspace, run)) or new.get((workspace, run))
            root = None if found is None else known.get((workspace, found.root))
            return root is not None and may_write(root)

        named = {(step.workspace, step.run) for step in batch.steps}
        named |= {(event.workspace, event.root) for event in batch.events}
        named |= {(message.workspace, message.run) for message in batch.messages if message.run is not None}
        named |= {(worked.workspace, worked.run) for worked in batch.worked}
        named |= {key for run in batch.runs for key in ((run.workspace, run.id), (run.workspace, run.root))}
        present = {key for key in named if is_present(*key)}
        for key, run in new.items():
            if key in present:
                before = known.get(key, run)
                kept = {name: getattr(before, name) for name in ("cancel_asked", "worker", "lease_until")}
                known[key] = replace(run, **kept)
        for step in batch.steps:
            if (step.workspace, step.run) in present:
                steps = self._tables.steps.setdefault((step.workspace, step.run), [])
                steps.append(replace(step, number=len(steps) + 1))
        self._add_events([one for one in batch.events if (one.workspace, one.root) in present])
        for worked in batch.worked:
            if (worked.workspace, worked.run) in present:
                key = (worked.workspace, worked.agent)
                self._tables.numbers[key] = _sum(self._tables.numbers.get(key), worked.numbers)
        messages = [
            self._tables.add_message(one)
            if one.run is None or (one.workspace, one.run) in present
            else replace(one, number=0)
            for one in batch.messages
        ]
        return frozenset(run for _, run in named - present), messages


def _is_open(run: Run) -> bool:
    return run.is_root and not run.is_finished


def _turn(run: Run) -> tuple[float, datetime, str]:
    return (float("inf") if run.message is None else run.message, run.created_at, run.id)


def _sum(before: AgentNumbers | None, more: AgentNumbers) -> AgentNumbers:
    if before is None:
        return more
    names = [item.name for item in fields(AgentNumbers) if item.name != "last_used"]
    sums = {name: getattr(before, name) + getattr(more, name) for name in names}
    used = [moment for moment in (before.last_used, more.last_used) if moment is not None]
    return AgentNumbers(**sums, last_used=max(used, default=None))


class MemoryCalls(Aggregate):
    async def add(self, records: Sequence[CallRecord]) -> None:
        for record in records:
            self._tables.calls.setdefault((record.workspace, record.id), record)

    async def recent(self, workspace: str, user: str, limit: int = 100) -> Sequence[CallRecord]:
        return newest(self._of(workspace, user), lambda one: one.started_at, lambda one: one.id)[:limit]

    async def count(self, workspace: str, user: str, since: datetime) -> int:
        return sum(one.started_at >= since for one in self._of(workspace, user))

    async def forget(self, before: datetime, workspace: str | None = None) -> int:
        return drop(
            self._tables.calls,
            lambda one: one.started_at < before and workspace in (None, one.workspace),
        )

    async def keep_result(self, result: KeptResult) -> None:
        if (result.workspace, result.handle) in self._tables.results:
            raise Conflict("this already exists")
        self._tables.results[result.workspace, result.handle] = result

    async def find_result(self, workspace: str, user: str, handle: str) -> KeptResult | None:
        found = self._tables.results.get((workspace, handle))
        return found if found and found.user == user else None

    async def forget_results(self, before: datetime, workspace: str | None = None) -> int:
        return drop(
            self._tables.results,
            lambda one: one.created_at < before and workspace in (None, one.workspace),
        )

    def _of(self, workspace: str, user: str) -> Sequence[CallRecord]:
        return [one for one in self._tables.calls.values() if (one.workspace, one.user) == (workspace, user)]


class MemoryMetrics(Aggregate):
    async def add(self, rows: Sequence[BucketRow]) -> None:
        for row in rows:
            counts = self._tables.buckets.setdefault(row[:-1], [0.0] * len(MEASURES))
            for place, amount in enumerate(row.counts):
                counts[place] += amount

    async def read(self, query: BucketQuery) -> Sequence[BucketSum]:
        split = {query.split} if query.split else set()
        wanted = {*query.only, *split, *(["connector"] if query.shared else ())} - {"user"}
        sums: dict[tuple[int, str], list[float]] = {}
        for place, counts in self._tables.buckets.items():
            row = BucketRow._make((*place, counts))
            is_own = row.workspace == query.workspace and query.user in (None, row.user)
            is_shared = (
                row.workspace in (query.workspace, "") and not row.user and row.connector in query.shared
            )
            if (
                (is_own or is_shared)
                and (row.span, row.level) == (query.span, level_for(wanted))
                and query.start <= row.start < query.end
                and all(getattr(row, name) in values for name, values in query.only.items())
            ):
                at = row.start // query.step * query.step if query.step else 0
                of = getattr(row, query.split) if query.split else ""
                total = sums.setdefault((at, of), [0.0] * len(MEASURES))
                for number, amount in enumerate(counts):
                    total[number] += amount
        told = [MEASURES.index(name) for name in query.measures]
        return [
            BucketSum(at, of, tuple(counts[place] for place in told))
            for (at, of), counts in sorted(sums.items())
        ]

    async def names(self, query: BucketQuery, most: int) -> Collection[str]:
        return [*dict.fromkeys(one.of for one in await self.read(query))][:most]

    async def forget(self, before: Mapping[int, int]) -> None:
        buckets = self._tables.buckets
        for key in [key for key in buckets if key[1] in before and key[3] < before[key[1]]]:
            del buckets[key]


class MemoryApprovals(Aggregate):
    async def ask(self, approval: Approval) -> Approval:
        for one in self._tables.approvals.values():
            is_open = one.status == "pending" and one.expires_at > approval.created_at
            if is_open and one.binding == approval.binding:
                return one
        self._tables.approvals[approval.binding.workspace, approval.id] = approval
        return approval

    async def find(self, workspace: str, approval_id: str) -> Approval | None:
        return self._tables.approvals.get((workspace, approval_id))

    async def list(
        self, workspace: str, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        found = [
            one
            for one in self._tables.approvals.values()
            if one.binding.workspace == workspace
            and user in (None, one.binding.user)
            and status in (None, one.status)
        ]
        return newest(found, lambda one: one.created_at, lambda one: one.id)[:limit]

    async def answer(self, approval: Approval, allowance: Allowance | None) -> bool:
        key = (approval.binding.workspace, approval.id)
        found = self._tables.approvals.get(key)
        if found is None or found.status != "pending" or approval.answered_at is None:
            return False
        if found.expires_at <= approval.answered_at:
            return False
        names = ("status", "answer", "answered_by", "answered_at", "expires_at")
        self._tables.approvals[key] = replace(found, **{name: getattr(approval, name) for name in names})
        if allowance is not None:
            place = (allowance.workspace, allowance.user, allowance.connector_id)
            self._tables.allowances[*place, allowance.tool, allowance.thread, allowance.key] = allowance
        return True

    async def take(self, binding: CallBinding, now: datetime, used_by: str | None = None) -> Approval | None:
        bound = [(key, one) for key, one in self._tables.approvals.items() if one.binding == binding]
        for _, one in bound:
            if used_by is not None and (one.status, one.used_by) == ("used", used_by):
                return one
        for key, one in bound:
            if one.status == "approved" and one.expires_at > now:
                self._tables.approvals[key] = replace(one, status="used", used_by=used_by)
                return self._tables.approvals[key]
        return None

    async def settled(self, approvals: Collection[str]) -> frozenset[str]:
        pending = {one.id for one in self._tables.approvals.values() if one.status == "pending"}
        return frozenset(approvals) - pending

    async def drop(self, workspace: str, approval_id: str) -> bool:
        found = self._tables.approvals.get((workspace, approval_id))
        if found is None or found.status != "pending":
            return False
        self._tables.approvals[workspace, approval_id] = replace(found, status="expired")
        return True

    async def count_open(self, workspace: str, user: str) -> int:
        pending = await self.list(workspace, user, "pending", 1_000_000)
        return sum(one.expires_at > datetime.now(UTC) for one in pending)

    async def allows(self, binding: CallBinding) -> bool:
        whose = (binding.workspace, binding.user, binding.connector_id, binding.tool)
        places = [(*whose, one, binding.key or "") for one in {"", binding.thread or ""}]
        found = [self._tables.allowances[place] for place in places if place in self._tables.allowances]
        return any(one.fingerprint == binding.fingerprint for one in found)

    async def allowances(self, workspace: str, user: str) -> Sequence[Allowance]:
        found = [one for key, one in self._tables.allowances.items() if key[:2] == (workspace, user)]
        return newest(found, lambda one: one.created_at, lambda one: one.tool)

    async def withdraw(self, workspace: str, user: str, approval_id: str) -> bool:
        wanted = (workspace, user, approval_id)
        return bool(
            drop(self._tables.allowances, lambda one: (one.workspace, one.user, one.approval_id) == wanted)
        )

    async def expire(self, now: datetime) -> None:
        for key, one in self._tables.approvals.items():
            if one.status in ("pending", "approved") and one.expires_at <= now:
                self._tables.approvals[key] = replace(one, status="expired")
        drop(
            self._tables.approvals,
            lambda one: one.status not in ("pending", "approved") and one.expires_at < now - _MONTH,
        )


class MemoryUsage(Aggregate):
    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | TakenUsage:
        for meter in meters:
            used = self._tables.usage.get(_count(meter), 0.0)
            if used + meter.amount > meter.limit + 1e-9 if meter.amount else used >= meter.limit:
                return meter
        for lease in leases:
            if await self.count_places(lease.workspace, lease.subject, now) >= lease.limit:
                return lease
        ahead = [meter.ahead_of(self._tables.usage.get(_count(meter), 0.0)) for meter in meters]
        self._add([replace(one, amount=one.amount + more) for one, more in zip(meters, ahead, strict=True)])
        self._tables.leases |= {(one.workspace, one.subject, one.id): one for one in leases}
        places = [await self.count_places(one.workspace, one.subject, now) for one in leases]
        return TakenUsage(ahead=tuple(ahead), places=tuple(places))

    async def give_back(self, meters: Sequence[UsageMeter]) -> None:
        for meter in meters:
            if self._tables.usage.get(_count(meter), 0.0) >= meter.amount - 1e-9:
                self._tables.usage[_count(meter)] -= meter.amount

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        self._add(meters)
        for lease in leases:
            self._tables.leases.pop((lease.workspace, lease.subject, lease.id), None)

    async def read(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        counts = self._tables.usage.items()
        return {key[2:]: amount for key, amount in counts if key[:2] == (workspace, subject)}

    async def count_places(self, workspace: str, subject: str, now: datetime) -> int:
        leases = self._tables.leases.items()
        return sum(key[:2] == (workspace, subject) and one.expires_at > now for key, one in leases)

    async def hold_slots(
        self, subject: str, node: str, wanted: int, limit: int, until: datetime, now: datetime
    ) -> Mapping[str, int]:
        held = self._slots(subject, now)
        more = min(wanted - len(held.get(node, ())), limit - sum(map(len, held.values())))
        held.setdefault(node, []).extend([until] * max(0, more))
        return {one: len(ends) for one, ends in held.items()}

    async def pass_slots(
        self,
        subject: str,
        node: str,
        counts: Mapping[str | None, int],
        limit: int,
        until: datetime,
        now: datetime,
    ) -> int:
        held = self._slots(subject, now)
        mine = held.setdefault(node, [])
        gone = min(len(mine), sum(counts.values()))
        del mine[:gone]
        room = min(gone, limit - sum(map(len, held.values())))
        for to, count in counts.items():
            if to is not None:
                given = max(0, min(count, room))
                held.setdefault(to, []).extend([until] * given)
                room -= given
        return len(mine)

    async def renew_slots(self, node: str, until: datetime, now: datetime) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for subject in self._tables.slots:
            mine = self._slots(subject, now).get(node, [])
            mine[:] = [until] * len(mine)
            counts |= {subject: len(mine)} if mine else {}
        return counts

    async def drop_slots(self, node: str) -> None:
        for held in self._tables.slots.values():
            held.pop(node, None)

    def _slots(self, subject: str, now: datetime) -> dict[str, list[datetime]]:
        """When those of each node end."""
        held = self._tables.slots.setdefault(subject, {})
        for ends in held.values():
            ends[:] = [end for end in ends if end > now]
        return held

    async def forget(self, before_window: Mapping[str, int], now: datetime) -> None:
        for key in [key for key in self._tables.usage if key[3] < before_window.get(key[2], key[3])]:
            del self._tables.usage[key]
        drop(self._tables.leases, lambda one: one.expires_at <= now)

    def _add(self, meters: Sequence[UsageMeter]) -> None:
        for meter in meters:
            if meter.amount:
                self._tables.usage[_count(meter)] = self._tables.usage.get(_count(meter), 0.0) + meter.amount


def _count(meter: UsageMeter) -> tuple[str, str, str, int]:
    return (meter.workspace, meter.subject, meter.measure, meter.window)


class MemoryAudit(Aggregate):
    async def append(self, entries: Sequence[AuditEntry]) -> None:
        for entry in entries:
            self._tables.append_audit(entry)

    async def read(
        self,
        workspace: str,
        *,
        after: int = 0,
        limit: int = 1000,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        words: Sequence[str] = (),
        newest_first: bool = False,
    ) -> Sequence[AuditEntry]:
        found = [
            one
            for one in self._tables.audit.get(workspace, [])
            if user in (None, one.user)
            and action in (None, one.action)
            and (since is None or one.time >= since)
            and (until is None or one.time < until)
            and any(
                word.lower() in text.lower()
                for word in words or [""]
                for text in (one.subject, one.action, one.outcome, one.agent or "")
            )
            and (not after or (one.number < after if newest_first else one.number > after))
        ]
        return (found[::-1] if newest_first else found)[:limit]

    async def workspaces(self) -> Sequence[str]:
        return sorted(self._tables.audit)

    async def forget(self, workspace: str, before: datetime) -> int:
        trail = self._tables.audit.get(workspace, [])
        kept = next((place for place, one in enumerate(trail) if one.time >= before), len(trail))
        if kept:
            self._tables.anchors[workspace] = (trail[kept - 1].number, trail[kept - 1].hash)
            self._tables.audit[workspace] = trail[kept:]
        return kept

    async def anchor(self, workspace: str) -> tuple[int, str]:
        return self._tables.anchors.get(workspace, (0, ""))

    async def head(self, workspace: str) -> tuple[int, str]:
        return self._tables.head(workspace)


class MemoryAgents(Aggregate):
    async def list(self, workspace: str | None = None) -> Sequence[Agent]:
        found = [one for one in self._tables.agents.values() if workspace in (None, one.workspace)]
        return sorted(found, key=lambda one: (one.name, one.workspace, one.owner))

    async def find(self, workspace: str, agent_id: str) -> Agent | None:
        return self._tables.agents.get((workspace, agent_id))

    async def put(self, agent: Agent) -> None:
        wanted = (agent.workspace, agent.owner, agent.name)
        for one in self._tables.agents.values():
            if (one.workspace, one.owner, one.name) == wanted and one.id != agent.id:
                raise Conflict(f"there is an agent {agent.name[:80]!r} already", hint="choose another name")
        put(self._tables.agents, (agent.workspace, agent.id), agent)

    async def remove(self, workspace: str, agent_id: str) -> None:
        if self._tables.agents.pop((workspace, agent_id), None) is not None:
            for key in [key for key in self._tables.numbers if key[1] == agent_id]:
                del self._tables.numbers[key]

    async def numbers(self, workspace: str) -> Mapping[str, AgentNumbers]:
        return {agent: one for (place, agent), one in self._tables.numbers.items() if place == workspace}


class MemoryRecipes(Aggregate):
    async def list(self, workspace: str, user: str, connector_id: str | None = None) -> Sequence[Recipe]:
        found = [
            one
            for one in self._tables.recipes.values()
            if one.workspace == workspace
            and one.owner in ("", user)
            and connector_id in (None, one.connector_id)
        ]
        return newest(found, lambda one: one.created_at, lambda one: one.id)

    async def find(self, workspace: str, recipe: str) -> Recipe | None:
        return self._tables.recipes.get((workspace, recipe))

    async def put(self, recipe: Recipe, most: int) -> bool:
        place = (recipe.workspace, recipe.owner)
        has = sum((one.workspace, one.owner) == place for one in self._tables.recipes.values())
        if not recipe.revision and has >= most:
            return False
        if recipe.connector_id not in self._tables.connectors:
            raise NotFound("its connector is gone")
        put(self._tables.recipes, (recipe.workspace, recipe.id), recipe)
        return True

    async def remove(self, workspace: str, recipe: str) -> None:
        self._tables.recipes.pop((workspace, recipe), None)


class MemoryBundles(Aggregate):
    async def list(self) -> Sequence[Bundle]:
        return [self._tables.bundles[key] for key in sorted(self._tables.bundles)]

    async def find(self, workspace: str, owner: str, name: str) -> Bundle | None:
        return self._tables.bundles.get((workspace, owner, name))

    async def put(self, bundle: Bundle, most: int) -> bool:
        place = (bundle.workspace, bundle.owner)
        has = sum((one.workspace, one.owner) == place for one in self._tables.bundles.values())
        if not bundle.revision and has >= most:
            return False
        put(self._tables.bundles, bundle.key, bundle)
        return True

    async def remove(self, workspace: str, owner: str, name: str) -> None:
        self._tables.bundles.pop((workspace, owner, name), None)


class MemoryModelProviders(Aggregate):
    async def list(self, *workspaces: str) -> Sequence[ModelProvider]:
        theirs = [one for one in self._tables.model_providers.values() if one.workspace in workspaces]
        return sorted(theirs, key=lambda one: (one.created_at, one.name))

    async def put(self, provider: ModelProvider, most: int) -> bool:
        has = sum(one.workspace == provider.workspace for one in self._tables.model_providers.values())
        if not provider.revision and has >= most:
            return False
        put(self._tables.model_providers, (provider.workspace, provider.name), provider)
        return True

    async def remove(self, workspace: str, name: str) -> None:
        self._tables.model_providers.pop((workspace, name), None)

    async def key_ids(self) -> frozenset[str]:
        return frozenset(one.key_id for one in self._secrets())

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        return [one for one in self._secrets() if one.key_id != key_id][:limit]

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        for key, provider in self._tables.model_providers.items():
            if provider.secret == before:
                self._tables.model_providers[key] = replace(provider, secret=after)
                return True
        return False

    def _secrets(self) -> Sequence[SealedSecret]:
        return [one.secret for one in self._tables.model_providers.values() if one.secret is not None]


class MemoryRollout(Aggregate):
    async def state(self, name: str) -> Mapping[str, Any] | None:
        return self._tables.states.get(name)

    async def put_state(self, name: str, state: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
        if self._tables.states.get(name) != before:
            raise outdated()
        self._tables.states[name] = dict(state)

    async def add(self, sample: RolloutSample) -> None:
        self._tables.samples.setdefault((sample.workspace, sample.run), sample)

    async def thumb(self, workspace: str, run: str, thumb: int) -> bool:
        found = self._tables.samples.get((workspace, run))
        if found is not None:
            self._tables.samples[workspace, run] = replace(found, thumb=thumb)
        return found is not None

    async def samples(self, since: datetime) -> Sequence[RolloutSample]:
        found = [one for one in self._tables.samples.values() if one.at >= since]
        return sorted(found, key=lambda one: (one.at, one.run))[-10_000:]

    async def forget(self, before: datetime) -> None:
        drop(self._tables.samples, lambda one: one.at < before)


class MemoryClients:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def open_session(
        self, session: ClientSession, most: int, busy: Collection[str] = ()
    ) -> Sequence[str] | None:
        sessions = self._tables.sessions
        own = [one for one in sessions.values() if (one.workspace, one.user) == _holder(session)]
        known = [one.id for one in sorted(own, key=lambda one: (one.used_at, one.id))]
        gone = [one for one in known if one not in busy][: max(len(known) + 1 - most, 0)]
        if len(known) - len(gone) >= most:
            return None
        for one in gone:
            del sessions[one]
        sessions[session.id] = session
        return gone

    async def find_session(self, session: str) -> ClientSession | None:
        return self._tables.sessions.get(session)

    async def change_session(
        self, session: str, change: Callable[[ClientSession], ClientSession], *, tells: bool = False
    ) -> ClientSession | None:
        found = self._tables.sessions.get(session)
        if found is not None:
            self._tables.sessions[session] = found = change(found)
        return found

    async def use_sessions(self, moments: Mapping[str, datetime]) -> None:
        for one, at in moments.items():
            found = self._tables.sessions.get(one)
            if found is not None and found.used_at < at:
                self._tables.sessions[one] = replace(found, used_at=at)

    async def remove_session(self, session: str) -> None:
        self._tables.sessions.pop(session, None)

    async def forget_sessions(self, before: datetime) -> None:
        drop(self._tables.sessions, lambda one: one.used_at < before)

    async def put_value(
        self, value: OneTimeValue, now: datetime, *, most: int | None = None, tells: bool = False
    ) -> bool:
        values = self._tables.values
        drop(values, lambda one: one.expires_at <= now)
        alike = sum((*_holder(one), one.kind) == (*_holder(value), value.kind) for one in values.values())
        if most is not None and alike >= most:
            return False
        values[value.id] = value
        return True

    async def find_value(self, value: str, now: datetime) -> OneTimeValue | None:
        found = self._tables.values.get(value)
        return found if found and found.expires_at > now else None

    async def take_value(self, value: str, now: datetime) -> OneTimeValue | None:
        found = self._tables.values.pop(value, None)
        return found if found and found.expires_at > now else None

    async def list_values(
        self, kind: str, workspace: str, user: str, now: datetime
    ) -> Sequence[OneTimeValue]:
        wanted = (kind, workspace, user)
        found = [one for one in self._tables.values.values() if (one.kind, *_holder(one)) == wanted]
        return [one for one in found if one.expires_at > now]

    async def has_value(self, value: str, now: datetime) -> bool:
        found = self._tables.values.get(value)
        return found is not None and found.expires_at > now


def _holder(one: ClientSession | OneTimeValue) -> tuple[str, str]:
    return one.workspace, one.user


async def _ping() -> None: ...


class MemoryLogins(Aggregate):
    async def add_client(self, client: RegisteredClient, now: datetime, most_unused: int) -> None:
        clients = self._tables.oauth_clients
        drop(clients, lambda one: one.expires_at <= now)
        unused = sorted(
            (one for one in clients.values() if not one.is_used), key=lambda one: (one.created_at, one.id)
        )
        for one in unused[: max(len(unused) + 1 - most_unused, 0)]:
            del clients[one.id]
        clients[client.id] = client

    async def find_client(self, client: str, now: datetime) -> RegisteredClient | None:
        found = self._tables.oauth_clients.get(client)
        return found if found is not None and found.expires_at > now else None

    async def keep_client(self, client: str, until: datetime) -> None:
        found = self._tables.oauth_clients.get(client)
        if found is not None and found.expires_at < until:
            self._tables.oauth_clients[client] = replace(found, is_used=True, expires_at=until)

    async def signing_keys(self) -> Sequence[SealedSigningKey]:
        return newest([*self._tables.signing_keys.values()], lambda one: one.created_at, lambda one: one.id)

    async def add_signing_key(self, key: SealedSigningKey) -> None:
        self._tables.signing_keys[key.id] = key

    async def forget_signing_keys(self, before: datetime) -> None:
        drop(self._tables.signing_keys, lambda one: one.created_at < before)


def memory_store() -> Store:
    tables = Tables()
    return Store(
        connectors=MemoryConnectors(tables),
        people=MemoryPeople(tables),
        threads=MemoryThreads(tables),
        runs=MemoryRuns(tables),
        calls=MemoryCalls(tables),
        metrics=MemoryMetrics(tables),
        approvals=MemoryApprovals(tables),
        usage=MemoryUsage(tables),
        audit=MemoryAudit(tables),
        agents=MemoryAgents(tables),
        recipes=MemoryRecipes(tables),
        bundles=MemoryBundles(tables),
        model_providers=MemoryModelProviders(tables),
        rollout=MemoryRollout(tables),
        clients=MemoryClients(tables),
        logins=MemoryLogins(tables),
        clock=Clock(),
        ping=_ping,
    )
