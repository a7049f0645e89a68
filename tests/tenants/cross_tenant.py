"""Requests of many tenants with each other's names and ids: by REST, MCP, console and streams of events.

Whatever comes back, whatever happens meanwhile and whatever is kept in the end is searched for words that
only others may see. Used by the suite, and by `bench/tenants.py` a million times.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

import asgi
from population import ID, MARK, Tenant, Town
from sqlalchemy import select
from starlette.responses import Response
from visits import SLUGS, TOOLS, Visits, likelihood

from dragoman.console.app import ROUTES
from dragoman.console.sessions import COOKIE
from dragoman.events import Event
from dragoman.scope import Caller
from dragoman.server import build_app
from dragoman.store import tables
from dragoman.web.encoding import encode
from servers.hubs import runtime_of

DOORS = {"REST": 10, "MCP": 5, "console": 3, "events": 2}  # so many of twenty
WALKERS = 16
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "visitor", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_FAULTS_OF_SERVERS = (502, 503, 504)
_WORD = re.compile(f"{MARK.pattern}|{ID.pattern}")
# What an admin may read of those of their workspace: runs, and what led to an approval.
_OVERSEEN = re.compile(r"GET /(?:api/runs\b|runs\b|approvals\b)")
# Calls cost the most: a run, a result to keep, a question that nobody answers in time.
_MCP = {"tools/list": 6, "resources/list": 3, "prompts/list": 3, "session": 6, "tools/call": 4}
_CALLED = [*TOOLS, "mcp_own_whoami", "mcp_own_fail", *["mcp_team_whoami"] * 4]
_QUIET = 0.25  # what a stream tells at once has been told
# What our own people did is told with the ids that they tried.
_RECORDS = re.compile(r"/(api/)?(audit|calls|log)\b|event ")
_CALLS = re.compile(r"/(call|code|messages|query|query_mcp_connector|resolve|try)\b|^/chat")
# A form of the console would end the session, the tenant or the key; or it reaches outside of this machine.
_NO_FORMS = re.compile(r"sign-|/rotate|/transfer/offers|/remove$|/revoke$|^/keys|^/settings/workspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`leaves_after` is for answers that last."""

    door: str
    kind: str
    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    leaves_after: float | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.body}"


@dataclass
class Watch:
    """Looks at everything that a tenant was told, and counts."""

    town: Town
    leaks: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    """Of the service itself: nothing that anybody asks may be one."""
    own: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """How often a tenant saw what is theirs, by door."""
    requests: Counter[tuple[str, str, str, int]] = field(default_factory=Counter[tuple[str, str, str, int]])
    """By door, kind, whose ids they name, and status."""
    events: int = 0

    def count(self, by: Literal["door", "kind", "whose", "status"]) -> Counter[Any]:
        position = ("door", "kind", "whose", "status").index(by)
        found: Counter[Any] = Counter()
        for key, times in self.requests.items():
            found[key[position]] += times
        return found

    def look(self, tenant: Tenant, door: str, where: str, text: str | bytes) -> None:
        """`where` is what was asked: that may be repeated."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        for word in set(_WORD.findall(text)) - set(_WORD.findall(where)):
            if tenant.may_see(word):
                self.own[door, tenant.number] += 1
            elif _OVERSEEN.match(where) and self._is_led_by(tenant, word):
                continue
            elif MARK.fullmatch(word) or (self._is_beyond(tenant, word) and not _is_told_again(word, where)):
                self.leaks.append(f"{where}: {word} seen by tenant {tenant.number} ({tenant.role})")

    def answered(self, tenant: Tenant, request: Request, status: int, said: bytes) -> None:
        """Counts it. What names a thing of another workspace in its address must not succeed."""
        named = ID.findall(str(request))
        whose = "no id"
        if any(self._is_beyond(tenant, word) for word in named):
            whose = "another workspace's"
        elif named:
            is_own = all(self.town.owner_of(word) in (tenant, None) for word in named)
            whose = "their own" if is_own else "a neighbour's"
        self.requests[request.door, request.kind, whose, status] += 1
        if status >= 500 and status not in _FAULTS_OF_SERVERS:
            self.faults.append(f"{request} → {status} {said[-500:]!r}")
        # What is not there is an empty list to MCP, and to who asks a connector a result that says so.
        is_done = status < 300 and request.door != "MCP" and b"not_found" not in said
        address = request.path.partition("?")[0]
        if is_done and any(self._is_beyond(tenant, word) for word in ID.findall(address)):
            self.leaks.append(f"{request} → {status}: reached by tenant {tenant.number} ({tenant.role})")

    def _is_led_by(self, tenant: Tenant, mark: str) -> bool:
        """Whether it is of a member of the workspace that they are admin of: whose runs they may read."""
        members = (one for one in self.town.tenants if one.workspace == tenant.workspace)
        return tenant.role == "admin" and any(mark == one.private for one in members)

    def _is_beyond(self, tenant: Tenant, word: str) -> bool:
        owner = self.town.owner_of(word)
        return owner is not None and owner.workspace != tenant.workspace


def _is_told_again(word: str, where: str) -> bool:
    """An id that somebody of the workspace tried before. Names of threads are everybody's to choose."""
    return word.startswith("thr_") or _RECORDS.search(where) is not None


class CrossTenantRequests:
    """One town and its doors, whose people ask for each other's things at random. Each request goes to the
    next node.
    """

    def __init__(self, town: Town, watch: Watch, document: Any) -> None:
        self._town = town
        self._watch = watch
        self._visits = Visits(town, document)
        self._apps = cycle([build_app(node.hub, node.doors) for node in town.nodes])
        pages = [(method, route.path) for route in ROUTES for method in route.methods or ()]
        self._pages = {
            (method, path): likelihood(path)
            for method, path in pages
            if method == "GET" or (method == "POST" and not _NO_FORMS.search(path))
        }
        self._ways = {"REST": self._rest, "MCP": self._mcp, "console": self._page, "events": self._stream}
        self._cookies: dict[int, dict[str, str]] = {}
        self._sessions: dict[int, str] = {}

    @classmethod
    async def open(cls, town: Town, watch: Watch) -> "CrossTenantRequests":
        requests = cls(town, watch, (await town.live.ask("GET", "/api/openapi.json")).value)
        for tenant in town.tenants:
            await requests._sign_in(tenant)
            await requests._initialize(tenant)
        return requests

    async def _sign_in(self, tenant: Tenant) -> None:
        sessions, signed_in = self._town.live.doors.sessions, Response()
        await sessions.begin(signed_in, tenant.key)
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        session = await sessions._opened(cookie.removeprefix(f"{COOKIE}="))
        assert session is not None
        self._cookies[tenant.number] = {"cookie": cookie, "x-csrf-token": session.csrf}

    async def _initialize(self, tenant: Tenant) -> None:
        """A session of the era that had them."""
        info = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": META["io.modelcontextprotocol/clientInfo"],
        }
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
        headers = {"Authorization": f"Bearer {tenant.key}", "Accept": "application/json, text/event-stream"}
        reply = await self._town.live.ask("POST", "/mcp", message, **headers)
        self._sessions[tenant.number] = reply.headers["mcp-session-id"]

    async def make(self, count: int, *, until_leak: bool = False) -> int:
        """How many were sent: fewer where the first leak ends it."""
        sent = 0

        async def walk() -> None:
            nonlocal sent
            while sent < count and not (until_leak and self._watch.leaks):
                sent += 1
                await self._one()

        async with asyncio.TaskGroup() as walkers:
            for _ in range(WALKERS):
                walkers.create_task(walk())
        return sent

    def _rest(self, tenant: Tenant) -> Request:
        method, path, body = self._visits.next(tenant)
        headers = {"authorization": f"Bearer {tenant.key}"}
        kind = "read" if method == "GET" else "call" if _CALLS.search(path) else "change"
        return Request(door="REST", kind=kind, method=method, path=path, body=body, headers=headers)

    def _mcp(self, tenant: Tenant) -> Request:
        pick = self._town.random
        method = pick.choices([*_MCP], [*_MCP.values()])[0]
        headers = {"authorization": f"Bearer {tenant.key}", "accept": "application/json, text/event-stream"}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META}}
        connector = quote(pick.choice([*self._town.ids("connector"), *SLUGS]))
        where = pick.choice(["/mcp", f"/mcp/{connector}"])
        path = f"{where}?view=tools&thread={pick.choice([*self._town.ids('thread'), ''])}"
        kind = "call" if method == "tools/call" else "read"
        if method == "session":
            headers["mcp-session-id"] = self._sessions[pick.choice(self._town.tenants).number]
            message |= {"method": "tools/list", "params": {}}
            path, kind = "/mcp", "session"
        else:
            headers |= {"mcp-method": method, "mcp-protocol-version": MODERN}
        if method == "tools/call":
            name = pick.choice(_CALLED)
            message["params"] |= {"name": name, "arguments": {}}
            headers["mcp-name"] = name
        return Request(door="MCP", kind=kind, method="POST", path=path, body=message, headers=headers)

    def _page(self, tenant: Tenant) -> Request:
        method, path = self._town.random.choices([*self._pages], [*self._pages.values()])[0]
        lasts = method == "GET" and path.endswith("/events") and not path.startswith("/runs")
        for name in re.findall(r"{(\w+)(?::\w+)?}", path):
            value = "enable" if name == "action" else self._visits.value(name, path)
            path = re.sub(rf"{{{name}(:\w+)?}}", quote(value, safe=""), path, count=1)
        headers, form = dict(self._cookies[tenant.number]), None
        if method == "POST":
            headers["content-type"] = "application/x-www-form-urlencoded"
            form = urlencode(self._visits.form(tenant)).encode()
        return Request(
            door="console",
            kind="read" if method == "GET" else "call" if _CALLS.search(path) else "change",
            method=method,
            path=path,
            body=form,
            headers=headers,
            leaves_after=_QUIET if lasts else None,
        )

    def _stream(self, tenant: Tenant) -> Request:
        pick = self._town.random.choice
        kind = pick(["run", "thread"])
        one = pick([pick(self._town.ids(kind)), pick(self._town.ids(kind)), *tenant.ids[kind][-1:]])
        after = f"?after={(tenant.ids['run'] or ['run_0'])[0]}:0" if kind == "thread" else ""
        watched = f"/api/resources/updates?uri={quote(pick(['own', 'team']) + '+mark:///mine', safe='')}"
        return Request(
            door="events",
            kind="stream",
            method="GET",
            path=pick(["/api/events", watched, *[f"/api/{kind}s/{one}/events{after}"] * 3]),
            headers={"authorization": f"Bearer {tenant.key}"},
            leaves_after=_QUIET,
        )

    async def _one(self) -> None:
        pick = self._town.random
        tenant = pick.choice(self._town.tenants)
        await self._send(tenant, self._ways[pick.choices([*DOORS], [*DOORS.values()])[0]](tenant))

    async def look_at_own(self, tenant: Tenant) -> None:
        """What each door shows a tenant of their own: who sees nothing sees nothing of others either."""
        run, bearer = tenant.ids["run"][-2], {"authorization": f"Bearer {tenant.key}"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        modern = {"mcp-method": "tools/list", "mcp-protocol-version": MODERN, "accept": "application/json"}
        for request in (
            Request(door="REST", kind="read", method="GET", path="/api/connectors", headers=bearer),
            Request(
                door="MCP",
                kind="read",
                method="POST",
                path="/mcp?view=tools",
                body=message,
                headers=bearer | modern,
            ),
            Request(
                door="console",
                kind="read",
                method="GET",
                path="/connectors",
                headers=self._cookies[tenant.number],
            ),
            # It has ended, and so does its stream.
            Request(
                door="events", kind="stream", method="GET", path=f"/api/runs/{run}/events", headers=bearer
            ),
        ):
            await self._send(tenant, request)

    async def _send(self, tenant: Tenant, request: Request) -> None:
        try:
            status, said = await asgi.request(
                next(self._apps),
                request.method,
                request.path,
                request.body,
                request.headers,
                leaves_after=request.leaves_after,
            )
        except TimeoutError:
            self._watch.faults.append(f"{request}: no answer")
            return
        self._watch.answered(tenant, request, status, said)
        self._watch.look(tenant, request.door, f"{request} → {status}", said)
        session = request.headers.get("mcp-session-id", self._sessions[tenant.number])
        if status < 300 and session != self._sessions[tenant.number]:
            self._watch.leaks.append(f"tenant {tenant.number} spoke in another's session")
        if request.method == "DELETE" and status == 204:
            await self._town.furnish(tenant)


@asynccontextmanager
async def listening(town: Town, watch: Watch) -> AsyncGenerator[None]:
    """To the events of each tenant, all the while."""

    async def listen(tenant: Tenant) -> None:
        node = town.nodes[tenant.number % len(town.nodes)]
        hub = node.hub.acting_for(Caller(tenant.workspace, tenant.user))
        async with aclosing(cast("AsyncGenerator[Event]", hub.events())) as events:
            async for event in events:
                watch.events += 1
                watch.look(tenant, "library", f"event {event.kind}", encode(event))

    async with asyncio.TaskGroup() as listeners:
        tasks = [listeners.create_task(listen(tenant)) for tenant in town.tenants]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def look_at_rows(town: Town, watch: Watch) -> None:
    """What one workspace wrote stands in no row of another."""
    database: Any = cast("Any", runtime_of(town.live.hub).store.people)._database
    by_workspace: dict[str, set[str]] = {}
    for tenant in town.tenants:
        by_workspace.setdefault(tenant.workspace, set()).update((tenant.private, tenant.common))
    for table in tables.metadata.sorted_tables:
        if "workspace" not in table.c:
            continue
        for row in await database.rows(select(table)):
            marks = set(MARK.findall(str(dict(row))))
            # The operator's own workspace tells of all of them.
            if beyond := marks - by_workspace.get(row["workspace"], marks):
                watch.leaks.append(f"a row of {table.name} in {row['workspace']} has {beyond}")


async def find_planted(
    town: Town, leaks: Mapping[str, Callable[[Town], AbstractContextManager[None]]], most: int
) -> dict[str, int | None]:
    """After how many requests each is found, planted alone; None after `most` in vain."""
    found: dict[str, int | None] = {}
    for name, plant in leaks.items():
        watch = Watch(town)
        requests = await CrossTenantRequests.open(town, watch)
        with plant(town):
            async with listening(town, watch):
                sent = await requests.make(most, until_leak=True)
        found[name] = sent if watch.leaks else None
    return found
