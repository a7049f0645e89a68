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

SERVERS = 20
SERVER = """
import json, sys
count = int(sys.argv[1])
text = "Reads record {0}, checks its invoice and sends the order of department {0}"
schema = {"type": "object", "properties": {"text": {"type": "string", "description": "what to look for"}}}
tools = [{"name": f"tool_{n}", "description": text.format(n), "inputSchema": schema} for n in range(count)]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    start = int((asked.get("params") or {}).get("cursor") or 0)
    page = {"tools": tools[start : start + 200]}
    if start + 200 < count:
        page["nextCursor"] = str(start + 200)
    told = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "many", "version": "1"}},
            "tools/list": page, "ping": {}}.get(asked["method"])
    answer = {"result": told} if told is not None else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


class LoopWatch:
    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            since = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - since)

    def taken(self) -> float:
        """In milliseconds, since it was last asked."""
        longest, self.longest = self.longest, 0.0
        return longest * 1000


async def measured(hub: Hub, report: lab.Report, tools: int) -> None:
    program = hub.settings.home / "many.py"
    program.write_text(SERVER)
    watch = LoopWatch()
    watching = asyncio.ensure_future(watch.watch())
    await asyncio.sleep(0.01)
    watch.taken()
    since = time.process_time()
    for number in range(SERVERS):
        arguments = [str(program), str(tools // SERVERS)]
        await hub.connectors.add(f"many{number}", command=sys.executable, args=arguments)
    added, held = time.process_time() - since, watch.taken()
    assert len(hub.tools.list()) == tools
    since = time.process_time()
    assert (await hub.tools.search("send the order of department 7")).hits
    searched, search_held = time.process_time() - since, watch.taken()
    watching.cancel()
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
