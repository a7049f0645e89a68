"""Pages of the console over a full installation: what each costs the service, and how heavy it is.

1,000 connectors with 50 tools each, 100,000 runs, 10,000 threads, 50,000 entries of the audit trail; SQLite.
"""

import asyncio
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import console
import lab
from dragoman.agent import ASSISTANT
from dragoman.connector import Configuration, Connector
from dragoman.names import public_name
from dragoman.people import Thread
from dragoman.run import Message, Run, RunUsage
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE
from dragoman.store import Store, open_store
from dragoman.store.records import AuditEntry, NewRun
from dragoman.tool import Annotations, Tool, ToolDefinition

SERVER, WEIGHT = 300.0, 200.0  # milliseconds, KB
_VERBS = ("search", "list", "create", "update", "delete", "read", "send", "merge", "close", "export")
_NOUNS = ("issues", "invoices", "orders", "messages", "files")
_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what to look for, in the words of the person who asks"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "state": {"enum": ["open", "closed", "all"]},
    },
    "required": ["query"],
}
PAGES = (
    "/", "/chat", "/chat?q=42", "/connectors", "/connectors?state=failed", "/connectors?q=depot-77",
    "/connectors?sort=tools", "/connectors?view=cards", "/connectors/depot-7",
    "/connectors/depot-7?tab=tools", "/tools", "/tools?connector=depot-7", "/tools?state=changes",
    "/tools?q=send+invoices", "/agents", "/agents/new", "/runs", "/runs?status=failed", "/runs?q=report+9",
    "/approvals", "/audit", "/audit?action=call", "/charts", "/credentials", "/settings", "/keys",
    "/palette?q=", "/palette?q=invoice", "/palette?q=depot",
)  # fmt: skip


async def fill(home: Path, connectors: int, tools: int, runs: int, threads: int) -> None:
    async with open_store(f"sqlite:///{home}/dragoman.db") as store:
        for number in range(connectors):
            await _add_connector(store, number, tools)
        await _add_threads(store, threads)
        await _add_runs(store, runs, threads)
        now = datetime.now(UTC)
        for start in range(0, runs // 2, 1000):
            await store.audit.append([_entry(start + number, now) for number in range(1000)])


async def _add_connector(store: Store, number: int, tools: int) -> None:
    slug = f"depot-{number}"
    connector = Connector(
        id=f"con_{number:016x}",
        workspace=LOCAL_WORKSPACE,
        owner=LOCAL_USER,
        slug=slug,
        description=f"Goods and papers of depot {number}.",
        configuration=Configuration(url="http://127.0.0.1:9/mcp"),
        enabled=number % 10 != 9,
    )
    await store.connectors.add(connector, [])
    made: list[Tool] = []
    for place in range(tools):
        name = f"{_VERBS[place % 10]}_{_NOUNS[place // 10 % 5]}"
        definition = ToolDefinition(
            original_name=name,
            description=f"Does what its name says with what depot {number} has, newest first.",
            input_schema=_SCHEMA,
            annotations=Annotations(read_only=place % 10 in (0, 1, 5)),
        )
        tool = Tool(
            name=public_name(slug, name),
            workspace=LOCAL_WORKSPACE,
            connector_id=connector.id,
            slug=slug,
            definition=definition,
            fingerprint=definition.fingerprint,
        )
        made.append(tool)
    await store.connectors.save_tools(made, [], [])


async def _add_threads(store: Store, count: int) -> None:
    now = datetime.now(UTC)
    for number in range(count):
        moment = now - timedelta(minutes=7 * number)
        thread = Thread(
            id=f"thr_{number:016x}",
            workspace=LOCAL_WORKSPACE,
            user=LOCAL_USER,
            title=f"Which orders of week {number} are late?",
            created_at=moment,
            updated_at=moment,
        )
        await store.threads.put(thread)


async def _add_runs(store: Store, count: int, threads: int) -> None:
    now = datetime.now(UTC)
    for start in range(0, count, 1000):
        new: list[NewRun] = []
        for number in range(start, min(start + 1000, count)):
            id, moment = f"run_{number:016x}", now - timedelta(seconds=40 * number)
            run = Run(
                id=id,
                workspace=LOCAL_WORKSPACE,
                user=LOCAL_USER,
                thread=f"thr_{number % threads:016x}",
                root=id,
                agent=ASSISTANT,
                request=f"Write report {number} of the late orders",
                status="failed" if number % 50 == 7 else "done",
                usage=RunUsage(requests=2, calls=3, input_tokens=1200, output_tokens=80, cost=0.01),
                created_at=moment,
                started_at=moment,
                finished_at=moment + timedelta(seconds=9),
            )
            said = Message(
                workspace=run.workspace, user=run.user, thread=run.thread, author="person", text=run.request
            )
            new.append(NewRun(run=run, message=replace(said, run=id)))
        await store.runs.accept(new)


def _entry(number: int, now: datetime) -> AuditEntry:
    return AuditEntry(
        time=now - timedelta(seconds=50_000 - number),
        workspace=LOCAL_WORKSPACE,
        user=LOCAL_USER,
        agent=None,
        way="direct",
        action="call" if number % 5 else "connector.updated",
        subject=f"mcp_depot-{number % 1000}_search_issues",
        outcome="ok",
    )


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
