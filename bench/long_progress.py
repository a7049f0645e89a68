"""A call of minutes through `/mcp`: the official client waits for it, and hears of it all the while.

One server tells how far it is, the other says nothing. Both eras, all four calls at once, over real HTTP; the
servers are programs of the tests. Written down is the longest silence that the client heard.
"""

import argparse
import asyncio
import json
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

from doors import open_door  # noqa: E402 # pyright: ignore
from servers.processes import stdio  # noqa: E402 # pyright: ignore

LONGEST_SILENCE = 10.0


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    seconds = asked.minutes * 60
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
    is_good = all(row["answered"] and row["silence"] <= LONGEST_SILENCE for row in rows)
    if asked.json:
        print(json.dumps({"minutes": asked.minutes, "rows": rows, "passed": is_good}))
    else:
        for row in rows:
            print(row)
    return 0 if is_good else 1


async def waited(door: Any, mode: str, tool: str, seconds: float) -> dict[str, Any]:
    """One call, and when its client heard of it."""
    heard = [time.monotonic()]

    async def hears(progress: float, total: float | None, message: str | None) -> None:
        heard.append(time.monotonic())

    steps = {"count": max(1, round(seconds / 5)), "seconds": 5.0}
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


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
