"""A whole installation: what commands cost, how soon a service answers, what it takes while nothing happens.

Also with 200 connectors of which 50 are connected, and with 10,000 users and 1,000 connectors in the store.
CPU is that of the process under test, the least of several starts: what else runs on the machine only adds.
"""

import asyncio
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

import lab
from dragoman import Hub, Settings
from dragoman.connector import Configuration, Connector
from dragoman.people import User, Workspace
from dragoman.store import open_store

HERE = Path(__file__).parent
DRAGOMAN = Path(sys.executable).with_name("dragoman")
COMMANDS: Mapping[str, tuple[list[str], float]] = {
    "from dragoman import Hub": ([sys.executable, "-c", "from dragoman import Hub"], 0.5),
    "dragoman --help": ([str(DRAGOMAN), "--help"], 0.2),
    "dragoman token": ([str(DRAGOMAN), "token"], 0.25),
    "dragoman call, without a service": ([str(DRAGOMAN), "call", "nothing"], 1.2),
}
CONNECTORS, CONNECTED = 200, 50
USERS, MANY_CONNECTORS = 10_000, 1_000
ECHO = """
import json, sys
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    told = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "echo", "version": "1"}},
            "tools/list": {"tools": [TOOL]}, "ping": {}}.get(asked["method"])
    answer = {"result": told} if told is not None else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@dataclass(frozen=True)
class Service:
    """`taken` are the seconds until its first answer, `cpu` those that it was at work."""

    process: psutil.Process
    port: int
    taken: float
    cpu: float


def cpu_of(command: list[str], environment: Mapping[str, str], times: int) -> float:
    least = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=dict(environment), capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def commands(report: lab.Report, times: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "DRAGOMAN_HOME": home}
        subprocess.run([DRAGOMAN, "tools", "list"], env=environment, capture_output=True, check=False)
        rows: list[list[object]] = [["python alone", cpu_of([sys.executable, "-c", ""], environment, times)]]
        for name, (command, aim) in COMMANDS.items():
            seconds = cpu_of(command, environment, times)
            rows.append([name, seconds])
            report.verdict(f"{name}: at most {aim:g} s CPU", f"{seconds:.2f} s", met=seconds <= aim)
        report.table("Seconds of CPU", ["command", "CPU s"], rows)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def served(home: Path) -> Generator[Service]:
    port = free_port()
    environment = {**os.environ, "DRAGOMAN_HOME": str(home), "DRAGOMAN_LOG_LEVEL": "error"}
    started = time.perf_counter()
    with subprocess.Popen(
        [DRAGOMAN, "serve", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                        break
                except OSError:
                    if process.poll() is not None:
                        raise SystemExit("the service ended") from None
                    time.sleep(0.01)
            taken = time.perf_counter() - started
            of = psutil.Process(process.pid)
            yield Service(of, port, taken, sum(of.cpu_times()[:2]))
        finally:
            process.terminate()
            process.wait(20)


def connect(home: Path, port: int, count: int) -> None:
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    told = subprocess.run([DRAGOMAN, "token"], env=environment, capture_output=True, text=True, check=True)
    for number in range(count):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/connectors/c{number}/connect",
            method="POST",
            headers={"Authorization": f"Bearer {told.stdout.strip()}"},
        )
        with urllib.request.urlopen(request, timeout=60):
            pass


def idle(process: psutil.Process, seconds: float) -> float:
    """Percent of a core."""
    before = sum(process.cpu_times()[:2])
    time.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / seconds * 100


def service(report: lab.Report, rest: float) -> None:
    rows: list[list[object]] = []

    def row(name: str, home: Path, connected: int = 0) -> tuple[float, float, float]:
        with served(home) as found:
            connect(home, found.port, connected)
            time.sleep(min(rest, 10))
            used = idle(found.process, rest)
            memory = found.process.memory_info().rss / 2**20
            rows.append([name, found.taken, found.cpu, memory, used])
            return found.cpu, memory, used

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with served(home):
            pass  # makes the home
        cpu, memory, _ = row("nothing in it", home)
        report.verdict("serve to its first answer: at most 1.5 s of CPU", f"{cpu:.2f} s", met=cpu <= 1.5)
        report.verdict("idle: at most 100 MB", f"{memory:.0f} MB", met=memory <= 100)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        asyncio.run(with_connectors(home))
        _, _, used = row(f"{CONNECTORS} connectors, {CONNECTED} of them connected", home, CONNECTED)
        report.verdict(
            "200 connectors, 50 connected: at most 0.5 % of a core", f"{used:.2f} %", met=used <= 0.5
        )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        asyncio.run(with_people(home))
        cpu, _, _ = row(f"{USERS:,} users, {MANY_CONNECTORS:,} connectors", home)
        report.verdict(
            "10,000 users, 1,000 connectors: start in at most 3 s of CPU", f"{cpu:.2f} s", met=cpu <= 3
        )
    report.table(
        "A service", ["what", "first answer s", "CPU s until then", "RSS MB", "idle % of a core"], rows
    )


async def with_connectors(home: Path) -> None:
    program = home / "echo.py"
    program.write_text(ECHO)
    async with Hub(Settings(home=home)) as hub:
        for number in range(CONNECTORS):
            is_on = number < CONNECTED
            await hub.connectors.add(f"c{number}", command=sys.executable, args=[str(program)], enabled=is_on)


async def with_people(home: Path) -> None:
    async with Hub(Settings(home=home)):
        pass
    async with open_store(Settings(home=home).store_url) as store:
        await store.people.put_workspace(Workspace(id="many", name="many"))
        for number in range(USERS):
            await store.people.put_user(User(id=f"u{number}", workspace="many", name=f"u{number}"))
        for number in range(MANY_CONNECTORS):
            slug = f"k{number}"
            configuration = Configuration(command="true")
            connector = Connector(
                id=slug, workspace="many", owner="", slug=slug, configuration=configuration, enabled=False
            )
            await store.connectors.add(connector, ())
    async with Hub(Settings(home=home)):
        pass  # each connector has an agent now, as it would have had from its beginning


def main() -> None:
    given = lab.options(__doc__ or "", times=(5, "starts of each command"), rest=(20, "seconds at rest"))
    report = lab.Report("installation")
    commands(report, 1 if given.quick else given.times)
    service(report, 3 if given.quick else given.rest)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
