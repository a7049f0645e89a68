"""What Dragoman asks of a store: one Protocol per aggregate. `Hub(store=…)` takes whatever fills them.

What every method promises, besides what is said of it:

- It is one transaction: all of it or nothing, on disk and seen by every process once it returns. A caller
  that is cancelled meanwhile leaves it whole, done or not.
- It sees the workspace (and the user) that it is asked for and nothing of another. Without one (`None`) it
  sees all of them: for the hub's own start and its tidying only.
- Values come back equal to what was put in: times are aware, in UTC, to the microsecond. Free text may have
  U+FFFD where a database cannot hold a character; a key never has.
- What is put replaces what has the same key; where that has a `revision`, it must be the one that was read (0
  for what is new), else `Outdated` is raised and nothing is written. In the store it grows by one with every
  put. What is found is None where there is nothing. What is removed may be gone already. Lists are in the
  order that is said; equal ones in the order of their ids.
- `StoreUnavailable` when facts can be neither read nor written, `Conflict` when a name is taken, `NotFound`
  when what it belongs to is gone, `InvalidArguments` for a value that cannot be kept. No other error leaves.

A store knows nothing of servers, people or permissions, and never sees a secret in the clear. The tests in
`tests/store` say the same for any store; `tests/store/memory_store.py` is one of plain dictionaries.
"""

# A docstring is the whole body here.
# pyright: reportReturnType=false

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from dragoman.agent import Agent, AgentNumbers
from dragoman.bundle import Bundle
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig
from dragoman.people import ApiKey, Thread, ThreadPosition, ThreadSort, User, Workspace
from dragoman.recipe import Recipe
from dragoman.run import Message, Question, Run, RunEvent, RunSort, RunStatus, Step
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
    ChangeBatch,
    ChangePosition,
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
from dragoman.telemetry.time_buckets import BucketRow
from dragoman.tool import Tool


class ConnectorStore(Protocol):
    """Connectors with all that goes when they go: secrets, tools, versions, metrics, begun authorisations.

    A slug or alias is taken (`Conflict`) when a connector of the same workspace or of the app has it, of the
    same owner or of nobody. A secret belongs to a connector, a holder (workspace and user; user "" is the
    shared one) and a name; a tool to a connector, an identity and a name.
    """

    async def list(self, workspace: str | None = None) -> Sequence[Connector]: ...
    async def find(self, workspace: str, connector_id: str) -> Connector | None: ...
    async def add(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None: ...
    async def update(
        self,
        connector: Connector,
        secrets: Sequence[SealedSecret] | None = None,
        *,
        forget_personal: bool = False,
    ) -> None:
        """Replaces it, and all its shared secrets unless `secrets` is None. `NotFound` when it is gone.

        Its revision is one more than the one that was read. With `forget_personal` what users brought for it
        is deleted in the same moment.
        """

    async def learn(self, connector: Connector) -> bool:
        """Writes `era`, `instructions` and `server`, which are what a server told, and nothing else of it.

        False, and nothing is written, when its revision is another by now.
        """

    async def remove(self, workspace: str, connector_id: str) -> None:
        """With what people allowed for its tools."""

    async def secrets(self, connector: Connector, workspace: str, user: str) -> Sequence[SealedSecret]:
        """The shared ones, then those of `user` of `workspace`; never another user's."""

    async def put_secrets(
        self,
        connector: Connector,
        holder: tuple[str, str],
        secrets: Sequence[SealedSecret],
        removed: Sequence[str] = (),
    ) -> None:
        """Deletes the `removed` names of one holder, then puts. `NotFound` when the connector is gone.

        `Conflict` when it leads elsewhere by now than the `connector` that the secrets were given for.
        """

    async def secret_names(self, workspace: str, user: str) -> Mapping[str, frozenset[str]]:
        """Of one user, by connector id."""

    async def key_ids(self) -> frozenset[str]:
        """Of the keys that any stored secret is sealed with."""

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        """Up to `limit` secrets that another key than this one sealed: for the rotation."""

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        """Replaces one secret; False when it was changed meanwhile."""

    async def tools(
        self, workspace: str | None = None, connector_id: str | None = None
    ) -> Sequence[Tool]: ...
    async def save_tools(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        """Deletes `removed` with their versions, puts `tools` (which keep their `first_seen`), adds versions.

        A version belongs to the tool of its name in `tools`, so one save with versions is for one connector
        and identity. `NotFound` when the connector is gone, `Outdated` when any tool is not as it was read.
        """

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        """Oldest first."""

    async def metrics(self) -> Mapping[str, ConnectorCounters]:
        """What all processes have counted, by connector id."""

    async def add_metrics(self, grown: Mapping[str, ConnectorCounters]) -> Mapping[str, ConnectorCounters]:
        """Adds what one process has counted; returns what all have. Of a connector that is gone, nothing."""

    async def describe(
        self, process: str, slugs: Collection[str], until: datetime, now: datetime
    ) -> Mapping[str, frozenset[str]]:
        """Notes which connectors the app files of a process describe; returns those of all, by process.

        Nobody's whose time is over: they are deleted.
        """

    async def withdraw(self, process: str) -> None:
        """The process ends: its files describe nothing any more."""

    async def put_flow(self, flow: AuthorizationFlow) -> None:
        """Also deletes those whose time is over."""

    async def take_flow(self, state_hash: str, now: datetime) -> AuthorizationFlow | None:
        """Once, and only in time."""


class PeopleStore(Protocol):
    """Workspaces, users and keys. The name of a user is unique in a workspace, an outside name everywhere.

    Lists are by name, keys newest first. `Conflict` when `put_user` finds either name with somebody else.
    """

    async def workspaces(self) -> Sequence[Workspace]: ...
    async def find_workspace(self, workspace: str) -> Workspace | None: ...
    async def put_workspace(self, workspace: Workspace) -> None: ...
    async def remove_workspace(self, workspace: str) -> None:
        """With everything in every aggregate that has its name on it, the audit trail excepted."""

    async def users(self, workspace: str) -> Sequence[User]: ...
    async def find_user(self, workspace: str, user: str) -> User | None: ...
    async def find_external(self, external: str) -> User | None:
        """Whoever an outside issuer knows by this name."""

    async def put_user(self, user: User) -> None: ...
    async def remove_user(self, workspace: str, user: str) -> None:
        """With everything in every aggregate that is theirs, the audit trail excepted."""

    async def keys(self, workspace: str, user: str | None = None) -> Sequence[ApiKey]: ...
    async def find_key(self, hash: str) -> ApiKey | None: ...
    async def put_key(self, key: ApiKey) -> None: ...
    async def find_key_by_id(self, key: str) -> ApiKey | None: ...
    async def used_keys(self, moments: Mapping[str, datetime]) -> None:
        """When keys were last used, by key id."""


class ThreadStore(Protocol):
    """Threads with their messages and loaded tools. Both may be there where nobody put the thread itself.

    Messages of a thread are numbered from 1, without a gap, however many processes add at once.
    """

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
        """Pinned ones first, then by the last message or change, or by title, in any case.

        Those that will be removed are left out.

        `words` are in the title or in a message, in capital letters or not. `among`: messages are looked
        through of no more than so many threads, the first ones.
        """

    async def list_due(self, now: datetime) -> Sequence[Thread]:
        """Of everybody: those whose time to be removed has come."""

    async def list_idle(self, workspace: str, before: datetime, limit: int) -> Sequence[Thread]:
        """Of all its users: not pinned, without work under way, last written in or changed before then."""

    async def find(self, workspace: str, user: str, thread: str) -> Thread | None: ...
    async def put(self, thread: Thread) -> None: ...
    async def remove(self, workspace: str, user: str, thread: str) -> None:
        """With its messages, loaded tools and runs."""

    async def messages(
        self, workspace: str, user: str, thread: str, *, after: int = 0, limit: int = 1000, last: bool = False
    ) -> Sequence[Message]:
        """In order; with `last` the newest `limit` of them."""

    async def add_message(self, message: Message) -> Message:
        """With its number."""

    async def note(
        self, workspace: str, user: str, thread: str, number: int, details: Mapping[str, Any]
    ) -> bool:
        """Merges `details` into those of a message. False when there is no such message."""

    async def loaded(self, workspace: str, user: str, thread: str) -> Sequence[LoadedTool]:
        """Oldest first."""

    async def last_loaded(self, limit: int) -> Sequence[LoadedTool]:
        """Of all threads, the newest `limit`, the oldest of them first."""

    async def change_loaded(self, put: Sequence[LoadedTool], removed: Sequence[LoadedTool]) -> None: ...
    async def forget_loaded(self, before: datetime) -> None:
        """Those that were loaded before, in threads that nobody put."""


class RunStore(Protocol):
    """Runs with their journal, events and questions: a root run and all under it are one family.

    Steps of a run and events of a root are numbered, and listed in order. A root run is held by one worker
    until its lease is over; whoever finds it over takes the run on from its journal. Nobody takes over a
    family while it is being written, and what belongs to a removed one is left out of what is written.
    """

    async def accept(self, new: Sequence[NewRun]) -> Sequence[AcceptedRun]:
        """Writes runs, messages and events, and threads that begin with them, as the trail then says.
        Messages get their numbers, runs those of their messages.

        A run with a `worker` is held by it at once if it is its turn (see `claim`). `NotFound` when the root
        of a child run is gone.
        """

    async def find(self, workspace: str, run: str) -> Run | None: ...
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
        """`before` is a time of creation. `words` are in the request, in any case.

        `among`: they are looked for in no more than so many, the first ones. What is alike in what they are
        sorted by is newest first, and what has not ended is the shortest. `after`: those that follow this
        run; none when it is gone.
        """

    async def family(self, workspace: str, root: str) -> Sequence[Run]:
        """The root, then all under it, oldest first."""

    async def child(self, workspace: str, parent: str, parent_call: str) -> Run | None:
        """The run that this call of the parent started."""

    async def roots_after(self, workspace: str, user: str, thread: str, message: int) -> Sequence[Run]:
        """Root runs of a thread whose message has a higher number, in order."""

    async def steps(self, workspace: str, run: str) -> Sequence[Step]: ...
    async def events(
        self, workspace: str, root: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[RunEvent]: ...
    async def last_event(self, workspace: str, root: str) -> int:
        """The highest number so far, 0 when there is none."""

    async def write(self, batch: JournalBatch) -> Sequence[Message]:
        """Returns the messages with their numbers; one of a removed run is not written and has 0."""

    async def write_held(self, batch: JournalBatch, worker: str) -> frozenset[str]:
        """The same of families that the worker holds. Returns the ids of the runs it wrote nothing of."""

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
        """Takes unfinished root runs that nobody holds: never claimed, lease over, or of a `dead` worker.

        Of each thread only the oldest unfinished one is taken, and only while none of it is held; runs
        without a thread at once. Two processes never get the same. Oldest first. `only` these, where given,
        by workspace and id.
        """

    async def claimable(
        self,
        now: datetime,
        *,
        dead: Sequence[str] = (),
        limit: int = 100,
        thread: tuple[str, str, str] | None = None,
    ) -> Sequence[tuple[str, str]]:
        """What `claim` would take, by workspace and id; of a thread alone, by workspace, user and id."""

    async def backlog(self, now: datetime) -> tuple[int, datetime | None]:
        """How many runs `claim` would take, and since when the first of them waits."""

    async def renew(
        self, worker: str, until: datetime, runs: Collection[str] | None = None
    ) -> frozenset[str]:
        """Lengthens the leases of unfinished runs that the worker holds, or of these; returns their ids."""

    async def release(self, worker: str, runs: Collection[str] | None = None) -> Sequence[tuple[str, str]]:
        """Gives back what the worker holds, or these of it: another may take it at once. Returns what it was,
        by workspace and id.
        """

    async def holders(self) -> Mapping[str, HeldRuns]:
        """The workers that hold an unfinished run."""

    async def has_open(self) -> bool:
        """Whether any root run of any workspace is unfinished."""

    async def ask_cancel(self, workspace: str, run: str) -> bool:
        """Marks an unfinished root run; a queued one that nobody holds is cancelled at once.

        False when it has finished.
        """

    async def cancels(self, worker: str) -> frozenset[str]:
        """Ids of the worker's unfinished runs that somebody wants cancelled."""

    async def forget(self, workspace: str, before: datetime) -> int:
        """Removes families in no thread that finished before; others go with theirs. Returns how many."""

    async def ask(self, question: Question) -> Question:
        """The question with the same run and key if there is one, else this one, written."""

    async def find_question(self, workspace: str, user: str, question: str) -> Question | None: ...
    async def questions(
        self,
        workspace: str,
        user: str,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        """Newest first. One whose time is over is listed as it was last written."""

    async def answer(self, workspace: str, user: str, question: str, answer: Any, now: datetime) -> bool:
        """False unless it is open, and in time."""

    async def decline(self, workspace: str, user: str, question: str, now: datetime) -> bool:
        """The same for a person who will not answer."""

    async def answer_by(self, message: Message, question: str, now: datetime) -> Message | None:
        """The same with what a person writes in the thread, which is added to it."""

    async def resting(self, roots: Sequence[tuple[str, str]]) -> Mapping[str, RestingRun]:
        """Of these root runs, by workspace and id, those in which nothing happens until a person answers the
        one question that the run itself asked.

        None of its child runs is at work, and no call is under way of which it is not known how it ended.
        """

    async def settled_questions(self, questions: Collection[str]) -> frozenset[str]:
        """Those of these ids that wait for nobody any more."""

    async def close_questions(self, workspace: str, root: str, status: str) -> None:
        """The open ones of a root run."""

    async def expire_questions(self, now: datetime) -> None:
        """Closes open ones whose time is over."""


class CallStore(Protocol):
    """Finished calls, and results too large for their callers. Both outlive their connector."""

    async def add(self, records: Sequence[CallRecord]) -> None:
        """A record that is known already is skipped, so a batch may be added again."""

    async def recent(self, workspace: str, user: str, limit: int = 100) -> Sequence[CallRecord]:
        """Newest first."""

    async def count(self, workspace: str, user: str, since: datetime) -> int:
        """How many calls a user has begun since then."""

    async def forget(self, before: datetime, workspace: str | None = None) -> int:
        """Of one workspace, or of all. Returns how many."""

    async def keep_result(self, result: KeptResult) -> None: ...
    async def find_result(self, workspace: str, user: str, handle: str) -> KeptResult | None: ...
    async def forget_results(self, before: datetime, workspace: str | None = None) -> int: ...


class MetricStore(Protocol):
    """Numbers over time: see `telemetry.time_buckets`."""

    async def add(self, rows: Sequence[BucketRow]) -> None:
        """To what there is of them already; no two rows have the same key."""

    async def read(self, query: BucketQuery) -> Sequence[BucketSum]:
        """Sums by time, then by what the query splits by; where nothing happened there is none."""

    async def names(self, query: BucketQuery, most: int) -> Collection[str]:
        """What the query tells apart, "" for what has no name; some of it where there are more."""

    async def forget(self, before: Mapping[int, int]) -> None:
        """Buckets of each span that began before then, in seconds since 1970."""


class ApprovalStore(Protocol):
    """Questions whether a call may happen, their answers, and what is allowed for longer (allowances).

    An approval serves exactly the call of its binding, every field compared, and one call only: of two that
    `take` at once one gets it. Lists are newest first. An allowance covers one thread, or all (thread "").
    """

    async def ask(self, approval: Approval) -> Approval:
        """The open and unexpired one for the same binding, or this one, written."""

    async def find(self, workspace: str, approval_id: str) -> Approval | None: ...
    async def list(
        self, workspace: str, user: str | None = None, status: str | None = None, limit: int = 100
    ) -> Sequence[Approval]: ...
    async def answer(self, approval: Approval, allowance: Allowance | None) -> bool:
        """Writes both if the question is still open and in time."""

    async def take(self, binding: CallBinding, now: datetime, used_by: str | None = None) -> Approval | None:
        """An approved, unexpired one, used from now on. What `used_by` took before is its own still."""

    async def settled(self, approvals: Collection[str]) -> frozenset[str]:
        """Those of these ids that wait for nobody any more."""

    async def drop(self, workspace: str, approval_id: str) -> bool:
        """Closes an open question that nobody waits for any more."""

    async def count_open(self, workspace: str, user: str) -> int: ...
    async def allows(self, binding: CallBinding) -> bool:
        """Whether a person has said yes to such calls for longer."""

    async def allowances(self, workspace: str, user: str) -> Sequence[Allowance]: ...
    async def withdraw(self, workspace: str, user: str, approval_id: str) -> bool:
        """Deletes the allowance that this approval gave."""

    async def expire(self, now: datetime) -> None:
        """Closes what is unused and whose time is over; deletes what was closed more than 30 days ago."""


class UsageStore(Protocol):
    """Counts and places that several processes share: no two of them pass a limit together."""

    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | TakenUsage:
        """Adds all amounts and takes all places; or nothing, and returns the first that exceeds its limit.

        An amount of nothing asks whether there is room at all. What meters want ahead is added as
        `UsageMeter.ahead_of` allows.
        """

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        """Adds amounts whatever the limits, as they were used after all, and gives places back."""

    async def give_back(self, meters: Sequence[UsageMeter]) -> None:
        """Takes amounts off that nobody used, where they are still counted."""

    async def read(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        """What was counted of a subject, by measure and window."""

    async def count_places(self, workspace: str, subject: str, now: datetime) -> int: ...
    async def hold_slots(
        self, subject: str, node: str, wanted: int, limit: int, until: datetime, now: datetime
    ) -> Mapping[str, int]:
        """Has the node hold so many slots, or what the limit leaves; none is taken from it.

        Returns how many each node has then.
        """

    async def pass_slots(
        self,
        subject: str,
        node: str,
        counts: Mapping[str | None, int],
        limit: int,
        until: datetime,
        now: datetime,
    ) -> int:
        """Gives so many to other nodes, as the limit allows, or to nobody (None).

        Returns how many the node has then.
        """

    async def renew_slots(self, node: str, until: datetime, now: datetime) -> Mapping[str, int]:
        """All that it has: how many of each subject."""

    async def drop_slots(self, node: str) -> None:
        """The node is about to end."""

    async def forget(self, before_window: Mapping[str, int], now: datetime) -> None:
        """Deletes windows that are over, by measure, and places that nobody gave back."""


class AuditStore(Protocol):
    """The trail of each workspace, which outlives it. Entries are never changed.

    Each gets the next number of its workspace and `audit_chain.link`, the hash over itself and the last one.
    """

    async def append(self, entries: Sequence[AuditEntry]) -> None: ...
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
        """In order; with `newest_first` in the other, and `after` is then the number to go down from.

        Any of `words` is in what it was done to, in the action, the outcome or the agent's name, in any case.
        """

    async def workspaces(self) -> Sequence[str]:
        """Ids of those that ever had an entry, removed ones included."""

    async def forget(self, workspace: str, before: datetime) -> int:
        """Deletes the oldest entries, up to the first that is not older; the chain goes on from `anchor`."""

    async def anchor(self, workspace: str) -> tuple[int, str]:
        """Number and hash of the last entry that was forgotten; (0, "") when none was."""

    async def head(self, workspace: str) -> tuple[int, str]:
        """Number and hash of the last entry that was written, forgotten or not."""


class AgentStore(Protocol):
    """Agents by name, unique per owner (`Conflict`), and what they did: see `JournalBatch.worked`."""

    async def list(self, workspace: str | None = None) -> Sequence[Agent]: ...
    async def find(self, workspace: str, agent_id: str) -> Agent | None: ...
    async def put(self, agent: Agent) -> None: ...
    async def remove(self, workspace: str, agent_id: str) -> None:
        """With its numbers in every workspace."""

    async def numbers(self, workspace: str) -> Mapping[str, AgentNumbers]:
        """By agent id: what they did for this workspace."""


class RecipeStore(Protocol):
    """How jobs were done: a user's own, and those of the workspace (owner ""). They go with their connector,
    their owner and their workspace.
    """

    async def list(self, workspace: str, user: str, connector_id: str | None = None) -> Sequence[Recipe]:
        """The user's and the workspace's, newest first."""

    async def find(self, workspace: str, recipe: str) -> Recipe | None: ...
    async def put(self, recipe: Recipe, most: int) -> bool:
        """False, and nothing is written, when it is new and its owner has `most` already.

        `NotFound` when its connector is gone.
        """

    async def remove(self, workspace: str, recipe: str) -> None: ...


class BundleStore(Protocol):
    """Choices of tools, by owner and name. They go with their owner and workspace, not with connectors."""

    async def list(self) -> Sequence[Bundle]:
        """All of the installation, by workspace, owner and name."""

    async def find(self, workspace: str, owner: str, name: str) -> Bundle | None: ...
    async def put(self, bundle: Bundle, most: int) -> bool:
        """False, and nothing is written, when it is new and its owner has `most` already."""

    async def remove(self, workspace: str, owner: str, name: str) -> None: ...


class SealedValues(Protocol):
    """Rows with something that the master key has sealed: what its rotation needs of them."""

    async def key_ids(self) -> frozenset[str]:
        """Of the keys that anything of theirs is sealed with."""

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        """Up to `limit` that another key than this one sealed."""

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        """Replaces one; False when it was changed meanwhile."""


class ModelProviderStore(SealedValues, Protocol):
    """Providers of language models that people set, by workspace and name. They go with their workspace."""

    async def list(self, *workspaces: str) -> Sequence[ModelProvider]:
        """Those of these workspaces, the oldest first."""

    async def put(self, provider: ModelProvider, most: int) -> bool:
        """False, and nothing is written, when it is new and its workspace has `most` already."""

    async def remove(self, workspace: str, name: str) -> None: ...


class RolloutStore(Protocol):
    """How far a way of working is rolled out (by name, the operator's), and the runs that it is judged by.

    By a name of its own also what is known of the registry that the app follows.
    """

    async def state(self, name: str) -> Mapping[str, Any] | None: ...
    async def put_state(self, name: str, state: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
        """In the place of what it was before; `Outdated` when it is something else by now."""

    async def add(self, sample: RolloutSample) -> None:
        """One of a run that has one already is skipped."""

    async def thumb(self, workspace: str, run: str, thumb: int) -> bool: ...
    async def samples(self, since: datetime) -> Sequence[RolloutSample]:
        """Oldest first; at most the last 10,000."""

    async def forget(self, before: datetime) -> None: ...


class ClientStore(Protocol):
    """Clients that come to any process: sessions of MCP, and values that are taken once before they expire.

    Both go with their user and their workspace.
    """

    async def open_session(
        self, session: ClientSession, most: int, busy: Collection[str] = ()
    ) -> Sequence[str] | None:
        """Those of the same user that went because they were used longest ago: it has `most` at most.

        None, and nothing is written, when there is room only by removing those that are `busy`.
        """

    async def find_session(self, session: str) -> ClientSession | None: ...
    async def change_session(
        self, session: str, change: Callable[[ClientSession], ClientSession], *, tells: bool = False
    ) -> ClientSession | None:
        """What `change` makes of it as it is now, and nobody else between. Others are told where it `tells`.
        None when it is gone.
        """

    async def use_sessions(self, moments: Mapping[str, datetime]) -> None:
        """When each was used; what is known to be later stays."""

    async def remove_session(self, session: str) -> None:
        """Others are told."""

    async def forget_sessions(self, before: datetime) -> None:
        """Those that were not used since."""

    async def put_value(
        self, value: OneTimeValue, now: datetime, *, most: int | None = None, tells: bool = False
    ) -> bool:
        """False, and nothing is written, when its user has `most` of the kind already."""

    async def find_value(self, value: str, now: datetime) -> OneTimeValue | None:
        """It stays. None for what expired."""

    async def take_value(self, value: str, now: datetime) -> OneTimeValue | None:
        """It is gone then. None for what expired, too."""

    async def list_values(
        self, kind: str, workspace: str, user: str, now: datetime
    ) -> Sequence[OneTimeValue]:
        """Those of a kind that somebody has, in any order."""

    async def has_value(self, value: str, now: datetime) -> bool:
        """Whether it is there still, and has not expired."""


class LoginStore(Protocol):
    """Logins of OAuth clients: those that registered themselves, and what signs their tokens."""

    async def add_client(self, client: RegisteredClient, now: datetime, most_unused: int) -> None:
        """Those that expired go, and of those that nobody has used the oldest, where there are too many."""

    async def find_client(self, client: str, now: datetime) -> RegisteredClient | None: ...
    async def keep_client(self, client: str, until: datetime) -> None:
        """It is used, and stays until then at least."""

    async def signing_keys(self) -> Sequence[SealedSigningKey]:
        """Newest first."""

    async def add_signing_key(self, key: SealedSigningKey) -> None: ...
    async def forget_signing_keys(self, before: datetime) -> None:
        """Those that were made before."""


class ChangeStore(Protocol):
    """What other processes wrote, to be told here within a second. Changes of one's own are not among them.

    A change is there once its transaction is, and is never left out, in whatever order transactions end.
    """

    @property
    def interval(self) -> float:
        """Seconds between two looks that cost nothing to speak of."""

    def on_written(self, told: Callable[[], None]) -> None:
        """`told` is called each time that this process has written a change, once others can read it."""

    def may_be_new(self) -> bool:
        """False: nobody has written since it was True. Asks no database."""

    async def end(self) -> ChangePosition:
        """Where who begins now goes on from."""

    async def after(self, position: ChangePosition) -> ChangeBatch: ...
    async def trim(self, now: datetime) -> None:
        """Deletes what is old; whose position is older reads everything again."""


class NoChanges:
    """Fills `ChangeStore` for a store that no other process writes to."""

    interval = 60.0

    def on_written(self, told: Callable[[], None]) -> None: ...

    def may_be_new(self) -> bool:
        return False

    async def end(self) -> ChangePosition:
        return ChangePosition(0, frozenset(), datetime.now(UTC))

    async def after(self, position: ChangePosition) -> ChangeBatch:
        return ChangeBatch((), position)

    async def trim(self, now: datetime) -> None: ...


class PersonalDataStore(Protocol):
    """One person's data, whole, over all aggregates."""

    def rows(self, workspace: str, user: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Every row that is theirs, with the name of its table; those of the audit trail last."""
        ...

    async def erase(self, workspace: str, user: str, names: Collection[str], told: AuditEntry) -> int:
        """Removes all of it, and who they are from the audit trail: both or nothing.

        `names` are how people call them. The trail tells of it by `told`, whose subject is the pseudonym that
        stands for them from now on. Returns how many entries were changed.
        """
        ...

    async def compact(self) -> bool:
        """So that nothing of what was deleted is left in the files; whether that could be done."""


class NoPersonalData:
    """Fills `PersonalDataStore` for a store that does not know whose its rows are."""

    async def rows(self, workspace: str, user: str) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
        raise _cannot()
        yield  # a generator, though an empty one

    async def erase(self, workspace: str, user: str, names: Collection[str], told: AuditEntry) -> int:
        raise _cannot()

    async def compact(self) -> bool:
        raise _cannot()


def _cannot() -> InvalidConfig:
    return InvalidConfig("this store cannot tell whose its rows are", hint="fill PersonalDataStore for it")


@dataclass(frozen=True)
class Store:
    """One open store. Who opens it closes it."""

    connectors: ConnectorStore
    people: PeopleStore
    threads: ThreadStore
    runs: RunStore
    calls: CallStore
    metrics: MetricStore
    approvals: ApprovalStore
    usage: UsageStore
    audit: AuditStore
    agents: AgentStore
    recipes: RecipeStore
    bundles: BundleStore
    model_providers: ModelProviderStore
    rollout: RolloutStore
    clients: ClientStore
    logins: LoginStore
    clock: Clock
    """By which leases begin and end."""
    ping: Callable[[], Awaitable[None]]
    """`StoreUnavailable` when facts can be neither read nor written."""
    changes: ChangeStore = field(default_factory=NoChanges)
    personal: PersonalDataStore = field(default_factory=NoPersonalData)
