"""Clients of an installation of three services while something is done to it, and what must be true then.

They make calls, post messages and follow their runs, and speak MCP of both eras. Two servers write down each
effect: one with state, which one node holds, and one that every node calls by itself. For suite and bench.
"""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from cluster.nats_server import NatsServer, three_servers
from cluster.service_nodes import AS_OPERATOR, Balancer, Forks, ServiceNode, client
from cluster.tcp_proxy import TcpProxy
from patience import deadline, patient, until
from servers.processes import HttpProcess, journal, stdio
from servers.scenarios import Call, Reply, Turn
from servers.scripted_models import open_scripted_openai

ANSWER_AFTER = 0.1  # most seconds from an effect to its answer: a fault finds calls that were made
SETTLED_WITHIN = 60.0
_PAUSE = 0.05  # seconds between two requests of one client
_NO_FIELD = re.compile(r"there is no field '(\w+)'")
_ENDS = ("done", "failed", "cancelled")
_LATER = ("store_unavailable", "cluster_unavailable", "shutting_down")
"""What says that nothing was done, and to ask again."""


def script(turn: Turn) -> Reply:
    """`job NAME`: look, send by each of two servers, say so; `ask NAME`: the last sending needs a yes."""
    kind, name = turn.user.split()[-2:]
    steps = (
        Call("mcp_far_echo", {"text": name}),
        Call("mcp_far_send", {"text": f"{name} far"}),
        Call("mcp_asked_send" if kind == "ask" else "mcp_near_send", {"text": f"{name} near"}),
    )
    if turn.number <= len(steps):
        return Reply(tool_calls=(steps[turn.number - 1],))
    return Reply(text=f"done {name}: {json.dumps([result.value for result in turn.recent])}")


@dataclass
class Seen:
    """What clients were told. `sent` are the texts of sendings by how they ended."""

    requests: Counter[str] = field(default_factory=Counter[str])
    failed: list[str] = field(default_factory=list[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    sent: dict[str, str] = field(default_factory=dict[str, str])
    runs: dict[str, str] = field(default_factory=dict[str, str])
    heard: dict[str, str] = field(default_factory=dict[str, str])
    ended: Counter[str] = field(default_factory=Counter[str])
    uncertain: int = 0
    streams_again: int = 0
    slowest: float = 0.0


@dataclass(frozen=True)
class Probe:
    """Whether a node was ready and took a message, and after how long that was known."""

    is_served: bool
    seconds: float


class Load:
    """Clients at work until they are told to stop. While `may_refuse`, they may be told to come later."""

    def __init__(
        self, installation: "Installation", name: str, pause: float = _PAUSE, *, of_each: int = 2
    ) -> None:
        """`of_each` kind are the clients that call, and those that post messages."""
        self._installation = installation
        self._of_each = of_each
        self._name = name
        self._pause = pause
        self._numbers = count(1)
        self._is_over = False
        self.may_refuse = False
        self.seen = Seen()

    async def work(self) -> None:
        balancer = self._installation.balancer
        async with client(balancer) as http, asyncio.TaskGroup() as tasks:
            for work in (self._call, self._run) * self._of_each:
                tasks.create_task(self._repeat(work, http))
            for mode in ("legacy", "auto"):
                tasks.create_task(self._speak_mcp(mode))

    def end(self) -> None:
        self._is_over = True

    async def _repeat(self, work: Callable[[httpx2.AsyncClient, str], Any], http: httpx2.AsyncClient) -> None:
        while not self._is_over:
            await work(http, f"{self._name}-{next(self._numbers)}")
            await asyncio.sleep(self._pause)

    async def ask(self, http: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> Any:
        """The answer; None where it was refused for now, or failed."""
        self.seen.requests[f"{method} {path.split('/')[2]}"] += 1
        began = time.monotonic()
        try:
            answer = await http.request(method, path, json=body)
            facts = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            self._fail(f"{method} {path}: {type(error).__name__}: {error}")
            return None
        self.seen.slowest = max(self.seen.slowest, time.monotonic() - began)
        if answer.status_code < 300:
            return facts
        await self._refused(f"{method} {path}: {answer.status_code}", facts)
        return None

    async def _refused(self, what: str, facts: Mapping[str, Any]) -> None:
        code = str(facts.get("code"))
        if self.may_refuse and code in _LATER:
            self.seen.refused[code] += 1
            await asyncio.sleep(patient(0.2))
        elif code == "uncertain" and self._installation.has_starved():
            self.seen.uncertain += 1
        else:
            self._fail(f"{what}: {code}: {facts.get('message') or facts}")

    def _fail(self, what: str) -> None:
        self.seen.failed.append(f"{time.strftime('%H:%M:%S')} {what}"[:400])

    # Calls

    async def _call(self, http: httpx2.AsyncClient, name: str) -> None:
        tool = ("mcp_near_echo", "mcp_near_send", "mcp_far_send")[int(name.rpartition("-")[2]) % 3]
        body = await self.ask(http, "POST", "/api/call", {"tool": tool, "arguments": {"text": name}})
        if body is None:
            self._sent(tool, name, "no answer")
            return
        error = body.get("error") or {}
        self._sent(tool, name, "done" if body["ok"] else str(error.get("code")))
        if not body["ok"]:
            await self._refused(tool, error)

    def _sent(self, tool: str, text: str, ended: str) -> None:
        if tool.endswith("send"):
            self.seen.sent[text] = ended

    async def _speak_mcp(self, mode: Any) -> None:
        """The SDK's own client, which opens a session again only when it was told that there is none."""
        while not self._is_over:
            async with client(self._installation.balancer) as http:
                transport = streamable_http_client("http://127.0.0.1/mcp", http_client=http)
                try:
                    async with Client(transport, mode=mode) as session:
                        await self._talk(session, f"mcp {mode}")
                except* (MCPError, httpx2.HTTPError) as group:
                    await self._refused_in_mcp(f"mcp {mode}", group.exceptions[0])

    async def _talk(self, session: Client, what: str) -> None:
        while not self._is_over:
            text = f"{self._name}-{next(self._numbers)}"
            self.seen.requests[what] += 1
            self.seen.sent[text] = "no answer"
            try:
                answer = await session.call_tool("mcp_near_send", {"text": text})
            except MCPError as error:
                await self._refused_in_mcp(what, error)
                continue
            said = " ".join(getattr(part, "text", "") for part in answer.content)
            self.seen.sent[text] = "failed" if answer.is_error else "done"
            if answer.is_error:
                await self._refused_in_mcp(what, MCPError(0, said))
            await asyncio.sleep(self._pause)

    async def _refused_in_mcp(self, what: str, error: BaseException) -> None:
        facts = getattr(getattr(error, "error", None), "data", None)
        code = facts.get("code") if isinstance(facts, dict) else None
        await self._refused(what, {"code": code or _code_in(str(error)), "message": repr(error)})

    # Runs

    async def _run(self, http: httpx2.AsyncClient, name: str) -> None:
        body = await self.ask(http, "POST", "/api/messages", {"text": f"job {name}"})
        if body is not None:
            self.seen.runs[body["run"]["id"]] = name
            await self._follow(http, body["run"]["id"])

    async def _follow(self, http: httpx2.AsyncClient, run: str) -> None:
        """Its events, each once, in order and whole, however often the stream is begun again."""
        last, is_finished, limit = 0, False, time.monotonic() + patient(SETTLED_WITHIN)
        words: dict[int, str] = {}
        while not is_finished and time.monotonic() < limit:
            self.seen.requests["streams"] += 1
            try:
                async with http.stream(
                    "GET", f"/api/runs/{run}/events", headers={"Last-Event-ID": str(last)} if last else {}
                ) as answer:
                    if answer.status_code == 204:
                        return
                    if answer.status_code != 200:
                        await self._refused(f"the stream of {run}", json.loads(await answer.aread()))
                        continue
                    async for line in answer.aiter_lines():
                        if line.startswith("id: "):
                            number = int(line.removeprefix("id: "))
                            if number <= last:
                                self._fail(f"{run}: event {number} after {last}")
                            last = number
                        elif line.startswith("data: "):
                            _add_words(words, json.loads(line.removeprefix("data: ")))
                        is_finished |= line == "event: run.finished"
            except httpx2.HTTPError as error:
                if not isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError):
                    self._fail(f"the stream of {run}: {type(error).__name__}: {error}")
            self.seen.streams_again += not is_finished
        if not is_finished:
            self._fail(f"{run} was not told to be finished: {last} events")
        else:
            self.seen.heard[run] = words[max(words)] if words else ""

    async def probe(self, node: ServiceNode) -> "Probe":
        """A message posted at this very node, whoever is ready; one that is accepted must come to its end."""
        name = f"{self._name}-{next(self._numbers)}"
        self.seen.requests["probes"] += 1
        began = time.monotonic()
        async with httpx2.AsyncClient(headers=AS_OPERATOR, timeout=patient(60)) as http:
            ready = (await http.get(f"{node.url}/ready")).status_code
            answer = await http.post(f"{node.url}/api/messages", json={"text": f"job {name}"})
        facts = answer.json()
        code = str(facts.get("code"))
        if answer.status_code < 300:
            self.seen.runs[facts["run"]["id"]] = name
        elif code in _LATER:
            self.seen.refused[code] += 1
        else:
            self._fail(f"a message during the fault: {answer.status_code} {facts}")
        is_served = ready == 200 and answer.status_code < 300
        return Probe(is_served, time.monotonic() - began)

    @property
    def calls(self) -> int:
        """Those that clients made by themselves."""
        return sum(self.seen.requests[kind] for kind in ("POST call", "mcp legacy", "mcp auto"))

    # What must hold

    async def settle(self) -> None:
        """Every run that was accepted comes to its end."""
        self.may_refuse = True
        async with client(self._installation.balancer) as http:
            left, limit = set(self.seen.runs), time.monotonic() + patient(SETTLED_WITHIN)
            while left and time.monotonic() < limit:
                for run in sorted(left):
                    body = await self.ask(http, "GET", f"/api/runs/{run}")
                    if body is not None and body["run"]["status"] in _ENDS:
                        left.discard(run)
                        self.seen.ended[body["run"]["status"]] += 1
                        self._look_at_answer(run, body["run"])
                await asyncio.sleep(0.1)
            self.seen.failed += [f"stuck: {run} ({self.seen.runs[run]})" for run in left]

    def _look_at_answer(self, run: str, facts: Mapping[str, Any]) -> None:
        answer, name = str(facts.get("answer") or ""), self.seen.runs[run]
        if run in self.seen.heard and self.seen.heard[run] != answer:
            self.seen.failed.append(f"{run} ({name}): heard {self.seen.heard[run]!r}, not {answer!r}"[:400])
        if facts["status"] != "done":
            self.seen.failed.append(f"{run} ({name}) ended as {facts['status']}: {facts.get('error')}")
        elif "not known whether" in answer or ("uncertain" in answer and self._installation.has_starved()):
            self.seen.uncertain += 1
        elif "error" in answer:
            self.seen.failed.append(f"{run} ({name}): {answer}"[:400])
        else:
            self.seen.sent |= {f"{name} far": "done", f"{name} near": "done"}

    def faults(self) -> list[str]:
        """What went wrong; nothing is how it must be."""
        lines = self._installation.effects()
        told = list(self.seen.failed)
        told += [f"{text} was made {times} times" for text, times in lines.items() if times > 1]
        for text, ended in self.seen.sent.items():
            if ended == "done" and not lines[text]:
                told.append(f"{text} was done and is not there")
            if ended in _LATER and lines[text]:
                told.append(f"{text} was refused ({ended}) and was made")
        return told


def _add_words(words: dict[int, str], event: Mapping[str, Any]) -> None:
    turn = event["data"].get("turn", 0)
    if event["kind"] == "text":
        words[turn] = words.get(turn, "") + event["data"]["delta"]
    elif event["kind"] == "text.discarded":
        for void in [one for one in words if one >= turn]:
            del words[void]


def _code_in(text: str) -> str:
    return next((code for code in (*_LATER, "uncertain") if code in text), "")


class Installation:
    """`forks` are what nodes are started from, unless others are named, `shared` the settings of all.

    `ways` are those of each node to NATS, where there is one server of it.
    """

    def __init__(
        self,
        folder: Path,
        nodes: list[ServiceNode],
        balancer: Balancer,
        forks: Forks,
        shared: Mapping[str, str],
        nats: list[NatsServer],
        ways: list[TcpProxy],
    ) -> None:
        self.folder = folder
        self.nats = nats
        self.ways = ways
        self.nodes = nodes
        self.balancer = balancer
        self.forks = forks
        self.shared = shared

    async def roll(self, forks: Forks | None = None) -> None:
        """Every node is stopped and started again, one after the other, as a deploy does."""
        for node in self.nodes:
            await node.stop()
            await node.start(forks or self.forks)
            await self.balancer.all_ready()

    async def prepare(self, far: str) -> None:
        near = stdio("--journal", str(self.folder / "near"), "--answer-after", str(ANSWER_AFTER))
        quick = {"approval": "never", "request_timeout": patient(30), "isolation": "shared"}
        async with client(self.balancer) as http:
            for facts in ({"name": "far", "url": far}, {"name": "near", **near}, {"name": "asked", **near}):
                given: dict[str, Any] = {**facts, **quick}
                answer = await http.post("/api/connectors", json=given)
                while unknown := _NO_FIELD.search(answer.text):  # the version before had fewer settings
                    del given[unknown[1]]
                    answer = await http.post("/api/connectors", json=given)
                assert answer.status_code < 300, answer.text
            for node in self.nodes:
                await until(lambda node=node: _finds(node, "mcp_asked_send"), 20)
            answer = await http.patch("/api/tools/mcp_asked_send", json={"approval": "always"})
            assert answer.status_code < 300, answer.text
        for node in self.nodes:
            await until(lambda node=node: _finds(node, "mcp_asked_send", approval="always"), 20)

    def has_starved(self) -> bool:
        """Whether a node lost its lease though nobody took it: the machine was too busy. Then what was under
        way at its servers is uncertain, as it must be.
        """
        return any("places.lost" in node.log.read_text() for node in self.nodes)

    def failures(self) -> list[str]:
        """What nodes wrote down where they failed: what stands around each error in their logs."""
        found: list[str] = []
        for number, node in enumerate(self.nodes):
            lines = node.log.read_text().splitlines()
            marks = [at for at, line in enumerate(lines) if "Traceback (most" in line or "internal" in line]
            found += [f"node {number}: " + "\n".join(lines[max(0, at - 3) : at + 40]) for at in marks[:3]]
        return found

    def effects(self) -> Counter[str]:
        return Counter(line for name in ("near", "far") for line in journal(self.folder / name))

    # An approval that is asked, and answered much later

    async def asked(self, name: str) -> tuple[str, str]:
        """A run that waits for a yes; its id and the approval's."""
        async with client(self.balancer) as http, deadline(30):
            run = (await http.post("/api/messages", json={"text": f"ask {name}"})).json()["run"]["id"]
            while True:
                found = (await http.get("/api/approvals")).json()["approvals"]
                for one in found:
                    if f"{name} near" in json.dumps(one):
                        return run, one["id"]
                await asyncio.sleep(0.05)

    async def said_yes(self, run: str, approval: str) -> str:
        """How the run ended."""
        async with client(self.balancer) as http, deadline(30):
            answer = await http.post(f"/api/approvals/{approval}/answer", json={"answer": "once"})
            assert answer.status_code == 200, answer.text
            while True:
                status = (await http.get(f"/api/runs/{run}")).json()["run"]["status"]
                if status in _ENDS:
                    return status
                await asyncio.sleep(0.05)


async def _finds(node: ServiceNode, tool: str, **facts: str) -> bool:
    async with httpx2.AsyncClient(headers=AS_OPERATOR) as http:
        answer = await http.get(f"{node.url}/api/tools/{tool}")
        return answer.status_code == 200 and facts.items() <= answer.json().items()


@asynccontextmanager
async def open_installation(
    folder: Path,
    database: str,
    *,
    python: str | None = None,
    clock: Mapping[str, str] | None = None,
    has_three_nats: bool = False,
) -> AsyncGenerator[Installation]:
    """Three nodes; `python` is that of another version, `clock` what makes the clock of one wrong."""
    folder.mkdir(exist_ok=True)
    async with AsyncExitStack() as stack:
        far = stack.enter_context(
            HttpProcess(folder, "--journal", str(folder / "far"), "--answer-after", str(ANSWER_AFTER))
        )
        model = await stack.enter_async_context(open_scripted_openai(script))
        nats = three_servers(folder) if has_three_nats else [NatsServer(folder / "nats")]
        for server in nats:
            await stack.enter_async_context(server)
        shared = {
            "DRAGOMAN_DATABASE_URL": database,
            "DRAGOMAN_CLUSTER_URL": ",".join(server.url for server in nats),
            "DRAGOMAN_MODEL": "openai-chat:scripted",
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": model.base_url,
        }
        words = {} if python is None else {"python": python}
        forks = stack.enter_context(Forks(folder / "forks.log", shared, **words))
        ways: list[TcpProxy] = []
        if not has_three_nats:
            port = int(nats[0].url.rpartition(":")[2])
            ways = [await stack.enter_async_context(TcpProxy(port)) for _ in range(3)]
        own = [{"DRAGOMAN_CLUSTER_URL": f"nats://127.0.0.1:{way.port}"} for way in ways] or [{}] * 3
        nodes = [ServiceNode(folder / f"node{number}", own[number]) for number in range(3)]
        for node in nodes[:-1]:
            await node.start(forks)
            stack.callback(node.kill)
        last = forks
        if clock is not None:
            last = stack.enter_context(Forks(folder / "clock.log", {**shared, **clock}))
        await nodes[-1].start(last)
        stack.callback(nodes[-1].kill)
        balancer = await stack.enter_async_context(Balancer(nodes))
        await balancer.all_ready()
        installation = Installation(folder, nodes, balancer, forks, shared, nats, ways)
        await installation.prepare(far.url)
        yield installation


def summary(load: Load) -> dict[str, Any]:
    seen = load.seen
    return {
        "requests": dict(seen.requests),
        "refused": dict(seen.refused),
        "runs": dict(seen.ended),
        "uncertain": seen.uncertain,
        "sent": dict(Counter(seen.sent.values())),
        "streams begun again": seen.streams_again,
        "slowest, s": round(seen.slowest, 2),
    }
