"""What the console costs: first paint and weight of pages, from a word said to the word seen, many streams.

Chromium is Debian's; the service runs in a process of its own, and the clock of both is that of the machine.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from playwright.async_api import Browser, Page, async_playwright

import lab
from console_home import fill
from dragoman import Hub, Settings
from dragoman.console.charts import charts_of
from dragoman.store import Store, open_store
from dragoman.telemetry.time_buckets import HALF_DAY, BucketKey, TimeBuckets, rows_of

SERVICE = Path(__file__).with_name("console_service.py")
CHROMIUM = "/usr/bin/chromium-headless-shell"
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PAINT, WEIGHT, TOKEN = 300.0, 150.0, 50.0  # milliseconds, KB, milliseconds
CHART = 150.0  # milliseconds
FIRST_PAGE = 5.0  # seconds
DEMO = Path(__file__).parents[1] / "scripts" / "demo"
STREAMS, IDLE = 200, 10.0  # % of a core
SPEAKING = 20
TURNS = 8

WATCH = """() => {
  window.seen = [];
  const heard = new Set();
  new MutationObserver(() => requestAnimationFrame(() => {
    const now = performance.timeOrigin + performance.now();
    for (const words of document.querySelectorAll(".words"))
      for (const word of words.textContent.match(/\\d{13}\\.\\d/g) ?? [])
        if (!heard.has(word)) { heard.add(word); window.seen.push(now - Number(word)); }
  })).observe(document.getElementById("talk"), { subtree: true, childList: true, characterData: true });
}"""
# Frames as the page sees them, and the time of its own tasks: a busy machine lengthens frames alone.
FRAMES = """() => {
  window.frames_ms = [];
  window.tasks_ms = [];
  new PerformanceObserver((list) => window.tasks_ms.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: "longtask" });
  let last = performance.now();
  const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(next); });
}"""
PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  if (list.getEntriesByName("first-contentful-paint").length) resolve();
}).observe({ type: "paint", buffered: true }))"""
COSTS = """() => {
  const entries = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
  return {
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
    bytes: entries.reduce((sum, entry) => sum + entry.transferSize, 0),
  };
}"""


@dataclass(slots=True)
class Service:
    url: str
    codes: list[str]
    token: str
    process: psutil.Process
    http: aiohttp.ClientSession

    async def post(self, text: str, thread: str | None = None, *, wait: bool = False) -> str:
        """The thread that it went to."""
        path = f"/api/threads/{thread}/messages" if thread else "/api/messages"
        address = f"{self.url}{path}{'?wait=true' if wait else ''}"
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.http.post(address, json={"text": text}, headers=headers) as response:
            return (await response.json())["run"]["thread"]

    async def sign_in(self) -> None:
        async with self.http.get(f"{self.url}/sign-in?code={self.codes.pop()}") as response:
            assert response.status == 200


@asynccontextmanager
async def open_service(filled: Path | None = None) -> AsyncGenerator[Service]:
    """With an empty home, or with one that is `filled` already."""
    with tempfile.TemporaryDirectory() as empty:
        home = str(filled or empty)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(SERVICE), home), stdout=asyncio.subprocess.PIPE, limit=1024 * 1024
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(lab.PATIENCE):
                facts = json.loads(await process.stdout.readline())
            jar, connector = aiohttp.CookieJar(unsafe=True), aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(cookie_jar=jar, connector=connector) as http:
                yield Service(**facts, process=psutil.Process(process.pid), http=http)
        finally:
            process.terminate()
            await process.wait()


async def open_page(browser: Browser, service: Service) -> Page:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    await page.goto(f"{service.url}/sign-in?code={service.codes.pop()}")
    return page


async def first_paint(browser: Browser, page: Page, service: Service, path: str) -> tuple[float, float]:
    """Milliseconds and KB of a browser that has seen nothing of the console yet, but is signed in."""
    context = await browser.new_context(storage_state=await page.context.storage_state())
    try:
        fresh = await context.new_page()
        await fresh.goto(service.url + path)
        await fresh.evaluate(PAINTED)
        costs: dict[str, Any] = await fresh.evaluate(COSTS)
        return costs["paint"], costs["bytes"] / 1024
    finally:
        await context.close()


async def full_paints(
    report: lab.Report, browser: Browser, rounds: int, connectors: int, threads: int
) -> None:
    """In an installation that is full."""
    with tempfile.TemporaryDirectory() as home:
        await fill(Path(home), connectors, 50, 0, threads)
        async with open_service(Path(home)) as service:
            page = await open_page(browser, service)
            await paints(report, browser, page, service, rounds)
    report.notes.append(f"First paint: {connectors:,} connectors with 50 tools each, {threads:,} threads")


async def paints(report: lab.Report, browser: Browser, page: Page, service: Service, rounds: int) -> None:
    thread = await service.post("hello", wait=True)
    for _ in range(TURNS - 1):
        await service.post("hello", thread, wait=True)
    rows: list[list[object]] = []
    for name, path in (("chat", f"/chat/{thread}"), ("connectors", "/connectors")):
        found = [await first_paint(browser, page, service, path) for _ in range(rounds)]
        times, weight = [one[0] for one in found], max(one[1] for one in found)
        middle = lab.percentile(times, 50)
        rows.append([name, middle, lab.percentile(times, 95), weight])
        text = f"{middle:.0f} ms, {weight:.0f} KB"
        report.verdict(
            f"first paint of {name} under {PAINT:g} ms and {WEIGHT:g} KB",
            text,
            met=middle < PAINT and weight < WEIGHT,
        )
    report.table("First paint, nothing cached", ("page", "p50 ms", "p95 ms", "KB"), rows)


async def tokens(report: lab.Report, page: Page, service: Service, words: int) -> None:
    thread = await service.post("hello", wait=True)
    await page.goto(f"{service.url}/chat/{thread}")
    await page.wait_for_selector("#live[data-state=live]")
    await page.evaluate(WATCH)
    await service.post(f"say {words}", thread)
    await page.wait_for_selector(".turn:nth-of-type(2)[data-state=done]", timeout=lab.PATIENCE * 1000)
    seen: list[float] = await page.evaluate("() => window.seen")
    p50, p95 = lab.percentile(seen, 50), lab.percentile(seen, 95)
    report.table(
        "From a word said to the word on the screen", ("words", "p50 ms", "p95 ms"), [[len(seen), p50, p95]]
    )
    report.verdict(f"token to screen p95 under {TOKEN:g} ms", f"{p95:.0f} ms", met=p95 < TOKEN)


async def frames(report: lab.Report, page: Page, service: Service, size: int) -> None:
    """A long answer in Markdown, faster than anybody reads; before it the same page at rest."""
    thread = await service.post("hello", wait=True)
    await page.goto(f"{service.url}/chat/{thread}")
    await page.wait_for_selector("#live[data-state=live]")
    rows: list[list[object]] = []
    for name in ("at rest", "streaming"):
        await page.evaluate(FRAMES)
        if name == "streaming":
            await service.post(f"write {size}", thread)
            await page.wait_for_selector(".turn:nth-of-type(2)[data-state=done]", timeout=lab.PATIENCE * 1000)
        else:
            await asyncio.sleep(3)
        took: list[float] = await page.evaluate("() => window.frames_ms")
        tasks: list[float] = await page.evaluate("() => window.tasks_ms")
        late = sum(one > TOKEN for one in took)
        rows.append([name, len(took), lab.percentile(took, 95), max(took), late, max(tasks, default=0.0)])
    drawn: int = await page.evaluate(
        "() => document.querySelector('.turn:nth-of-type(2)').textContent.length"
    )
    columns = ("page", "frames", "p95 ms", "longest ms", f"over {TOKEN:g} ms", "longest task ms")
    report.table(f"Frames while {drawn / 1024:.0f} KB of text are drawn", columns, rows)
    text = f"{rows[1][4]} of {rows[1][1]}, longest {rows[1][3]:.0f} ms"
    report.verdict(f"{size} KB streamed without a frame over {TOKEN:g} ms", text, met=not rows[1][4])


async def streams(report: lab.Report, service: Service, seconds: float) -> None:
    await service.sign_in()
    threads = [await service.post("hello", wait=True) for _ in range(STREAMS)]
    cpu = lab.cpu_of(service.process.pid)
    empty = service.process.memory_info().rss
    heard = 0

    async def listen(thread: str) -> None:
        nonlocal heard
        async with service.http.get(f"{service.url}/chat/{thread}/events?after=-:0") as response:
            async for line in response.content:
                heard += line.startswith(b"data:")

    async def share(length: float) -> float:
        before = cpu()
        await asyncio.sleep(length)
        return (cpu() - before) / length * 100

    async with asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(listen(thread)) for thread in threads]
        await asyncio.sleep(3)
        full = service.process.memory_info().rss
        idle = await share(seconds)
        for thread in threads[:SPEAKING]:
            await service.post(f"say {int(seconds / 0.02) + 50}", thread)
        busy = await share(seconds)
        for task in listening:
            task.cancel()
    per_stream = (full - empty) / STREAMS / 1024
    rows = [[STREAMS, 0, idle, per_stream], [STREAMS, SPEAKING, busy, per_stream]]
    columns = ("open streams", "of them speaking", "% of one core", "KB per stream")
    report.table("Open chat streams on one process", columns, rows)
    text = f"idle {idle:.0f} % of one core, {per_stream:.0f} KB each; {heard:,} events heard"
    report.verdict(
        f"{STREAMS} open streams: at most {IDLE:g} % of a core idle", text, met=idle <= IDLE and heard > 0
    )


async def measure(words: int, rounds: int, seconds: float) -> lab.Report:
    report = lab.Report("console")
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(open_service())
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        page = await open_page(browser, service)
        await full_paints(report, browser, rounds, *((100, 1000) if words < 500 else (1000, 10_000)))
        await tokens(report, page, service, words)
        await frames(report, page, service, 10 if words < 500 else 100)
        await browser.close()
        await streams(report, service, seconds)
    await charts(report, rounds)
    await demo(report)
    report.notes.append(f"Load of the machine: {lab.load()}")
    return report


async def charts(report: lab.Report, rounds: int) -> None:
    """A month of ten million calls: 50 users, 10 connectors with 20 tools, in SQLite."""
    with tempfile.TemporaryDirectory() as home:
        async with open_store(f"sqlite:///{home}/dragoman.db") as store:
            calls = await _fill(store)
            async with Hub(Settings(home=Path(home), model="offline"), store=store) as hub:
                rows = await _drawn(hub, rounds, calls)
    report.table("a chart of 30 days, read and drawn", ["what", "calls", "p50 ms", "most ms"], rows)
    took = [float(row[2]) for row in rows]
    text = ", ".join(f"{row[0]} {one:.0f} ms" for row, one in zip(rows, took, strict=True))
    report.verdict(f"30 days of {calls:,} calls within {CHART:g} ms", text, met=max(took) <= CHART)


async def _drawn(hub: Hub, rounds: int, calls: int) -> list[list[str | float]]:
    rows: list[list[str | float]] = []
    for name, split in (("everything", None), ("by connector", "connector"), ("by tool", "tool")):
        took: list[float] = []
        for _ in range(rounds):
            started = time.perf_counter()
            series = await hub.statistics.series("30d", split=split)
            drawn = charts_of(series)
            took.append((time.perf_counter() - started) * 1000)
            assert (series.total.calls, len(drawn)) == (calls, 4)
        rows.append([name, calls, lab.percentile(took, 50), max(took)])
    return rows


async def _fill(store: Store) -> int:
    now, count, each = int(time.time()) // HALF_DAY * HALF_DAY, 0, 168
    for half_day in range(60):
        buckets = TimeBuckets()
        for user in range(50):
            for tool in range(20):
                slug = f"connector{tool % 10}"
                key = BucketKey("local", f"user{user}", now - half_day * HALF_DAY, slug, f"{slug}_{tool}")
                buckets.call(key, True, 10.0 + 37 * ((user + tool) % 20), 0.001)
                buckets.add(key, calls=each - 1)
                count += each
        await store.metrics.add(rows_of(buckets.take()))
    return count


async def demo(report: lab.Report) -> None:
    """From the command to the page behind its link, when everything is installed."""
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        str(DEMO), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True
    )
    try:
        assert process.stdout is not None
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, too
        async with asyncio.timeout(120), aiohttp.ClientSession(cookie_jar=jar) as http:
            link = None
            while link is None:
                line = await process.stdout.readline()
                assert line, "the demo ended before it said where the console is"
                link = re.search(rb"http://\S+/sign-in\?code=\S+", line)
            async with http.get(link[0].decode()) as page:
                assert "Connectors" in await page.text()
        seconds = time.perf_counter() - started
    finally:
        process.terminate()
        await process.communicate()
    report.table("scripts/demo", ["until", "seconds"], [["its first page has been read", seconds]])
    report.verdict(f"first useful page under {FIRST_PAGE:g} s", f"{seconds:.1f} s", met=seconds < FIRST_PAGE)


def main() -> None:
    given = lab.options(__doc__ or "", words=(500, "words of one answer"), rounds=(11, "first paints"))
    words, rounds, seconds = (100, 3, 3.0) if given.quick else (given.words, given.rounds, 10.0)
    asyncio.run(measure(words, rounds, seconds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
