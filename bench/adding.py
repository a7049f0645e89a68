"""Many tools at once: what adding them costs, how long the loop is held, and the first search over them.

The collector of garbage is as a service has it (what was loaded is frozen) unless `--library` is given.
A hold is the processor time that the loop's thread takes between two turns of one who waits a millisecond.
"""

import asyncio
import gc
import sys
import time
from pathlib import Path

import lab
import peers
from dragoman import Hub

sys.path.append(str(peers.SERVERS.parent))
from servers.loop_watch import watched  # pyright: ignore

SERVERS = 20
MANY = peers.SERVERS / "many_tools_stdio.py"


async def measured(hub: Hub, report: lab.Report, tools: int) -> None:
    async with watched() as adding:
        since = time.process_time()
        for number in range(SERVERS):
            arguments = [str(MANY), str(tools // SERVERS)]
            await hub.connectors.add(f"many{number}", command=sys.executable, args=arguments)
        added = time.process_time() - since
    assert len(hub.tools.list()) == tools
    async with watched() as searching:
        since = time.process_time()
        assert (await hub.tools.search("send the order of department 7")).hits
        searched = time.process_time() - since
    held, search_held = adding.longest * 1000, searching.longest * 1000
    rows: list[list[object]] = [["added", added, held], ["first search", searched, search_held]]
    report.table(f"{tools:,} tools of {SERVERS} servers", ["what", "CPU s", "longest hold ms"], rows)
    if tools == 100_000:
        report.verdict("100,000 tools added in at most 10 s CPU", f"{added:.1f} s", met=added <= 10)
    if tools == 50_000:
        aim = "first search over 50,000 tools: at most 4 s CPU"
        report.verdict(aim, f"{searched:.1f} s", met=searched <= 4)
    report.verdict("no hold over 50 ms", f"{max(held, search_held):.0f} ms", met=max(held, search_held) <= 50)


async def main() -> None:
    parser = lab.parser(__doc__)
    parser.add_argument("--tools", type=int, default=100_000, help="in all (default 100000)")
    parser.add_argument("--library", action="store_true", help="the collector as a program has it")
    given = parser.parse_args()
    report = lab.Report(Path(__file__).stem)
    async with peers.open_hub() as hub:
        if not given.library:
            gc.collect()
            gc.freeze()
            gc.set_threshold(2_000, 10, 50)
        await measured(hub, report, 2_000 if given.quick else given.tools)
    report.show(as_json=given.json)


if __name__ == "__main__":
    asyncio.run(main())
