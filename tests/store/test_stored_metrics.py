"""Numbers over time: added by several, rolled up, read by time and by what they are of, and pruned."""

import asyncio
from collections.abc import Sequence

import pytest

from dragoman.store import Store, open_store
from dragoman.store.records import BucketQuery, BucketSum
from dragoman.telemetry.time_buckets import (
    COUNTS,
    HALF_DAY,
    HALF_HOUR,
    MINUTE,
    SPANS,
    BucketKey,
    TimeBuckets,
    quantile_ms,
    rows_of,
)
from store.memory_store import memory_store

pytestmark = pytest.mark.anyio
NOON = 1_700_006_400 // HALF_DAY * HALF_DAY


def called(
    count: int, at: int = NOON, user: str = "ada", tool: str = "mcp_crm_find", ok: bool = True
) -> TimeBuckets:
    buckets = TimeBuckets()
    for number in range(count):
        connector = tool.split("_")[1]
        buckets.call(BucketKey("w", user, at, connector, tool, "", "direct"), ok, 10.0 + number, 0.0)
    return buckets


async def written(store: Store, buckets: TimeBuckets) -> None:
    await store.metrics.add(rows_of(buckets.take()))


def asked(span: int = MINUTE, **facts: object) -> BucketQuery:
    defaults: dict[str, object] = {"workspace": "w", "user": None, "start": NOON, "end": NOON + HALF_DAY}
    return BucketQuery(span=span, **{**defaults, **facts})  # type: ignore[arg-type]


def calls(sums: Sequence[BucketSum]) -> dict[tuple[int, str], float]:
    return {(one.start - NOON if one.start else 0, one.of): one.counts[0] for one in sums}


@pytest.fixture(params=["sql", "memory"])
def a_store(request: pytest.FixtureRequest, store: Store) -> Store:
    return store if request.param == "sql" else memory_store()


async def test_what_is_counted_is_read_at_every_length_and_level(a_store: Store) -> None:
    store = a_store
    await written(store, called(3))
    await written(store, called(2, NOON + MINUTE, tool="mcp_mail_send"))
    await written(store, called(1, NOON + HALF_HOUR, user="bob", ok=False))
    for span in SPANS:
        assert calls(await store.metrics.read(asked(span))) == {(0, ""): 6}
        by_connector = await store.metrics.read(asked(span, split="connector"))
        assert calls(by_connector) == {(0, "crm"): 4, (0, "mail"): 2}
        by_tool = await store.metrics.read(asked(span, split="tool", only={"connector": {"mail"}}))
        assert calls(by_tool) == {(0, "mcp_mail_send"): 2}
        assert calls(await store.metrics.read(asked(span, split="user"))) == {(0, "ada"): 5, (0, "bob"): 1}
        assert calls(await store.metrics.read(asked(span, user="bob"))) == {(0, ""): 1}
        assert sorted(await store.metrics.names(asked(span, split="connector"), 3)) == ["crm", "mail"]
        assert len(await store.metrics.names(asked(span, split="connector", shared={"mail"}), 1)) == 1
    minutes = await store.metrics.read(asked(step=MINUTE))
    assert calls(minutes) == {(0, ""): 3, (MINUTE, ""): 2, (HALF_HOUR, ""): 1}
    assert calls(await store.metrics.read(asked(step=HALF_HOUR))) == {(0, ""): 5, (HALF_HOUR, ""): 1}
    errors = await store.metrics.read(asked(only={"user": {"bob"}}))
    assert [one.counts[COUNTS.index("errors")] for one in errors] == [1]
    assert quantile_ms(errors[0].counts[len(COUNTS) :], 0.5) == pytest.approx(10, rel=0.25)
    assert not await store.metrics.read(asked(workspace="other"))


async def test_old_buckets_are_pruned_by_their_length(a_store: Store) -> None:
    store = a_store
    await written(store, called(1))
    await written(store, called(1, NOON + HALF_HOUR))
    await store.metrics.forget({MINUTE: NOON + MINUTE})
    assert calls(await store.metrics.read(asked())) == {(0, ""): 1}
    assert calls(await store.metrics.read(asked(HALF_HOUR))) == {(0, ""): 2}


async def test_what_nobody_in_particular_did_is_read_beside_ones_own(a_store: Store) -> None:
    store, buckets = a_store, called(2)
    buckets.add(BucketKey("w", "", NOON, "crm"), reconnects=1)
    buckets.add(BucketKey("", "", NOON, "shared"), reconnects=4)
    buckets.add(BucketKey("w", "eve", NOON, "hers"), reconnects=8)
    await written(store, buckets)
    place = COUNTS.index("reconnects")
    own = await store.metrics.read(asked(user="ada"))
    assert [one.counts[place] for one in own] == [0]
    beside = await store.metrics.read(asked(user="ada", shared={"crm", "shared"}))
    assert [(one.counts[0], one.counts[place]) for one in beside] == [(2, 5)]
    # Who sees the whole workspace has its own rows of nobody already: they count once.
    everything = asked(shared={"crm", "shared"}, measures=("reconnects", "calls"))
    assert [one.counts for one in await store.metrics.read(everything)] == [(13, 2)]


async def test_two_processes_add_to_the_same_buckets(database_url: str) -> None:
    async with open_store(database_url) as one, open_store(database_url) as other:
        await asyncio.gather(*(written(store, called(5)) for store in (one, other) * 10))
        assert calls(await one.metrics.read(asked())) == {(0, ""): 100}


def test_quantiles_of_added_histograms_are_near() -> None:
    fast, slow = called(90), TimeBuckets()
    for _ in range(10):
        slow.call(BucketKey("w", "ada", NOON, "crm", "mcp_crm_find", "", "direct"), True, 4000.0, 0.0)
    fast.put_back(slow.take())
    (row,) = [row for row in rows_of(fast.take()) if row.span == MINUTE and row.level == 0]
    durations = row.counts[len(COUNTS) :]
    assert quantile_ms(durations, 0.5) == pytest.approx(60, rel=0.25)
    assert quantile_ms(durations, 0.95) == pytest.approx(4000, rel=0.25)
    assert quantile_ms([0] * len(durations), 0.5) is None
