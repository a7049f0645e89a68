"""What users, their keys and connectors may use, counted in the store so that several processes agree.

Who has no limit is not counted and costs nothing. With a limit a call is counted before it is made, from what
was taken ahead or in the store (`usage_blocks`): while that does not answer and nothing is left, those with a
limit are refused.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter
from secrets import token_hex
from typing import ClassVar

from dragoman.access.usage_blocks import UsageBlocks
from dragoman.connector import Connector
from dragoman.errors import LimitReached
from dragoman.identity.directory import Directory, Person
from dragoman.people import NO_LIMITS, ApiKey, CallLimits
from dragoman.scope import Caller
from dragoman.store.protocols import UsageStore
from dragoman.store.records import ConcurrencyLease, UsageMeter
from dragoman.tool import Tool, ToolCall

SECONDS: Mapping[str, int] = {
    "calls_per_minute": 60,
    "calls_per_hour": 3600,
    "tokens_per_day": 86400,
    "cost_per_day": 86400,
}
"""How long the window of each measure is."""


def window_of(measure: str, now: float) -> int:
    return int(now // SECONDS[measure])


def end_of(measure: str, now: float) -> float:
    """When the window ends, as a time since the epoch."""
    return (window_of(measure, now) + 1) * SECONDS[measure]


def user_subject(user: str) -> str:
    return f"user:{user}"


def key_subject(key: ApiKey) -> str:
    """Of a key, or of what a client was allowed. It ends with its user, whose data it is."""
    return f"key:{key.id}:{key.user}"


def connector_subject(connector_id: str) -> str:
    return f"connector:{connector_id}"


def shown(measure: str, limit: float) -> str:
    """A limit as a person says it."""
    if measure == "cost_per_day":
        return f"${limit:g} a day"
    what, _, per = measure.partition("_per_")
    return f"{limit:,.0f} {what} {'an' if per == 'hour' else 'a'} {per}"


_PROCESS = token_hex(10)
_numbers = count(1)
_GRACE = 10.0  # seconds after its deadline in which a call ends and gives its place back
_SOON = 1.0
_metered = attrgetter(
    "calls_per_minute", "calls_per_hour", "tokens_per_day", "cost_per_day", "max_concurrency"
)
_NOTHING = _metered(NO_LIMITS)
_LOOK = "dragoman usage show tells what was used"


FindKey = Callable[[str], Awaitable[ApiKey | None]]


class CostLimitExceeded(LimitReached):
    """Waiting does not make it cheaper."""

    retryable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    """One admitted call: the places it holds, to be given back."""

    workspace: str
    leases: tuple[ConcurrencyLease, ...]
    token_limits: Mapping[str, int]


class Budgets:
    """`find_key` knows the key that a caller came with, `clock` the time since the epoch, by which windows
    begin and end.
    """

    def __init__(
        self,
        rows: UsageStore,
        directory: Directory,
        find_key: FindKey,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rows = rows
        self.blocks = UsageBlocks(rows)
        self._directory = directory
        self._find_key = find_key
        self._clock = clock

    async def enter(
        self, call: ToolCall, tool: Tool, connector: Connector, caller: Caller, deadline: float
    ) -> BudgetReservation | None:
        """Counts the call, or raises `LimitReached` with `retry_after`. None when nothing is limited."""
        if call.cost_limit is not None and tool.cost > call.cost_limit:
            raise CostLimitExceeded(
                f"{tool.name} costs ${tool.cost:g} a call, more than this call may cost",
                hint=f"the call's cost_limit is ${call.cost_limit:g}; raise it or use another tool",
            )
        person = await self._directory.of(caller)
        key = None if caller.key is None else await self._find_key(caller.key)
        limited = _limited(person, key)
        if not limited and not _is_limited(connector):
            return None
        now = self._clock()
        meters = [*_of_callers(limited, tool, caller, now), *_of_connector(connector, now)]
        leases = _places(limited, connector, caller, self._lease_end(now, deadline))
        taken = await self.blocks.take(meters, leases, datetime.fromtimestamp(now, UTC))
        if not isinstance(taken, tuple):
            raise _refusal(taken, tool, connector, person, key, now)
        tokens = {subject: limits.tokens_per_day for subject, limits in limited.items()}
        return BudgetReservation(
            caller.workspace, taken, {subject: most for subject, most in tokens.items() if most is not None}
        )

    async def leave(self, ticket: BudgetReservation, tokens: int) -> None:
        """Gives places back and adds what the call has used. Never raises for the store's sake."""
        now = self._clock()
        meters = [
            _meter(ticket.workspace, subject, "tokens_per_day", limit, tokens, now)
            for subject, limit in ticket.token_limits.items()
            if tokens
        ]
        if meters or ticket.leases:
            await self.blocks.settle(meters, ticket.leases)

    async def tidy(self) -> None:
        """Forgets windows that are long over, and places that nobody gave back."""
        now = self._clock()
        before = {measure: window_of(measure, now) - 1 for measure in SECONDS}
        await self._rows.forget(before, datetime.fromtimestamp(now, UTC))

    def _lease_end(self, now: float, deadline: float) -> datetime:
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        return datetime.fromtimestamp(now + left + _GRACE, UTC)


def set_by(person: Person, name: str) -> str:
    """Who set the limit that is in force: of several that agree the highest, as it has to change first."""
    limit = getattr(person.limits, name)
    tiers = (
        ("the workspace", person.workspace.limits),
        ("an admin", person.user.limits),
        ("the user", person.user.preferences.limits),
    )
    return next((tier for tier, limits in tiers if getattr(limits, name) == limit), "the installation")


def set_by_key(key: ApiKey) -> str:
    return f"the {'key' if key.client is None else 'client'} {key.name!r}"


def _limited(person: Person, key: ApiKey | None) -> dict[str, CallLimits]:
    """The limits of a caller by whom they count for: the user, however they come, and what they came with."""
    both: dict[str, CallLimits] = {user_subject(person.user.id): person.limits}
    if key is not None:
        both[key_subject(key)] = key.limits
    return {subject: limits for subject, limits in both.items() if _metered(limits) != _NOTHING}


def _of_callers(
    limited: Mapping[str, CallLimits], tool: Tool, caller: Caller, now: float
) -> list[UsageMeter]:
    # Tokens are known afterwards only: whether there is room at all is asked before.
    amounts: dict[str, float] = {"calls_per_minute": 1, "calls_per_hour": 1, "tokens_per_day": 0}
    if tool.cost:
        amounts["cost_per_day"] = tool.cost
    return [
        _meter(caller.workspace, subject, measure, limit, amount, now)
        for subject, limits in limited.items()
        for measure, amount in amounts.items()
        if (limit := getattr(limits, measure)) is not None
    ]


def _of_connector(connector: Connector, now: float) -> list[UsageMeter]:
    """Of everybody together: one of the app is shared by all workspaces, and counted under its own."""
    limit = connector.configuration.calls_per_minute
    if limit is None:
        return []
    subject = connector_subject(connector.id)
    return [_meter(connector.workspace, subject, "calls_per_minute", limit, 1, now)]


def _meter(workspace: str, subject: str, measure: str, limit: float, amount: float, now: float) -> UsageMeter:
    return UsageMeter(
        workspace=workspace,
        subject=subject,
        measure=measure,
        window=window_of(measure, now),
        limit=limit,
        amount=amount,
    )


def _is_limited(connector: Connector) -> bool:
    configuration = connector.configuration
    return configuration.calls_per_minute is not None or configuration.shared_concurrency is not None


def _places(
    limited: Mapping[str, CallLimits], connector: Connector, caller: Caller, expires_at: datetime
) -> tuple[ConcurrencyLease, ...]:
    """Among the calls of the user and of their key, and among those of the connector, whoever makes them."""
    wanted = (
        *((caller.workspace, subject, limits.max_concurrency) for subject, limits in limited.items()),
        (connector.workspace, connector_subject(connector.id), connector.configuration.shared_concurrency),
    )
    return tuple(
        ConcurrencyLease(
            id=f"{_PROCESS}-{next(_numbers)}",
            workspace=workspace,
            subject=subject,
            limit=limit,
            expires_at=expires_at,
        )
        for workspace, subject, limit in wanted
        if limit is not None
    )


def _refusal(
    refused: UsageMeter | ConcurrencyLease,
    tool: Tool,
    connector: Connector,
    person: Person,
    key: ApiKey | None,
    now: float,
) -> LimitReached:
    measure = "max_concurrency" if isinstance(refused, ConcurrencyLease) else refused.measure
    setter = set_by(person, measure)
    if key is not None and refused.subject == key_subject(key):
        setter = set_by_key(key)
    if isinstance(refused, ConcurrencyLease):
        at_once = f"{refused.limit} {'call' if refused.limit == 1 else 'calls'} at once"
        is_connector = refused.subject == connector_subject(connector.id)
        whose = f" of {connector.slug!r}" if is_connector else ""
        setter = "the connector for everybody together" if is_connector else setter
        return LimitReached(
            f"the limit of {at_once}{whose} is reached",
            hint=f"set by {setter}; wait until one ends; {_LOOK}",
            retry_after=_SOON,
        )
    limit = shown(refused.measure, refused.limit)
    if refused.measure == "cost_per_day" and refused.amount > refused.limit:
        return CostLimitExceeded(
            f"{tool.name} costs ${refused.amount:g} a call, and the limit is {limit}",
            hint=f"set by {setter}; {_LOOK}",
        )
    left = max(0.0, end_of(refused.measure, now) - now)
    if refused.subject == connector_subject(connector.id):
        return LimitReached(
            f"the limit of {limit} of {connector.slug!r} is reached",
            hint=f"set by the connector for everybody together; try again in {left:.0f} s",
            retry_after=left,
        )
    price = f" by this call (${refused.amount:g})" if refused.measure == "cost_per_day" else ""
    return LimitReached(
        f"the limit of {limit} {'would be exceeded' if price else 'is reached'}{price}",
        hint=f"set by {setter}; try again in {left:.0f} s; {_LOOK}",
        retry_after=left,
    )
