"""Faults under several nodes on one PostgreSQL and NATS: nothing lost, doubled or stuck.

A lane is a module `cluster_faults_NAME.py` with what it does and what it reports. With `--state FILE` it goes
on where it was stopped, and with `--seconds 0` it shows what was found so far.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
# `cluster` and `runs` are those of the tests, not the modules of this folder.
sys.path[:] = [str(TESTS), *(one for one in sys.path if one not in (str(HERE), str(TESTS)))]
import cluster.nats_server  # noqa: E402, F401  # pyright: ignore
import runs.killing  # noqa: E402, F401  # pyright: ignore

sys.path.append(str(HERE))

import cluster_faults_calls  # noqa: E402
import cluster_faults_nats  # noqa: E402
import cluster_faults_runs  # noqa: E402
import cluster_faults_services  # noqa: E402
import lab  # noqa: E402
from cluster_faults_calls import CallsTally, WantedCalls  # noqa: E402
from cluster_faults_nats import NatsTally, WantedNats  # noqa: E402
from cluster_faults_runs import RunsTally, Wanted  # noqa: E402
from cluster_faults_services import ServicesTally, WantedServices  # noqa: E402

LANES = ("runs", "calls", "nats", *cluster_faults_services.LANES)


async def measure(
    lanes: Sequence[str],
    wanted: Wanted,
    wanted_calls: WantedCalls,
    wanted_nats: WantedNats,
    wanted_services: WantedServices,
    seconds: float,
    state: Path | None,
) -> lab.Report:
    known = json.loads(state.read_text()) if state and state.exists() else {}
    runs_tally = RunsTally(**known.get("runs", {}))
    calls_tally = CallsTally(**known.get("calls", {}))
    nats_tally = NatsTally(**known.get("nats", {}))
    services = {name: ServicesTally(**known.get(name, {})) for name in cluster_faults_services.LANES}
    started = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - started >= seconds

    def save() -> None:
        if state:
            fresh = state.with_name(state.name + ".new")
            tallies = {"runs": runs_tally, "calls": calls_tally, "nats": nats_tally, **services}
            fresh.write_text(json.dumps(tallies, default=vars, indent=1))
            fresh.replace(state)

    report = lab.Report("cluster_faults")
    if "runs" in lanes:
        await cluster_faults_runs.go_on(runs_tally, wanted, is_over, save)
        cluster_faults_runs.report(runs_tally, wanted, report)
    if "calls" in lanes:
        await cluster_faults_calls.go_on(calls_tally, wanted_calls, is_over, save)
        cluster_faults_calls.report(calls_tally, wanted_calls, report)
    if "nats" in lanes:
        await cluster_faults_nats.go_on(nats_tally, wanted_nats, is_over, save)
        cluster_faults_nats.report(nats_tally, wanted_nats, report)
    for name, tally in services.items():
        if name in lanes:
            await cluster_faults_services.go_on(name, tally, wanted_services, is_over, save)
            cluster_faults_services.report(name, tally, wanted_services, report)
    return report


def main() -> None:
    parser = lab.parser(
        __doc__, quick="8 kills, 4 freezes, 10 jobs without NATS, one of each fault of services"
    )
    parser.add_argument("--lane", choices=LANES, help="only this one")
    parser.add_argument("--calls", type=int, default=20_000, help="of the lane calls (default 20,000)")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--freezes", type=int, default=50)
    parser.add_argument(
        "--jobs",
        type=int,
        default=100,
        help="runs under each fault of NATS (default 100), with ten times as many calls in the lane nats",
    )
    parser.add_argument("--rounds", type=int, default=5, help="of each fault of the services (default 5)")
    parser.add_argument("--before", help="the interpreter of another version, which the lane rolling leaves")
    parser.add_argument(
        "--seconds", type=float, default=3600, help="most seconds of this start (default 3600)"
    )
    parser.add_argument("--state", type=Path, help="a file that remembers what was done; go on with it")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever was started is ended
    wanted = Wanted(8, 4, 10) if given.quick else Wanted(given.kills, given.freezes, given.jobs)
    wanted_calls = WantedCalls(*((200, 2, 1) if given.quick else (given.calls, given.kills, given.freezes)))
    wanted_nats = WantedNats(*((5, 50) if given.quick else (given.jobs, 10 * given.jobs)))
    wanted_services = WantedServices(1 if given.quick else given.rounds, given.before)
    lanes = [given.lane] if given.lane else LANES
    found = asyncio.run(
        measure(lanes, wanted, wanted_calls, wanted_nats, wanted_services, given.seconds, given.state)
    )
    found.show(as_json=given.json)


if __name__ == "__main__":
    main()
