"""What is counted, when windows end, and what a refusal says: budgets over a real store."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pytest
from crowd import ADA, made_call, made_connector, made_tool, own_limits, put_user, soon

from dragoman import Caller
from dragoman.access import Budgets
from dragoman.access.budgets import BudgetReservation
from dragoman.errors import LimitReached, StoreUnavailable
from dragoman.identity.directory import Directory
from dragoman.people import UserLimits, Workspace
from dragoman.store import open_store
from dragoman.store.protocols import Store, UsageStore
from dragoman.store.records import ConcurrencyLease, UsageMeter
from patience import patient

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


class Desk:
    """Budgets with a clock that the test moves."""

    def __init__(self, store: Store, rows: UsageStore | None = None) -> None:
        self.now = NOON
        self.store = store
        self.directory = Directory(store.people)
        self.budgets = Budgets(
            rows or store.usage, self.directory, store.people.find_key_by_id, clock=lambda: self.now
        )
        self.connector = made_connector()

    async def enter(
        self, caller: Caller = ADA, *, cost: float = 0.0, cost_limit: float | None = None
    ) -> BudgetReservation | None:
        return await self.budgets.enter(
            made_call(cost_limit), made_tool(cost), self.connector, caller, soon()
        )

    async def used(self, measure: str) -> float:
        counted = await self.store.usage.read("acme", "user:ada")
        return sum(amount for (name, _), amount in counted.items() if name == measure)


@asynccontextmanager
async def open_desk(url: str, **limits: Any) -> AsyncGenerator[Desk]:
    await put_user(url, **limits)
    async with open_store(url) as store:
        yield Desk(store)


async def refused(desk: Desk, **asked: Any) -> LimitReached:
    with pytest.raises(LimitReached) as caught:
        await desk.enter(**asked)
    return caught.value


async def test_a_new_window_begins_with_the_minute_and_the_hour(database_url: str) -> None:
    async with open_desk(database_url, calls_per_minute=2, calls_per_hour=3) as desk:
        desk.now = NOON + 45
        await desk.enter()
        await desk.enter()
        error = await refused(desk)
        assert (error.retry_after, error.message) == (15, "the limit of 2 calls a minute is reached")
        desk.now = NOON + 60
        await desk.enter()
        error = await refused(desk)
        assert (error.retry_after, error.message) == (3540, "the limit of 3 calls an hour is reached")
        assert await desk.used("calls_per_minute") == 3, "what was refused is not counted"
        desk.now = NOON + 3600
        await desk.enter()


async def test_money_is_counted_before_the_call_and_cents_add_up(database_url: str) -> None:
    async with open_desk(database_url, cost_per_day=0.3) as desk:
        for _ in range(3):
            await desk.enter(cost=0.1)
        error = await refused(desk, cost=0.1)
        assert error.message == "the limit of $0.3 a day would be exceeded by this call ($0.1)"
        assert error.retry_after == 12 * 3600
        await desk.enter(cost=0.0)
        desk.now += 86400
        await desk.enter(cost=0.1)


async def test_what_costs_more_than_a_day_or_the_call_allows_is_not_to_be_tried_again(
    database_url: str,
) -> None:
    async with open_desk(database_url, cost_per_day=1) as desk:
        error = await refused(desk, cost=2.0)
        assert (error.code, error.retryable, error.retry_after) == ("limit_reached", False, None)
        error = await refused(desk, cost=0.5, cost_limit=0.25)
        assert (error.retryable, error.retry_after) == (False, None)
        assert "$0.5" in error.message
        assert "$0.25" in (error.hint or "")
        assert await desk.used("cost_per_day") == 0
        await desk.enter(cost=0.5, cost_limit=0.5)


async def test_tokens_are_added_afterwards_and_refuse_the_next(database_url: str) -> None:
    async with open_desk(database_url, tokens_per_day=100) as desk:
        for tokens in (90, 90):
            ticket = await desk.enter()
            assert ticket
            await desk.budgets.leave(ticket, tokens)
        assert await desk.used("tokens_per_day") == 180
        error = await refused(desk)
        assert error.message == "the limit of 100 tokens a day is reached"
        assert error.retry_after == 12 * 3600
        desk.now += 12 * 3600
        assert await desk.enter()


async def test_a_connector_of_the_app_is_counted_over_all_workspaces(database_url: str) -> None:
    async with open_desk(database_url, calls_per_hour=100) as desk:
        desk.connector = made_connector(workspace="", calls_per_minute=5)
        other = Caller(workspace="other", user="ada")
        for _ in range(2):
            await desk.enter(ADA)
            await desk.enter(other)
        await desk.enter(other)
        for caller in (ADA, other):
            error = await refused(desk, caller=caller)
            assert error.message == "the limit of 5 calls a minute of 'shop' is reached"
            assert "the connector" in (error.hint or "")
            assert error.retry_after == 60
        assert await desk.used("calls_per_hour") == 2, "refused by the connector, so not counted for the user"
        desk.now += 60
        await desk.enter(ADA)


async def test_a_refusal_says_who_set_the_limit(database_url: str) -> None:
    async with open_desk(database_url, calls_per_hour=5) as desk:
        user = await desk.store.people.find_user("acme", "ada")
        assert user
        await desk.store.people.put_user(replace(user, preferences=own_limits(calls_per_hour=0)))
        assert "set by the user" in ((await refused(desk)).hint or "")
        strict = Workspace(id="acme", name="acme", limits=UserLimits(calls_per_hour=0), revision=1)
        await desk.store.people.put_workspace(strict)
        desk.directory.forget("acme")
        assert "set by the workspace" in ((await refused(desk)).hint or "")


async def test_a_caller_cancelled_while_asking_holds_no_place(database_url: str) -> None:
    async with open_desk(database_url, max_concurrency=2) as desk:
        for steps in range(0, 60, 3):
            asking = asyncio.ensure_future(desk.enter())
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            try:
                ticket = await asking
            except asyncio.CancelledError:
                continue
            assert ticket
            await desk.budgets.leave(ticket, 0)
        held = await desk.store.usage.count_places("acme", "user:ada", datetime.fromtimestamp(NOON, UTC))
        assert held == 0


class Failing:
    """Real rows of a store that does not answer now and then."""

    def __init__(self, rows: UsageStore) -> None:
        self._rows = rows
        self.is_down = False

    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> Any:
        self._check()
        return await self._rows.take(meters, leases, now)

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        self._check()
        await self._rows.settle(meters, leases)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("it does not answer")


async def test_a_store_that_is_down_refuses_the_limited_and_loses_nothing_of_calls_under_way(
    sqlite_url: str,
) -> None:
    async with open_desk(sqlite_url, tokens_per_day=100, max_concurrency=1) as desk:
        rows: Any = Failing(desk.store.usage)
        desk = Desk(desk.store, rows)
        ticket = await desk.enter()
        assert ticket
        rows.is_down = True
        await desk.budgets.leave(ticket, 60)
        with pytest.raises(StoreUnavailable):
            await desk.enter()
        rows.is_down = False
        assert await desk.used("tokens_per_day") == 0
        desk.now += 3600
        ticket = await desk.enter()
        assert ticket
        await desk.budgets.leave(ticket, 60)
        assert await desk.used("tokens_per_day") == 120, "the next call that ends adds what was owed"
        await refused(desk)


async def test_who_has_no_limit_is_not_counted_and_asks_no_store(sqlite_url: str) -> None:
    async with open_desk(sqlite_url, max_connectors_per_thread=3) as desk:
        rows: Any = Failing(desk.store.usage)
        rows.is_down = True
        desk = Desk(desk.store, rows)
        call, tool = made_call(), made_tool()
        fastest = 1.0
        for _ in range(200):
            started = perf_counter()
            assert await desk.budgets.enter(call, tool, desk.connector, ADA, 0.0) is None
            fastest = min(fastest, perf_counter() - started)
        assert fastest < patient(20e-6), f"{fastest * 1e6:.1f} µs"


async def test_old_windows_and_abandoned_places_are_forgotten(database_url: str) -> None:
    async with open_desk(database_url, calls_per_hour=5, max_concurrency=2) as desk:
        await desk.enter()
        await desk.budgets.tidy()
        assert await desk.used("calls_per_hour") == 1
        desk.now += 3 * 3600
        await desk.budgets.tidy()
        assert await desk.used("calls_per_hour") == 0
        long_ago = datetime.fromtimestamp(0, UTC)
        assert await desk.store.usage.count_places("acme", "user:ada", long_ago) == 0


async def test_calls_of_a_connector_at_once_are_counted_over_all_processes(postgres_url: str) -> None:
    async with open_desk(postgres_url) as one, open_store(postgres_url) as store:
        other = Desk(store)
        one.connector = other.connector = made_connector(workspace="", shared_concurrency=3)
        tickets = [await one.enter(), await other.enter(), await other.enter(Caller("other", "eve"))]
        for desk in (one, other):
            error = await refused(desk)
            assert error.message == "the limit of 3 calls at once of 'shop' is reached"
            assert "the connector for everybody" in (error.hint or "")
            assert error.retry_after
        assert tickets[1] is not None
        await other.budgets.leave(tickets[1], 0)
        assert await one.enter() is not None
