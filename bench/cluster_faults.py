"""Faults under several nodes on one PostgreSQL and NATS: nothing lost, doubled or stuck.

A lane is a module `cluster_faults_NAME.py` with what it does and what it reports. With `--state FILE` it goes
on where it was stopped, and with `--seconds 0` it shows what was found so far.
"""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
# `runs` are those of the tests, not of this folder.
sys.path[:] = [str(TESTS), *(one for one in sys.path if one not in (str(HERE), str(TESTS)))]
import runs.killing  # noqa: E402, F401  # pyright: ignore

sys.path.append(str(HERE))

import cluster_faults_runs  # noqa: E402
import lab  # noqa: E402
from cluster_faults_runs import RunsTally, Wanted  # noqa: E402


async def measure(wanted: Wanted, seconds: float, state: Path | None) -> lab.Report:
    known = json.loads(state.read_text()) if state and state.exists() else {}
    tally = RunsTally(**known.get("runs", {}))
    started = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - started >= seconds

    def save() -> None:
        if state:
            fresh = state.with_name(state.name + ".new")
            fresh.write_text(json.dumps({**known, "runs": vars(tally)}, indent=1))
            fresh.replace(state)

    await cluster_faults_runs.go_on(tally, wanted, is_over, save)
    report = lab.Report("cluster_faults")
    cluster_faults_runs.report(tally, wanted, report)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="8 kills, 4 freezes, 10 jobs without NATS")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--freezes", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=100, help="runs under each fault of NATS (default 100)")
    parser.add_argument(
        "--seconds", type=float, default=3600, help="most seconds of this start (default 3600)"
    )
    parser.add_argument("--state", type=Path, help="a file that remembers what was done; go on with it")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever was started is ended
    wanted = Wanted(8, 4, 10) if given.quick else Wanted(given.kills, given.freezes, given.jobs)
    asyncio.run(measure(wanted, given.seconds, given.state)).show(as_json=given.json)


if __name__ == "__main__":
    main()
