"""Pages of the console over a full installation: what each costs the service, and how heavy it is.

1,000 connectors with 50 tools each, 100,000 runs, 10,000 threads, 50,000 entries of the audit trail; SQLite.
"""

import asyncio
import tempfile
import time
from pathlib import Path

import console
import lab
from console_home import fill

SERVER, WEIGHT = 300.0, 200.0  # milliseconds, KB
PAGES = (
    "/", "/chat", "/chat?q=42", "/connectors", "/connectors?state=failed", "/connectors?q=depot-77",
    "/connectors?sort=tools", "/connectors?view=cards", "/connectors/depot-7",
    "/connectors/depot-7?tab=tools", "/tools", "/tools?connector=depot-7", "/tools?state=changes",
    "/tools?q=send+invoices", "/agents", "/agents/new", "/runs", "/runs?status=failed", "/runs?q=report+9",
    "/runs?sort=longest", "/runs?sort=costliest", "/runs?sort=longest&status=waiting", "/chat?sort=title",
    "/audit?sort=oldest",
    "/approvals", "/audit", "/audit?action=call", "/charts", "/credentials", "/settings", "/keys",
    "/palette?q=", "/palette?q=invoice", "/palette?q=depot",
)  # fmt: skip


async def measure(report: lab.Report, rounds: int, *, connectors: int, runs: int, threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        started = time.perf_counter()
        await fill(home, connectors, 50, runs, threads)
        report.notes.append(f"Filled in {time.perf_counter() - started:.0f} s")
        async with console.open_service(home) as service:
            await service.sign_in()
            rows = [await _page(service, path, rounds) for path in PAGES]
    title = f"{connectors:,} connectors, {connectors * 50:,} tools, {runs:,} runs, {threads:,} threads"
    report.table(title, ("page", "p50 ms", "most ms", "KB"), rows)
    slow = [f"{row[0]} {row[1]:.0f} ms" for row in rows if row[1] > SERVER]
    heavy = [f"{row[0]} {row[3]:.0f} KB" for row in rows if row[3] > WEIGHT]
    report.verdict(f"every page within {SERVER:g} ms", ", ".join(slow) or "all", met=not slow)
    report.verdict(f"every page within {WEIGHT:g} KB", ", ".join(heavy) or "all", met=not heavy)


async def _page(service: console.Service, path: str, rounds: int) -> tuple[str, float, float, float]:
    took: list[float] = []
    size = status = 0
    headers = {"HX-Request": "true"} if path.startswith("/palette") else {}
    for _ in range(rounds + 1):
        started = time.perf_counter()
        async with service.http.get(service.url + path, headers=headers) as response:
            body = await response.read()
            status = response.status
        took.append((time.perf_counter() - started) * 1000)
        size = len(body)
    name = path if status == 200 else f"{path} ({status})"
    return name, lab.percentile(took[1:], 50), max(took[1:]), size / 1024


def main() -> None:
    given = lab.options(
        __doc__ or "",
        rounds=(5, "requests of each page"),
        connectors=(1000, "with 50 tools each"),
        runs=(100_000, "ended ones"),
        threads=(10_000, "of one user"),
    )
    rounds, connectors, runs, threads = given.rounds, given.connectors, given.runs, given.threads
    if given.quick:
        rounds, connectors, runs, threads = 3, 200, 10_000, 1000
    report = lab.Report("console_scale")
    asyncio.run(measure(report, rounds, connectors=connectors, runs=runs, threads=threads))
    report.notes.append(f"Load of the machine: {lab.load()}")
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
