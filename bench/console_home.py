"""A full installation for benches of the console: connectors with tools, threads, runs, an audit trail."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dragoman.agent import ASSISTANT
from dragoman.connector import Configuration, Connector
from dragoman.names import public_name
from dragoman.people import Thread
from dragoman.run import Message, Run, RunUsage
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE
from dragoman.store import Store, open_store
from dragoman.store.records import AuditEntry, NewRun
from dragoman.tool import Annotations, Tool, ToolDefinition

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
                usage=RunUsage(
                    requests=2, calls=3, input_tokens=1200, output_tokens=80, cost=number % 977 / 1000
                ),
                created_at=moment,
                started_at=moment,
                finished_at=moment + timedelta(seconds=number % 613),
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
