"""Ten thousand calls, read and write, over servers that other people wrote and published. Each is checked.

npx and uvx fetch the servers at the first run and keep them in `.cache`.
"""

import asyncio
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lab
import peers
from dragoman import ToolOutput

CACHE = Path(__file__).parents[1] / ".cache"
AIM = 1.0
ZONES = ("Europe/Rome", "Asia/Tokyo", "America/New_York", "UTC")

Holds = Callable[[ToolOutput], bool]
Step = tuple[str, dict[str, Any], Holds]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One server: how it is started, how many of the calls it gets, and what call number n is."""

    slug: str
    command: tuple[str, ...]
    share: float
    step: Callable[[int], Step]
    callers: int = 4
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def says(text: str) -> Holds:
    return lambda output: text in _plain(output)


def _plain(output: ToolOutput) -> str:
    return output.result if isinstance(output.result, str) else json.dumps(output.result, ensure_ascii=False)


def everything(number: int) -> Step:
    if number % 2:
        return "echo", {"message": f"number {number}"}, says(f"Echo: number {number}")
    return "get-sum", {"a": number, "b": 1}, says(str(number + 1))


def filesystem(root: Path) -> Callable[[int], Step]:
    def step(number: int) -> Step:
        # A caller's calls come in threes: write, read back, look. Others may be between them.
        file = root / f"note-{number // 3}.txt"
        kind = number % 3
        if kind == 0:
            return "write_file", {"path": str(file), "content": f"caffè {number // 3}"}, says("note")
        if kind == 1:
            return "read_text_file", {"path": str(file)}, says(f"caffè {number // 3}")
        return "get_file_info", {"path": str(file)}, says("size")

    return step


def memory(number: int) -> Step:
    name = f"bird {number // 3}"
    if number % 3 == 0:
        entity = {"name": name, "entityType": "bird", "observations": ["sings"]}
        return "create_entities", {"entities": [entity]}, says(name)
    if number % 3 == 1:
        return "open_nodes", {"names": [name]}, says(name)
    return "delete_entities", {"entityNames": [name]}, says("deleted")


def clock(number: int) -> Step:
    zone = ZONES[number % len(ZONES)]
    if number % 2:
        return "get_current_time", {"timezone": zone}, says(zone)
    given = {"source_timezone": "UTC", "time": "09:00", "target_timezone": zone}
    return "convert_time", given, says("T09:00:00")


def git(repository: Path) -> Callable[[int], Step]:
    path = str(repository)

    def step(number: int) -> Step:
        kind = number % 4
        if kind == 0:
            (repository / "note.txt").write_text(f"{number}\n")
            return "git_add", {"repo_path": path, "files": ["note.txt"]}, says("staged")
        if kind == 1:
            return "git_status", {"repo_path": path}, says("note.txt")
        if kind == 2:
            return "git_commit", {"repo_path": path, "message": f"note {number}"}, says("committed")
        return "git_log", {"repo_path": path, "max_count": 2}, says(f"note {number - 1}")

    return step


def sqlite(number: int) -> Step:
    row = number // 3
    if number % 3 == 0:
        return "write_query", {"query": f"INSERT INTO birds VALUES ({row}, 'swift {row}')"}, says("1")
    if number % 3 == 1:
        return "read_query", {"query": f"SELECT name FROM birds WHERE id = {row}"}, says(f"swift {row}")
    return "list_tables", {}, says("birds")


def published(root: Path) -> list[Published]:
    for name in ("files", "repository"):
        (root / name).mkdir()
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "A"],
        ["config", "user.email", "a@b.c"],
    ):
        subprocess.run(["git", *words], cwd=root / "repository", check=True)
    packages = "@modelcontextprotocol/server-"
    database = str(root / "rows.db")
    return [
        Published(
            slug="everything", command=("npx", "-y", f"{packages}everything"), share=0.25, step=everything
        ),
        Published(
            slug="files",
            command=("npx", "-y", f"{packages}filesystem", str(root / "files")),
            share=0.25,
            step=filesystem(root / "files"),
        ),
        Published(
            slug="memory",
            command=("npx", "-y", f"{packages}memory"),
            share=0.15,
            step=memory,
            callers=1,  # it rewrites one file without a lock
            env={"MEMORY_FILE_PATH": str(root / "memory.json")},
        ),
        Published(slug="time", command=("uvx", "mcp-server-time"), share=0.2, step=clock),
        Published(
            slug="git",
            command=("uvx", "mcp-server-git"),
            share=0.05,
            step=git(root / "repository"),
            callers=1,
        ),
        Published(
            slug="sqlite",
            command=("uvx", "--with", "mcp<2", "mcp-server-sqlite", "--db-path", database),
            share=0.1,
            step=sqlite,
            callers=1,
        ),
    ]


@asynccontextmanager
async def open_published() -> AsyncGenerator[tuple[peers.Hub, list[Published]]]:
    downloads = {"npm_config_cache": str(CACHE / "npm"), "UV_CACHE_DIR": str(CACHE / "uv")}
    for folder in downloads.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
        async with peers.open_hub() as hub:
            servers = published(Path(folder))
            for one in servers:
                command, *args = one.command
                env = {**downloads, **one.env}
                await peers.add(hub, one.slug, command=command, args=args, env=env, connect_timeout=240)
            made = await hub.call("mcp_sqlite_create_table", {"query": "CREATE TABLE birds (id, name)"})
            assert made.ok, made.error
            yield hub, servers


async def run(hub: peers.Hub, server: Published, calls: int) -> tuple[float, Counter[str]]:
    """Seconds, and the errors by code. Each caller takes twelve steps at a time: what belongs together."""
    errors: Counter[str] = Counter()
    sets = iter(range(0, calls, 12))

    async def caller() -> None:
        for first in sets:
            for number in range(first, min(first + 12, calls)):
                tool, given, holds = server.step(number)
                output = await hub.call(f"mcp_{server.slug}_{tool}", given)
                if output.error is not None:
                    errors[output.error.code] += 1
                elif not holds(output):
                    errors["wrong_answer"] += 1

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(server.callers):
            tasks.create_task(caller())
    return time.perf_counter() - started, errors


async def measure(calls: int) -> lab.Report:
    report = lab.Report("real_servers")
    rows: list[list[object]] = []
    made = failed = 0
    async with open_published() as (hub, servers):
        for server in servers:
            count = round(calls * server.share)
            seconds, errors = await run(hub, server, count)
            wrong = sum(errors.values())
            made, failed = made + count, failed + wrong
            told = ", ".join(f"{number} {code}" for code, number in errors.items()) or "0"
            rows.append([server.slug, server.callers, count, count / seconds, told])
    report.table("Calls over published servers", ["server", "callers", "calls", "calls/s", "errors"], rows)
    share = 100 * failed / made
    report.verdict(
        f"{made:,} calls with errors under {AIM:g} %", f"{failed} errors, {share:.3f} %", met=share < AIM
    )
    return report


def main() -> None:
    given = lab.options(__doc__ or "", calls=(10_000, "calls over all servers"))
    asyncio.run(measure(600 if given.quick else given.calls)).show(as_json=given.json)


if __name__ == "__main__":
    main()
