"""Whether a person must say yes to a call, and the waiting for it. The model has no way in here.

Knows the store's rows and the vault's seal; who may answer is decided in the hub. A client that can ask its
own person is asked as well: its question stands beside the one that is kept, and the first answer counts.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Protocol

from dragoman.cluster import Cluster
from dragoman.cluster.awaited import Awaited
from dragoman.connector import Connector, Policy
from dragoman.errors import ApprovalPending, ApprovalRefused, InputRequired, LimitReached
from dragoman.events import Event, EventKind, Events
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store.later_fields import known_to
from dragoman.store.protocols import ApprovalStore
from dragoman.store.records import Answer, Approval, ApprovalStatus, CallBinding
from dragoman.tool import (
    Annotations,
    ClientChannel,
    Tool,
    ToolCall,
    arguments_hash,
    json_bytes,
    visible_json,
)


class Sealer(Protocol):
    """Seals the arguments of a question, bound to where they are kept. The vault fills it."""

    def seal_bytes(self, value: bytes, *place: str) -> bytes: ...

    def open_bytes(self, sealed: bytes, *place: str) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """One call as it was asked for."""

    arguments: Mapping[str, Any] = field(repr=False)
    title: str | None
    description: str
    annotations: Annotations

    @classmethod
    def of(cls, tool: Tool, arguments: Mapping[str, Any]) -> "RequestedCall":
        definition = tool.definition
        return cls(
            arguments=arguments,
            title=definition.title,
            description=definition.description,
            annotations=definition.annotations,
        )

    def sealed(self, sealer: Sealer, workspace: str, user: str, approval_id: str) -> bytes:
        facts = {
            "arguments": self.arguments,
            "title": self.title,
            "description": self.description,
            "annotations": asdict(self.annotations),
        }
        return sealer.seal_bytes(json_bytes(facts), *_place(workspace, user, approval_id))

    @classmethod
    def opened(cls, sealer: Sealer, approval: Approval) -> "RequestedCall":
        binding = approval.binding
        facts = opened_facts(sealer, approval.arguments, binding.workspace, binding.user, approval.id)
        marks = known_to(Annotations, facts["annotations"])
        return known_to(cls, {**facts, "annotations": marks})


def opened_facts(
    sealer: Sealer, sealed: bytes, workspace: str, user: str, approval_id: str
) -> dict[str, Any]:
    """What a person was asked to say yes to, with the exact arguments."""
    # Not by orjson: it would round whole numbers over 64 bits, and the exact ones are to be shown.
    return json.loads(sealer.open_bytes(sealed, *_place(workspace, user, approval_id)))


def _place(workspace: str, user: str, approval_id: str) -> tuple[str, ...]:
    return ("approval", workspace, user, approval_id)


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """That a person is asked: why, and whether each call needs an answer of its own."""

    reason: str
    only_once: bool


_EVERY_TIME = ApprovalNeed("every call of this tool needs a yes of its own", only_once=True)
_DESTRUCTIVE = ApprovalNeed("the tool says that it can destroy something", only_once=True)
_WRITES = ApprovalNeed("the tool says that it changes something", only_once=False)
_UNKNOWN = ApprovalNeed("the tool does not say that it only reads", only_once=False)


def is_person(caller: Caller) -> bool:
    """Whether nobody stands between the person and us: no agent, no code, no client of theirs."""
    return caller.way == "direct" and caller.agent is None


def policy_of(tool: Tool, connector: Connector, workspace: Policy) -> Policy:
    """The nearest of the tool's, the connector's and the workspace's.

    What a user brought along does not get out of a workspace where everybody is asked each time.
    """
    is_users_own = bool(connector.owner) and connector.origin == "people"
    if workspace == "always" and is_users_own:
        return "always"
    return tool.approval or connector.configuration.approval or workspace


def need_of(policy: Policy, marks: Annotations, caller: Caller) -> ApprovalNeed | None:
    """None when the call may run as it is.

    As MCP means its annotations, what only reads runs; only what declares itself destructive is.
    Who calls directly has consented by calling, unless everybody is to be asked each time.
    """
    if policy == "always":
        return _EVERY_TIME
    if policy == "never" or marks.read_only is True or is_person(caller):
        return None
    if marks.destructive is True:
        return _DESTRUCTIVE
    return _UNKNOWN if marks.read_only is None else _WRITES


QUESTION_LASTS = timedelta(hours=24)
ANSWER_LASTS = timedelta(hours=1)
MOST_OPEN = 200  # of one user: nobody reads more, and an agent must not fill the store
OWN = "dragoman"  # the slug under which people are asked about Dragoman's own functions, and by Dragoman
_LONGEST_MESSAGE = 20_000  # characters: what a client might cut cannot be asked exactly
_ANSWERED: Mapping[Answer, ApprovalStatus] = {"once": "approved", "no": "refused"}
OnClientAnswer = Callable[[Caller, Approval], Awaitable[None]]
"""Hears that the person of a client has answered, before the call goes on."""


async def _nobody_hears(caller: Caller, approval: Approval) -> None:
    return None


def answered(approval: Approval, answer: Answer, user: str) -> Approval:
    """A yes for longer is used up as it is given: its allowance stands for it, and can be taken back."""
    now = datetime.now(UTC)
    return replace(
        approval,
        status=_ANSWERED.get(answer, "used"),
        answer=answer,
        answered_by=user,
        answered_at=now,
        expires_at=now + ANSWER_LASTS,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One call that needs a yes."""

    tool: Tool
    need: ApprovalNeed
    binding: CallBinding
    arguments: Mapping[str, Any]


class ApprovalGate:
    def __init__(
        self,
        rows: ApprovalStore,
        sealer: Sealer,
        directory: Directory,
        events: Events,
        cluster: Cluster,
        wait: float,
        lasts: timedelta = QUESTION_LASTS,
        on_client_answer: OnClientAnswer = _nobody_hears,
    ) -> None:
        self._rows = rows
        self._sealer = sealer
        self._directory = directory
        self._events = events
        self._wait = wait
        self._lasts = lasts
        self._on_client_answer = on_client_answer
        self.awaited = Awaited(cluster, "answered", rows.settled)

    async def admit(
        self,
        tool: Tool,
        connector: Connector,
        caller: Caller,
        arguments: Mapping[str, Any],
        call: ToolCall | None = None,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        reason: str = "",
    ) -> bool:
        """Returns when the call may go on: True when somebody was waited for, so that the rest is old news.

        Raises `ApprovalRefused` when a person said no, `ApprovalPending` when nobody answered in time. A call
        may have less time than the installation gives, and more patience. `waiting` is entered for as long as
        a person is waited for. With a `reason` this one call needs a yes of its own, whatever the policy.
        """
        workspace = (await self._directory.of(caller)).workspace
        policy = policy_of(tool, connector, workspace.approval)
        need = need_of(policy, tool.definition.annotations, caller)
        if reason:
            need = ApprovalNeed(reason, only_once=True)
        if need is None or _is_continued(call, tool, arguments):
            return False
        wanted = _Wanted(tool, need, _binding(tool, caller, arguments), arguments)
        used_by = call.observer.name if call is not None and call.observer is not None else None
        if await self._has_yes(wanted, used_by):
            return False
        began = asyncio.get_running_loop().time()
        while True:
            question, is_new = await self._ask(wanted)
            try:
                if is_new and await self._has_yes(wanted, used_by):
                    # The one before was answered between the two looks: nobody need be asked again.
                    await self._rows.drop(question.binding.workspace, question.id)
                    return True
                with _observed(call, question), waiting():
                    await self._settled(question, wanted, caller, call, began)
            except asyncio.CancelledError:
                if call is not None and call.observer is not None and call.observer.is_over:
                    await self._rows.drop(question.binding.workspace, question.id)
                raise
            # Of several that waited for the same answer, one has it; the others ask anew.
            if await self._has_yes(wanted, used_by):
                return True

    def open(self, approval: Approval) -> RequestedCall:
        """What was asked. `KeyFault` when it was not sealed for this very question."""
        return RequestedCall.opened(self._sealer, approval)

    def tell_asked(self, approval: Approval) -> None:
        self._publish("approval.requested", approval, reason=approval.reason)

    def tell_answered(self, approval: Approval) -> None:
        """The answer is written: whoever waits for it goes on at once."""
        self.awaited.tell(approval.id)
        self._publish("approval.answered", approval, answer=approval.answer, answered_by=approval.answered_by)

    async def _has_yes(self, wanted: _Wanted, used_by: str | None) -> bool:
        """An allowance for longer covers it, or a yes for exactly this call is taken, once."""
        binding = wanted.binding
        return (not wanted.need.only_once and await self._rows.allows(binding)) or await self._rows.take(
            binding, datetime.now(UTC), used_by
        ) is not None

    async def _ask(self, wanted: _Wanted) -> tuple[Approval, bool]:
        """The question, and whether nobody had asked it before."""
        binding, now, approval_id = wanted.binding, datetime.now(UTC), f"apr_{token_hex(8)}"
        if await self._rows.count_open(binding.workspace, binding.user) >= MOST_OPEN:
            raise LimitReached(
                f"{MOST_OPEN} questions wait for an answer already",
                hint="answer some first; dragoman approvals list shows them",
            )
        asked = RequestedCall.of(wanted.tool, wanted.arguments)
        new = Approval(
            id=approval_id,
            binding=binding,
            slug=wanted.tool.slug,
            reason=wanted.need.reason,
            arguments=asked.sealed(self._sealer, binding.workspace, binding.user, approval_id),
            only_once=wanted.need.only_once,
            status="pending",
            created_at=now,
            expires_at=now + self._lasts,
        )
        try:
            question = await self._rows.ask(new)
        except asyncio.CancelledError:
            # It may have been written while the caller went away.
            await self._rows.drop(binding.workspace, approval_id)
            raise
        is_new = question.id == approval_id
        if is_new:
            self.tell_asked(question)
        return question, is_new

    async def _settled(
        self, question: Approval, wanted: _Wanted, caller: Caller, call: ToolCall | None, began: float
    ) -> None:
        """Returns when a person said yes: the client's, where it asks them, or one by another door."""
        channel = call.channel if call is not None else None
        form = approval_form(wanted, question) if channel is not None and channel.approves else None
        if channel is None or form is None:
            await self._answered(question, began + _patience(call, self._wait))
            return
        loop, patience = asyncio.get_running_loop(), channel.patience
        asking = loop.create_task(self._ask_client(channel, form, question, caller))
        waiting = loop.create_task(
            self._answered(question, began + (self._wait if patience is None else patience))
        )
        try:
            await asyncio.wait((asking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done() or asking.result():
                await waiting
            else:
                await self._answered(question, began + _patience(call, self._wait))
        finally:
            for task in (asking, waiting):
                task.cancel()
            for ended in await asyncio.gather(asking, waiting, return_exceptions=True):
                del ended  # seen

    async def _ask_client(
        self, channel: ClientChannel, form: Mapping[str, Any], question: Approval, caller: Caller
    ) -> bool:
        """Whether it had its person answer. Raises `ApprovalPending` when they left the question open."""
        try:
            answer = await channel.ask("elicitation/create", form, OWN)
        except InputRequired:
            return False
        action = answer.get("action")
        if action not in ("accept", "decline"):
            raise self._unanswered(question)
        after = answered(question, "once" if action == "accept" else "no", caller.user)
        if await self._rows.answer(after, None):
            await self._on_client_answer(caller, after)
            self.tell_answered(after)
        return True

    async def _answered(self, question: Approval, deadline: float) -> None:
        """Returns when a person said yes."""
        loop = asyncio.get_running_loop()
        event = self.awaited.event(question.id)
        deadline = min(deadline, loop.time() + (question.expires_at - datetime.now(UTC)).total_seconds())
        is_over = await self._is_yes(question)  # it may have been answered already
        while not is_over and (left := deadline - loop.time()) > 0:
            is_over = await self.awaited.wait(event, left) and await self._is_yes(question)
        if is_over:
            return
        raise self._unanswered(question)

    def _unanswered(self, question: Approval) -> ApprovalPending:
        return ApprovalPending(
            f"a person has to allow this call of {question.binding.tool} first (approval {question.id})",
            hint=f"dragoman approvals answer {question.id} once, then call again with the same arguments",
        )

    async def _is_yes(self, question: Approval) -> bool:
        """False while nobody has answered."""
        current = await self._rows.find(question.binding.workspace, question.id)
        if current is None or current.status == "refused":
            raise ApprovalRefused(
                f"a person said no to this call of {question.binding.tool}",
                hint="do not try again by another way; ask the person what they want instead",
            )
        if current.status == "expired":
            raise self._unanswered(question)
        return current.status in ("approved", "used")

    def _publish(self, kind: EventKind, approval: Approval, **facts: Any) -> None:
        if not self._events.has_listeners:
            return
        binding = approval.binding
        data = {"id": approval.id, "tool": binding.tool, "agent": binding.agent, "way": binding.way}
        data |= {"thread": binding.thread, "expires_at": approval.expires_at.isoformat(), **facts}
        self._events.publish(
            Event(
                kind=kind, workspace=binding.workspace, user=binding.user, connector=approval.slug, data=data
            )
        )


def _patience(call: ToolCall | None, usual: float) -> float:
    if call is None:
        return usual
    if call.patience is not None:
        return call.patience
    if call.channel is not None and call.channel.approval_wait is not None:
        usual = call.channel.approval_wait
    return usual if call.timeout is None else min(usual, call.timeout)


def approval_form(wanted: _Wanted, question: Approval) -> Mapping[str, Any] | None:
    """The parameters of MCP's `elicitation/create`; None where the exact arguments do not fit in.

    It holds no word of the tool's server: a person decides by what would be done.
    """
    message = (
        f"Allow this one call of {wanted.tool.name}?\n"
        f"{wanted.need.reason[:1].upper()}{wanted.need.reason[1:]}. It would be made with exactly these"
        f" arguments:\n{visible_json(wanted.arguments)}\n"
        f"Accept to allow it once, decline to refuse it (approval {question.id})."
    )
    if len(message) > _LONGEST_MESSAGE:
        return None
    return {"message": message, "requestedSchema": {"type": "object", "properties": {}}}


@contextmanager
def _observed(call: ToolCall | None, question: Approval) -> Generator[None]:
    observer = call.observer if call else None
    if call is not None and call.channel is not None:
        call.channel.approval = question.id
    if observer is None:
        yield
        return
    observer.awaits(question.id)
    try:
        yield
    finally:
        observer.goes_on()


def _is_continued(call: ToolCall | None, tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """A request that continues a call is a part of it: nobody is asked for leave twice."""
    channel = call.channel if call is not None else None
    return channel is not None and channel.continues is not None and channel.continues.covers(tool, arguments)


def _binding(tool: Tool, caller: Caller, arguments: Mapping[str, Any]) -> CallBinding:
    return CallBinding(
        workspace=caller.workspace,
        user=caller.user,
        thread=caller.thread,
        agent=caller.agent,
        way=caller.way,
        key=caller.key,
        connector_id=tool.connector_id,
        tool=tool.name,
        version=tool.version,
        fingerprint=tool.fingerprint,
        arguments_hash=arguments_hash(arguments),
    )
