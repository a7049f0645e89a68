"""What limits cost, side by side: the road without any, with calls per hour, and with every limit (SQLite).

Also the two steps by themselves that every call takes: asking for limits where there are none, and noting
the call for the audit trail.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import lab
import peers
from dragoman import Caller
from dragoman.access import Budgets
from dragoman.calls import Auditor
from dragoman.calls.records import FinishedCall
from dragoman.connector import Configuration, Connector
from dragoman.identity.directory import Directory
from dragoman.people import User, UserLimits, Workspace
from dragoman.store import open_store
from dragoman.tool import Tool, ToolCall, ToolDefinition

MANY = 10**9
FREE, HOURLY, ALL = "no limit", "calls per hour", "every limit"
LIMITS = {
    FREE: UserLimits(),
    HOURLY: UserLimits(calls_per_hour=MANY),
    ALL: UserLimits(
        calls_per_minute=MANY,
        calls_per_hour=MANY,
        tokens_per_day=MANY,
        cost_per_day=float(MANY),
        max_concurrency=1000,
    ),
}
CALLERS = (1, 10)
AIMS = {HOURLY: 1.5, ALL: 2.0}
STEP_AIM = 5.0  # microseconds


async def echo(text: str) -> str:
    return text


async def put_users(hub: peers.Hub) -> None:
    async with open_store(hub.settings.store_url) as store:
        await store.people.put_workspace(Workspace(id="bench", name="bench"))
        for name, limits in LIMITS.items():
            await store.people.put_user(User(id=name, workspace="bench", name=name, limits=limits))


def contender(hub: peers.Hub, name: str) -> lab.Contender:
    caller = Caller(workspace="bench", user=name)

    async def call() -> None:
        output = await hub.acting_for(caller).call("echo", {"text": peers.TEXT})
        assert output.ok, output.error

    async def settle() -> None:
        await hub.calls(1)  # writes the records that the calls put off
        await hub.audit.list(limit=1)

    return lab.Contender(name=name, call=call, settle=settle)


async def fastest(step: Callable[[], Awaitable[Any]], rounds: int = 20, times: int = 500) -> float:
    """Microseconds of one, the best round: what else runs on the machine only adds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(times):
            await step()
        best = min(best, (time.perf_counter() - started) / times)
    return best * 1e6


async def steps(hub: peers.Hub) -> dict[str, float]:
    caller = Caller(workspace="bench", user=FREE)
    configuration = Configuration(kind="native")
    connector = Connector(id="b", workspace="", owner="", slug="b", configuration=configuration)
    definition = ToolDefinition(original_name="echo")
    tool = Tool(name="echo", workspace="", connector_id="b", slug="b", definition=definition)
    call, arguments = ToolCall(tool="echo"), {"text": peers.TEXT, "limit": 5}
    finished = FinishedCall("call_0", caller, "echo", connector, True, True, None, None, 1.0, 1, time.time())
    async with open_store(hub.settings.store_url) as store:
        budgets = Budgets(store.usage, Directory(store.people), store.people.find_key_by_id)
        auditor = Auditor(store.audit)

        async def note() -> None:
            auditor.called(finished, arguments)

        async def nothing() -> None:
            pass

        empty = await fastest(nothing)
        asking = await fastest(lambda: budgets.enter(call, tool, connector, caller, 0.0))
        return {
            "asking where there is no limit": asking - empty,
            "noting a call for the trail": await fastest(note) - empty,
        }


async def measure(calls: int, rounds: int) -> lab.Report:
    report = lab.Report("budgets")
    async with peers.open_hub() as hub:
        hub.add_tool(echo)
        await put_users(hub)
        contenders = [contender(hub, name) for name in LIMITS]
        rows: list[list[object]] = []
        for callers in CALLERS:
            found = await lab.compare(contenders, callers=callers, calls=calls, rounds=rounds)
            for name, one in found.items():
                ratio = one.p50 / found[FREE].p50
                if name in AIMS:
                    report.verdict(
                        f"{callers} × {name}: at most {AIMS[name]:g} × no limit (p50)",
                        f"{ratio:.2f} ×",
                        met=ratio <= AIMS[name],
                    )
                rows.append(
                    [f"{callers:>2} × {name}", one.p50, one.p95, ratio, one.cpu, one.calls_per_second]
                )
        columns = ["callers", "p50 ms", "p95 ms", "p50 ÷ no limit", "CPU ms", "calls/s"]
        report.table("One call of a native tool", columns, rows)
        for name, microseconds in (await steps(hub)).items():
            report.verdict(
                f"{name}: at most {STEP_AIM:g} µs", f"{microseconds:.1f} µs", met=microseconds <= STEP_AIM
            )
    report.notes.append(
        "Limits are taken from the store in blocks and spent in memory; near a limit a call takes"
    )
    report.notes[-1] += (
        " a transaction before it is made, and one after it if it holds a place or counts tokens."
    )
    return report


def main() -> None:
    given = lab.options(
        __doc__ or "", calls=(400, "calls of each contender in a round"), rounds=(5, "rounds")
    )
    share = 10 if given.quick else 1
    report = asyncio.run(measure(max(20, given.calls // share), 1 if given.quick else given.rounds))
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
