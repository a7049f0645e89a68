"""Half requests and idle streams against a real `dragoman serve`: it answers others, and all of them end.

A third of the halves say nothing, a third stop in the head, a third in the body. Meanwhile `/health` is asked
on new connections. Then nobody does anything any more: halves must be closed by the service, and streams end
when their key is revoked.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lab

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SLOWEST = 200.0  # milliseconds of /health
MOST_LOG = 1_000_000  # bytes


@dataclass(frozen=True, slots=True)
class Service:
    host: str
    port: int
    pid: int
    token: str
    log: Path

    async def connect(self) -> Connection:
        return await asyncio.open_connection(self.host, self.port)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """On a connection of its own."""
        reader, writer = await self.connect()
        data = b"" if body is None else json.dumps(body).encode()
        writer.write(self.head(method, path, f"Content-Length: {len(data)}", "Connection: close") + data)
        answer = await reader.read()
        writer.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), rest

    def head(self, method: str, path: str, *more: str, token: str = "") -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more]
        return "\r\n".join([*lines, f"Authorization: Bearer {token or self.token}", "", ""]).encode()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu(self) -> float:
        """Seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(given: argparse.Namespace) -> Generator[Service]:
    with tempfile.TemporaryDirectory() as home:
        log = Path(home, "log")
        environment = {
            **os.environ,
            "DRAGOMAN_HOME": f"{home}/home",
            "DRAGOMAN_HEADER_TIMEOUT": str(given.head_seconds),
            "DRAGOMAN_BODY_TIMEOUT": str(given.body_seconds),
        }
        files = given.files

        def few_files() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        with (
            log.open("wb") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--json"],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                preexec_fn=few_files if files else None,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                url = urlsplit(json.loads(process.stdout.readline())["url"])
                token = Path(home, "home", "token").read_text().strip()
                yield Service(url.hostname or "", url.port or 0, process.pid, token, log)
            finally:
                process.terminate()
                process.wait(20)


async def half_request(service: Service, number: int) -> Connection:
    reader, writer = await service.connect()
    if number % 3 == 1:
        writer.write(b"GET /api/tools HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
    elif number % 3 == 2:
        writer.write(service.head("POST", "/api/call", "Content-Length: 100") + b'{"tool": ')
    return reader, writer


async def idle_stream(service: Service, token: str) -> Connection:
    reader, writer = await service.connect()
    writer.write(service.head("GET", "/api/events", token=token))
    await reader.readuntil(b": listening\n\n")
    return reader, writer


async def accepted(service: Service) -> None:
    """All that came are in."""
    before = -1
    while (now := service.descriptors()) != before:
        before = now
        await asyncio.sleep(0.2)


async def seconds_until_over(connections: list[Connection], within: float) -> tuple[float, int]:
    """Closed, or the answer at its end. How long it took, and how many were not so at the limit."""
    began = time.perf_counter()

    async def closed(reader: asyncio.StreamReader) -> None:
        try:
            while (told := await reader.read(65536)) and not told.endswith(b"0\r\n\r\n"):
                pass
        except OSError:
            pass

    waiting = [asyncio.ensure_future(closed(reader)) for reader, _ in connections]
    if not waiting:
        return 0.0, 0
    _, open_still = await asyncio.wait(waiting, timeout=within)
    for task in open_still:
        task.cancel()
    return time.perf_counter() - began, len(open_still)


# In a process of its own, which has nothing else to do: what it waits for is the service. Where the crowd
# takes every connection, one that has not spoken yet may be sent away: it comes again, and its time goes on.
ASKING = """
import http.client, json, sys, time, select
taken, is_over = [], False
print("asking", flush=True)
while not is_over:
    began, is_well = time.perf_counter(), False
    while not is_well and time.perf_counter() - began < 60:
        try:
            connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=60)
            connection.request("GET", "/health", headers={"Host": "localhost"})
            is_well = connection.getresponse().status == 200
            connection.close()
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
    taken.append((time.perf_counter() - began) * 1000 if is_well else 1e9)
    is_over = bool(select.select([sys.stdin], [], [], 0.05)[0])
print(json.dumps(taken))
"""


@contextmanager
def asking_health(service: Service, taken: list[float]) -> Generator[None]:
    """On a new connection each time, again and again; `taken` gets the milliseconds of each."""
    command = [sys.executable, "-S", "-c", ASKING, service.host, str(service.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            told, _ = process.communicate(b"stop")
            taken += json.loads(told)


async def measure(given: argparse.Namespace) -> lab.Report:
    report = lab.Report("doors")
    with serving(given) as service:
        _, key = await service.ask("POST", "/api/keys", {"name": "streams", "scopes": ["read"]})
        key = json.loads(key)
        before = service.descriptors()
        streams = [await idle_stream(service, key["key"]) for _ in range(given.streams)]
        coming: list[float] = []
        taken: list[float] = []
        with asking_health(service, coming):
            halves = [await half_request(service, number) for number in range(given.halves)]
            await accepted(service)
        with asking_health(service, taken):
            opened, cpu = service.descriptors(), service.cpu()
            after, left = await seconds_until_over(halves, given.body_seconds + given.margin)
            cpu = (service.cpu() - cpu) / after
        await service.ask("DELETE", f"/api/keys/{key['id']}")
        ended, streaming = await seconds_until_over(streams, 2.0 * given.margin)
        for _, writer in (*halves, *streams):
            writer.close()
        limit = time.monotonic() + given.margin
        while service.descriptors() > before + 5 and time.monotonic() < limit:
            await asyncio.sleep(0.1)
        size, rest = service.log.stat().st_size, service.descriptors() - before
    taken.sort()
    slowest, crowded = taken[-1], max(coming)
    columns = ["half requests", "streams", "descriptors", "/health p50 ms", "p99 ms", "slowest ms", "asked"]
    columns += [
        "slowest ms while they came",
        "halves closed after s",
        "streams ended after s",
        "cores used",
        "log bytes",
    ]
    p50, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    row = [
        given.halves,
        given.streams,
        opened,
        p50,
        p99,
        slowest,
        len(taken),
        crowded,
        after,
        ended,
        cpu,
        size,
    ]
    report.table("Open at once, and what became of them", columns, [row])
    report.verdict(
        f"/health answers within {SLOWEST:g} ms", f"{slowest:.0f} ms", met=slowest <= given.slowest
    )
    report.verdict(
        f"/health answers within {SLOWEST:g} ms while they come",
        f"{crowded:.0f} ms",
        met=crowded <= given.slowest,
    )
    report.verdict("every half request is closed by the service", f"{left} open", met=not left)
    report.verdict("every stream ends with its key", f"{streaming} open", met=not streaming)
    report.verdict("no descriptor is left behind", f"{rest} more than before", met=rest <= 5)
    report.verdict("the log stays under 1 MB", f"{size:,} bytes", met=size < MOST_LOG)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="a tenth of the connections, and short limits")
    parser.add_argument("--halves", type=int, default=5000)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--files", type=int, default=0, help="descriptors that the service may have")
    parser.add_argument("--head-seconds", type=float, default=15.0)
    parser.add_argument("--body-seconds", type=float, default=60.0)
    parser.add_argument("--margin", type=float, default=5.0, help="seconds beyond a limit, on this machine")
    parser.add_argument("--slowest", type=float, default=SLOWEST, help="milliseconds that /health may take")
    given = parser.parse_args()
    if given.quick:
        given.halves, given.streams = given.halves // 10, given.streams // 10
        given.head_seconds = given.body_seconds = 5.0
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(measure(given)).show(as_json=given.json)


if __name__ == "__main__":
    main()
