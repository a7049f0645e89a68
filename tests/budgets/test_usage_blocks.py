"""Limits spent in memory decide as the store alone would, whatever comes in whatever order."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crowd import ADA, away_from_the_end_of_the_hour, put_user

from dragoman import Hub, Settings
from dragoman.access.usage_blocks import UsageBlocks
from dragoman.store import open_store
from dragoman.store.protocols import UsageStore
from dragoman.store.records import ConcurrencyLease, UsageMeter
from store.memory_store import memory_store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class CountedRows:
    """Real rows that count how often they are asked."""

    def __init__(self, rows: UsageStore) -> None:
        self._rows = rows
        self.asked = 0

    async def take(self, *asked: Any) -> Any:
        self.asked += 1
        return await self._rows.take(*asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


@dataclass
class Ask:
    meters: list[UsageMeter]
    leases: list[ConcurrencyLease]
    tokens: int


@dataclass
class Story:
    """What happens, by chance: calls that are made and end, time, limits that an admin changes."""

    chance: random.Random
    seconds: float = 0.0
    hours: int = 0
    limits: dict[str, float] = field(
        default_factory=lambda: {
            "calls": 6000,
            "dollars": 100.0,
            "tokens": 60_000,
            "shop": 12_000,
            "places": 40,
        }
    )
    asked: int = 0

    @property
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def pass_time(self) -> None:
        self.seconds += self.chance.choice([0.001] * 100 + [0.3, 1.5])
        if self.chance.random() < 0.002:
            self.hours += 1
        if self.chance.random() < 0.005:
            name = self.chance.choice([*self.limits])
            self.limits[name] = type(self.limits[name])(self.limits[name] * self.chance.choice([0.5, 2]))

    def ask(self) -> Ask:
        self.asked += 1
        chance, limits = self.chance, self.limits
        meters = [
            self.meter("user:ada", "calls", chance.choice([1, 1, 20])),
            self.meter("user:ada", "tokens", 0),
        ]
        if chance.random() < 0.6:
            meters.append(self.meter("user:ada", "dollars", chance.choice([0.01, 0.1, 0.5])))
        if chance.random() < 0.8:
            meters.append(self.meter("connector:shop", "shop", 20))
        leases = [
            ConcurrencyLease(
                id=f"{self.asked}",
                workspace="acme",
                subject="user:ada",
                limit=int(limits["places"]),
                expires_at=self.now + timedelta(seconds=chance.choice([3600, 3700])),
            )
        ]
        return Ask(meters, leases if chance.random() < 0.7 else [], chance.choice([0, 30, 200]))

    def meter(self, subject: str, measure: str, amount: float) -> UsageMeter:
        return UsageMeter(
            workspace="acme",
            subject=subject,
            measure=measure,
            window=self.hours,
            limit=self.limits[measure],
            amount=amount,
        )

    def end_some(self, running: list[Any]) -> list[Any]:
        self.chance.shuffle(running)
        often = 0 if self.chance.random() < 0.5 else len(running) // 2
        return [running.pop() for _ in range(self.chance.randint(0, often))]


def named(refused: UsageMeter | ConcurrencyLease) -> tuple[object, ...]:
    what = refused.measure if isinstance(refused, UsageMeter) else "places"
    amount = refused.amount if isinstance(refused, UsageMeter) else 1
    return refused.subject, what, refused.limit, amount


async def counted(rows: UsageStore) -> dict[tuple[str, str, int], float]:
    amounts: dict[tuple[str, str, int], float] = {}
    for subject in ("user:ada", "connector:shop"):
        read = await rows.read("acme", subject)
        amounts |= {(subject, *key): round(amount, 6) for key, amount in read.items() if round(amount, 6)}
    return amounts


async def test_one_process_decides_exactly_as_the_store_alone() -> None:
    answers, asked = Counter[str](), 0
    for seed in range(10):
        told, in_store = await a_story(Story(random.Random(seed)))
        answers += told
        asked += in_store
    assert set(answers) == {"admitted", "calls", "dollars", "tokens", "shop", "places"}, answers
    assert asked < 0.9 * answers.total(), "little was spent in memory"


async def a_story(story: Story) -> tuple[Counter[str], int]:
    """How often each answer was given, and how often the store was asked for them."""
    one, other = memory_store(), memory_store()
    rows: Any = CountedRows(one.usage)
    blocks = UsageBlocks(rows, lambda: story.seconds)
    running: list[tuple[Ask, Sequence[ConcurrencyLease]]] = []
    answers = Counter[str]()
    for _ in range(1000):
        story.pass_time()
        ask = story.ask()
        taken = await blocks.take(ask.meters, ask.leases, story.now)
        expected = await other.usage.take(ask.meters, ask.leases, story.now)
        if isinstance(expected, UsageMeter | ConcurrencyLease):
            assert not isinstance(taken, tuple), f"admitted, though the store refuses {named(expected)}"
            assert named(taken) == named(expected)
            answers[str(named(expected)[1])] += 1
        else:
            assert isinstance(taken, tuple), f"refused by {named(taken)}, though the store admits it"
            running.append((ask, taken))
            answers["admitted"] += 1
        for ended, held in story.end_some(running):
            settled = [story.meter("user:ada", "tokens", ended.tokens)] if ended.tokens else []
            await blocks.settle(settled, held)
            await other.usage.settle(settled, ended.leases)
        if story.chance.random() < 0.02:
            await blocks.give_back(story.seconds - 1)
    for ended, held in running:
        await blocks.settle([], held)
        await other.usage.settle([], ended.leases)
    await blocks.give_back()
    assert {key: one for key, one in (await counted(one.usage)).items() if key[2] == story.hours} == {
        key: one for key, one in (await counted(other.usage)).items() if key[2] == story.hours
    }
    assert await one.usage.count_places("acme", "user:ada", story.now) == 0
    return answers, rows.asked


async def test_two_processes_never_pass_a_limit_and_give_back_what_they_did_not_use(
    database_url: str,
) -> None:
    story = Story(random.Random(7))
    story.limits |= {"shop": 6000, "places": 24}
    async with open_store(database_url) as store:
        both = [UsageBlocks(store.usage, lambda: story.seconds) for _ in range(2)]
        refused, used = 0, defaultdict[tuple[str, str, int], float](float)
        running: list[tuple[UsageBlocks, Sequence[ConcurrencyLease]]] = []
        for _ in range(700):
            story.seconds += 0.001
            blocks = story.chance.choice(both)
            ask = story.ask()
            ask.meters = [one for one in ask.meters if one.measure != "tokens"]
            taken = await blocks.take(ask.meters, ask.leases, story.now)
            if isinstance(taken, tuple):
                for one in ask.meters:
                    used[one.subject, one.measure, one.window] += one.amount
                    assert used[one.subject, one.measure, one.window] <= one.limit + 1e-6
                running += [(blocks, taken)] if taken else []
                assert len(running) <= story.limits["places"]
            else:
                refused += 1
            for owner, held in story.end_some(running):
                await owner.settle([], held)
        for owner, held in running:
            await owner.settle([], held)
        assert refused > 20, "so near the limits that both had to agree"
        for blocks in both:
            await blocks.give_back()
        assert await counted(store.usage) == {key: round(amount, 6) for key, amount in used.items()}
        assert await store.usage.count_places("acme", "user:ada", story.now) == 0


async def test_a_process_that_is_killed_leaves_its_block_counted(sqlite_url: str) -> None:
    story = Story(random.Random(1))
    async with open_store(sqlite_url) as store:
        killed, alive = (UsageBlocks(store.usage, lambda: story.seconds) for _ in range(2))
        meter = story.meter("user:ada", "calls", 1)
        for _ in range(100):
            assert await killed.take([meter], [], story.now) == ()
        ahead = killed.unspent("acme", "user:ada")["calls", 0]
        assert 0 < ahead <= (6000 - 100) / 64
        admitted = 100
        while isinstance(await alive.take([meter], [], story.now), tuple):
            admitted += 1
        assert admitted == 6000 - ahead


async def test_a_busy_caller_seldom_asks_the_store_and_is_shown_what_was_used(
    tmp_path: Path, sqlite_url: str
) -> None:
    async def work() -> str:
        return "done"

    await away_from_the_end_of_the_hour()
    await put_user(sqlite_url, calls_per_hour=10**6, tokens_per_day=10**8, max_concurrency=100)
    async with Hub(Settings(home=tmp_path, database_url=sqlite_url)) as hub:
        hub.add_tool(work)
        bound = hub.acting_for(ADA)
        for _ in range(300):
            assert (await bound.call("work")).ok
        shown = {one.name: one.used for one in (await bound.usage.show()).uses}
        assert shown["calls_per_hour"] == 300
        assert shown["max_concurrency"] == 0
    async with open_store(sqlite_url) as store:
        counts = await store.usage.read("acme", "user:ada")
        [calls] = [amount for (name, _), amount in counts.items() if name == "calls_per_hour"]
        [tokens] = [amount for (name, _), amount in counts.items() if name == "tokens_per_day"]
        assert (calls, tokens) == (300, shown["tokens_per_day"])
        assert await store.usage.count_places("acme", "user:ada", datetime.now(UTC)) == 0


async def test_a_lowered_limit_counts_at_once_and_a_small_one_is_nobodys_alone(sqlite_url: str) -> None:
    story = Story(random.Random(1))
    async with open_store(sqlite_url) as store:
        one, other = (UsageBlocks(store.usage, lambda: story.seconds) for _ in range(2))
        for _ in range(100):
            await one.take([story.meter("user:ada", "calls", 1)], [], story.now)
        assert one.unspent("acme", "user:ada")["calls", 0] > 0
        story.limits["calls"] = 100
        lowered = story.meter("user:ada", "calls", 1)
        assert await one.take([lowered], [], story.now) == lowered
        assert await counted(store.usage) == {("user:ada", "calls", 0): 100}
        until = story.now + timedelta(seconds=60)
        for blocks in (one, other, one):
            place = ConcurrencyLease(
                id=f"{id(blocks)}", workspace="acme", subject="user:ada", limit=1, expires_at=until
            )
            held = await blocks.take([], [place], story.now)
            assert isinstance(held, tuple), "the place of a call that has ended is anybody's"
            await blocks.settle([], held)
