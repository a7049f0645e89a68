"""A call of minutes through `/mcp`: the official client waits for it, and hears of it all the while.

One server tells how far it is, the other says nothing. Both eras, all four calls at once, over real HTTP; the
servers are programs of the tests. Written down is the longest silence that the client heard.
"""

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests"),
    str(Path(__file__).parent.parent / "tests/mcp_endpoint"),
]

import lab  # noqa: E402
from doors import open_door  # noqa: E402 # pyright: ignore
from servers.processes import stdio  # noqa: E402 # pyright: ignore

LONGEST_SILENCE = 10.0


async def measure(seconds: float) -> lab.Report:
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        door = await stack.enter_async_context(open_door(home))
        limits: dict[str, Any] = {"request_timeout": seconds * 2, "max_request_time": seconds * 3}
        await door.hub.connectors.add("raw", **stdio(), **limits)
        rows = await asyncio.gather(
            *(
                waited(door, mode, tool, seconds)
                for mode in ("2026-07-28", "legacy")
                for tool in ("mcp_raw_steps", "mcp_raw_sleep")
            )
        )
    report = lab.Report("long_progress")
    report.table(
        f"One call of {seconds:.0f} s, waited for by the official client",
        ["era", "server", "took s", "times heard of", "longest silence s"],
        [[row["era"], row["server"], row["seconds"], row["heard"], row["silence"]] for row in rows],
    )
    answered = sum(row["answered"] for row in rows)
    report.verdict("every call is answered", f"{answered} of {len(rows)}", met=answered == len(rows))
    silence = max(row["silence"] for row in rows)
    report.verdict(
        f"a client hears of its call every {LONGEST_SILENCE:.0f} s",
        f"{silence:.1f} s",
        met=silence <= LONGEST_SILENCE,
    )
    return report


async def waited(door: Any, mode: str, tool: str, seconds: float) -> dict[str, Any]:
    """One call, and when its client heard of it."""
    heard = [time.monotonic()]

    async def hears(progress: float, total: float | None, message: str | None) -> None:
        heard.append(time.monotonic())

    step = min(5.0, seconds / 2)
    steps = {"count": round(seconds / step), "seconds": step}
    arguments: dict[str, Any] = steps if tool.endswith("steps") else {"seconds": seconds}
    async with door.client(mode=mode, read_timeout_seconds=seconds * 2) as client:
        result = await client.call_tool(tool, arguments, progress_callback=hears)
    heard.append(time.monotonic())
    silences = [after - before for before, after in pairwise(heard)]
    return {
        "era": "2025" if mode == "legacy" else "2026",
        "server": "tells" if tool.endswith("steps") else "says nothing",
        "seconds": round(heard[-1] - heard[0], 1),
        "heard": len(heard) - 2,
        "silence": round(max(silences), 1),
        "answered": not result.is_error,
    }


def main() -> None:
    given = lab.options(__doc__ or "", seconds=(300, "seconds that each call takes"))
    asyncio.run(measure(30 if given.quick else given.seconds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
