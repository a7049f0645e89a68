"""What every benchmark shares: options, rounds of contenders side by side, percentiles, tables, verdicts.

Knows no server and no hub. Contenders take turns in rounds, so that a noisy machine hurts all alike.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

LIBRARIES = ("mcp", "aiohttp", "orjson", "pydantic", "fastapi", "uvicorn", "sqlalchemy", "jsonschema-rs")
PATIENCE = 60.0
"""Seconds that one call may take before a benchmark gives up."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to do the same thing. `cpu` reads the seconds of CPU of the process under test."""

    name: str
    call: Callable[[], Awaitable[None]]
    cpu: Callable[[], float] = time.process_time
    settle: Callable[[], Awaitable[None]] = _nothing  # work put off by the calls; its CPU counts as theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Medians over rounds: milliseconds, except `calls_per_second`."""

    p50: float
    p95: float
    cpu: float
    calls_per_second: float
    calls: int


@dataclass(slots=True)
class Report:
    """What one benchmark found: tables to read, verdicts on its aims, and the numbers behind them."""

    name: str
    tables: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    verdicts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: list[str] = field(default_factory=list[str])

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.tables.append({"title": title, "columns": [*columns], "rows": [[*map(_cell, r)] for r in rows]})

    def verdict(self, aim: str, found: str, *, met: bool) -> None:
        self.verdicts.append({"aim": aim, "found": found, "met": met})

    def show(self, *, as_json: bool) -> None:
        if as_json:
            print(json.dumps(asdict(self)))
            return
        for table in self.tables:
            print(f"\n{table['title']}\n{_drawn(table['columns'], table['rows'])}")
        for note in self.notes:
            print(f"\n{note}")
        print()
        for verdict in self.verdicts:
            print(f"[{'met' if verdict['met'] else 'NOT MET'}] {verdict['aim']}: {verdict['found']}")


def parser(
    description: str | None, quick: str = "a tenth of the work, to see that it runs"
) -> argparse.ArgumentParser:
    """With the options that every benchmark has: `--quick` and `--json`."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return made


def options(description: str, **numbers: tuple[int, str]) -> argparse.Namespace:
    """`--quick`, `--json`, and the given numbers with their defaults."""
    made = parser(description)
    for name, (default, text) in numbers.items():
        made.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default {default})")
    return made.parse_args()


async def drive(call: Callable[[], Awaitable[None]], callers: int, calls: int) -> list[float]:
    """Milliseconds of each call, made by so many callers at once, each waiting for its answer."""
    left = calls
    taken: list[float] = []

    async def caller() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            started = time.perf_counter()
            async with asyncio.timeout(PATIENCE):
                await call()
            taken.append((time.perf_counter() - started) * 1000)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(callers):
            tasks.create_task(caller())
    return taken


async def compare(
    contenders: Sequence[Contender], *, callers: int, calls: int, rounds: int
) -> dict[str, Figures]:
    """Every contender once per round, the first one of a round being another each time."""
    seen: dict[str, list[Figures]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        await drive(contender.call, callers, max(callers, 20))  # warm
        await contender.settle()
    for number in range(rounds):
        start = number % len(contenders)
        for contender in [*contenders[start:], *contenders[:start]]:
            seen[contender.name].append(await _one_round(contender, callers, calls))
    return {name: _median(figures) for name, figures in seen.items()}


async def _one_round(contender: Contender, callers: int, calls: int) -> Figures:
    gc.collect()
    cpu, started = contender.cpu(), time.perf_counter()
    taken = await drive(contender.call, callers, calls)
    seconds = time.perf_counter() - started
    await contender.settle()
    return Figures(
        p50=percentile(taken, 50),
        p95=percentile(taken, 95),
        cpu=(contender.cpu() - cpu) * 1000 / calls,
        calls_per_second=calls / seconds,
        calls=calls,
    )


def _median(figures: Sequence[Figures]) -> Figures:
    return Figures(
        p50=statistics.median(one.p50 for one in figures),
        p95=statistics.median(one.p95 for one in figures),
        cpu=statistics.median(one.cpu for one in figures),
        calls_per_second=statistics.median(one.calls_per_second for one in figures),
        calls=sum(one.calls for one in figures),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank: a value that was really seen."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def cpu_of(pid: int) -> Callable[[], float]:
    """Reads the CPU seconds of another process, all its threads, without its children."""
    # The process's own clock of the kernel (Linux): nanoseconds, where /proc counts ticks of 10 ms.
    clock = (~pid << 3) | 2
    return lambda: time.clock_gettime(clock)


def machine() -> Mapping[str, str]:
    """What the figures were made on; no names, no paths."""
    return {
        "cores": str(os.cpu_count()),
        "architecture": platform.machine(),
        "system": platform.system(),
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


def load() -> str:
    """How busy the machine was just now: figures made beside other work are worth less."""
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _drawn(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    lines = (columns, ["-" * width for width in widths], *rows)
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines
    )
