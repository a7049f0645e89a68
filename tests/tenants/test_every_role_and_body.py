"""Every operation of the REST door × roles × shapes of body: nobody reaches beyond their role by any field.

Made from the OpenAPI document, so that what is added later is tried as well. Two workspaces are furnished
alike; people of the first try everything with the ids of both. Whatever happened is then read from the rows
of the store: who may change what is a rule about rows, and needs no list of operations.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asgi
import pytest
from generated import Generator, Operation, Shape
from planted_leaks import a_field_more_is_taken, any_workspace_is_ones_own, no_role_is_asked_for
from population import MARK, Tenant, Town, open_town
from visits import LEFT_OUT

from dragoman.server import build_app
from dragoman.web.guard import Guard
from dragoman.web.scopes import OPEN_PATHS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.slow]
SEED = 20261117
Row = tuple[str, tuple[tuple[str, Any], ...]]
# Kept of a workspace as a whole; a row says no user, and each of them leaves something there by calling.
COMMON = {
    "audit_heads",
    "connector_metrics",
    "usage",
    "leases",
    "run_steps",
    "run_events",
    "agent_numbers",
    "changes",
}
# Aliases for other people's clients, which send more than we know.
TOLERANT = {"/agents/assign-action-server", "/agents/remove-action-server"}
# They hold the words of their own people, who may have named the ids of others.
RECORDS = {"/api/audit", "/api/audit/export", "/api/calls", "/api/me/export", "/api/users/{user}/export"}
CLOCKS = {"last_used_at", "lease_until"}  # columns that go on by themselves
FAULTS_OF_SERVERS = (502, 503, 504)
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
MADE = "made"  # with a number: a name that is taken would be refused before anybody's rights are looked at


class Place:
    """The app without sockets, and the rows behind it."""

    def __init__(self, town: Town, app: Guard, home: Path) -> None:
        self.town = town
        self._app = app
        self._file = home / "dragoman.db"
        ours, theirs = town.tenants[:2], town.tenants[2:]
        self.admin, self.member = ours
        self.theirs = theirs

    async def ask(self, token: str, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return await asgi.request(self._app, method, path, body, headers)

    async def rows(self) -> set[Row]:
        """With what is written a moment later."""
        await self.town.live.hub.calls(1)
        await self.town.live.hub.audit.list(limit=1)
        with closing(sqlite3.connect(self._file)) as database:
            database.row_factory = sqlite3.Row
            names = [name for (name,) in database.execute(TABLES)]
            found = {
                name: [dict(row) for row in database.execute(f'SELECT * FROM "{name}"')] for name in names
            }
        # What users set for themselves stands in the row that is the admin's.
        found["preferences"] = [
            {"workspace": one["workspace"], "user": one["id"], "preferences": one.pop("preferences")}
            for one in found["users"]
        ]
        return {
            (name, tuple((key, value) for key, value in row.items() if key not in CLOCKS))
            for name, rows in found.items()
            for row in rows
        }


@asynccontextmanager
async def furnished(home: Path) -> AsyncGenerator[Place]:
    async with open_town(home, SEED, workspaces=2, users=2) as town:
        yield Place(town, build_app(town.live.hub, town.live.doors), home)


# What is put into requests


def values_of(tenant: Tenant, upstream: str) -> Callable[[str], Any]:
    """Fields that say whose thing it is get this tenant's; those that lead somewhere stay on this machine."""
    ids = tenant.ids

    def value(name: str) -> Any:
        known: dict[str, Any] = {
            "workspace": tenant.workspace,
            "workspaces": [tenant.workspace],
            "user": tenant.user,
            "users": [tenant.user],
            "thread": ids["thread"][0],
            "run": ids["run"][0],
            "connectors": [ids["connector"][0], "own"],
            "connector_id": ids["connector"][0],
            "server_name": "own",
            "agent": "helper",
            "agent_name": "helper",
            "tool": "mcp_own_whoami",
            "tools": ["mcp_own_whoami"],
            "url": upstream,
            "server": upstream,
            "openapi": f"{upstream}/none.json",
            "command": "/bin/false",
            "connect": False,
            "name": MADE,
            "id": MADE,
            "model": "repeat",
            "fallbacks": ["repeat"],
            "code": "1",
            "files": [{"text": '{"mcpServers": {"made": {"url": "http://127.0.0.1:9/mcp"}}}'}],
            "scopes": ["read"],
            "timeout": 5.0,
            "role": "admin",
            "text": "hello",
            "query": "hello",
            "prompt": "hello",
        }
        return known.get(name)

    return value


def path_of(operation: Operation, tenant: Tenant) -> str:
    ids, path = tenant.ids, operation.path
    for name in operation.parameters:
        kind = {"slug": "connector", "name": "agent"}.get(name, name)
        given = (ids.get(kind) or ["missing"])[0]
        if name == "name" and "/tools" in path:
            given = "mcp_own_whoami"
        path = path.replace(f"{{{name}}}", quote(given, safe=""))
    return path


def is_left_out(operation: Operation) -> bool:
    return (operation.method, operation.path) in LEFT_OUT


class Attempts:
    """Everything that one credential tries, and what is wrong with the answers."""

    _numbers = count()

    def __init__(self, place: Place, document: Any) -> None:
        self._place = place
        self._document = document
        self.wrong: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.asked = 0

    async def make(
        self, token: str, who: Tenant | None, targets: list[Tenant], *, spare: bool = True, below: str = "/"
    ) -> None:
        """`who` sees what; None is the operator. `spare` leaves alone what the others need to go on."""
        generator = Generator(self._document, SEED)
        for operation in generator.operations():
            if is_left_out(operation) or not operation.path.startswith(below):
                continue
            for target in targets:
                removes = operation.method == "DELETE" or operation.path.endswith("/erase")
                if spare and removes and target in (who, None):
                    continue
                value = values_of(target, self._place.town.upstream.url)
                path = path_of(operation, target)
                for shape in generator.shapes(operation, value):
                    await self._try(token, who, operation, path, shape)

    async def _try(
        self, token: str, who: Tenant | None, operation: Operation, path: str, shape: Shape
    ) -> None:
        numbered = f"{MADE}{next(self._numbers)}"
        body = shape.body and {
            name: numbered if value == MADE else value for name, value in shape.body.items()
        }
        status, said = await self._place.ask(token, operation.method, path, body)
        self.asked += 1
        self.statuses[status] += 1
        what = f"{operation.method} {path} {shape.name} {json.dumps(body)[:300]} → {status}"
        if status >= 500 and status not in FAULTS_OF_SERVERS:
            self.wrong.append(f"a fault of ours: {what} {said[-300:]!r}")
        is_tolerant = operation.path in TOLERANT and shape.name == "one field too many"
        if shape.is_wrong and status < 400 and not is_tolerant:
            self.wrong.append(f"a wrong body was taken: {what}")
        if who is not None:
            text = said.decode("utf-8", "replace")
            seen = {mark for mark in MARK.findall(text) if not who.may_see(mark)}
            beyond = [one for one in self._place.theirs if one.workspace != who.workspace]
            known = {one for tenant in beyond for kind in tenant.ids.values() for one in kind if "_" in one}
            if operation.path not in RECORDS:
                seen |= {one for one in known if one in text and one not in what}
            if seen:
                self.wrong.append(f"another's was seen: {what} {seen}")


# What rows may change by whom


def beyond_member(place: Place, rows: set[Row]) -> Callable[[str, dict[str, Any]], bool]:
    user = place.member.user
    connectors = [dict(row) for table, row in rows if table == "connectors"]
    own = {row["id"] for row in connectors if row["owner"] == user}

    def is_beyond(table: str, row: dict[str, Any]) -> bool:
        if row.get("workspace") != place.member.workspace:
            return True
        if row.get("connector_id") in own or table in COMMON:
            return False
        return row.get("user", row.get("owner")) != user

    return is_beyond


def beyond_admin(place: Place, rows: set[Row]) -> Callable[[str, dict[str, Any]], bool]:
    def is_beyond(table: str, row: dict[str, Any]) -> bool:
        where = row.get("id") if table == "workspaces" else row.get("workspace")
        return where != place.admin.workspace

    return is_beyond


def beyond_reading(place: Place, rows: set[Row]) -> Callable[[str, dict[str, Any]], bool]:
    """That somebody had their data is told in the audit trail; nothing else comes of reading."""
    return lambda table, row: (
        (table, row.get("action")) != ("audit", "user.exported") and table != "audit_heads"
    )


async def changed_beyond(place: Place, before: set[Row], role: Callable[..., Any]) -> list[str]:
    """Rows that are not as they were, and are none of the role's business."""
    now = await place.rows()
    is_beyond = role(place, before | now)
    return [
        f"{'gone or changed' if row in before else 'added'}: {row[0]} {dict(row[1])}"[:400]
        for row in now ^ before
        if is_beyond(row[0], dict(row[1]))
    ]


async def test_no_role_reaches_beyond_itself_by_any_operation_or_field(tmp_path: Path) -> None:
    async with furnished(tmp_path) as place:
        town = place.town
        document = (await town.live.ask("GET", "/api/openapi.json")).value
        tried = Attempts(place, document)
        tenants = [place.member, place.admin, place.theirs[0], place.theirs[1]]

        # Nobody: everything but the open paths is closed.
        nobody = Attempts(place, document)
        await nobody.make("", place.member, [place.theirs[0]], spare=False)
        opened = {path for path in OPEN_PATHS if path in document["paths"]}
        assert set(nobody.statuses) <= {200, 400, 401, 404, 302, 303, 422}
        assert nobody.statuses[401] >= nobody.asked - len(opened)
        assert nobody.wrong == []

        # A key that only reads, of an admin: nothing is changed by it.
        wish = {"name": "reads", "user": place.admin.user, "workspace": place.admin.workspace}
        reading = (await town.live.ask("POST", "/api/keys", {**wish, "scopes": ["read"]})).value
        before = await place.rows()
        reads = Attempts(place, document)
        await reads.make(reading["key"], place.admin, tenants, spare=False)
        assert reads.wrong == []
        assert await changed_beyond(place, before, beyond_reading) == []
        assert reads.statuses[200] > 30
        assert reads.statuses[403] > 300

        # A member: only rows of their own.
        before = await place.rows()
        await tried.make(place.member.key, place.member, tenants)
        assert tried.wrong == []
        assert await changed_beyond(place, before, beyond_member) == []
        await town.furnish(place.member)

        # An admin: only rows of their workspace.
        before = await place.rows()
        await tried.make(place.admin.key, place.admin, tenants)
        assert tried.wrong == []
        assert await changed_beyond(place, before, beyond_admin) == []

        # The operator may do everything, but nothing that cannot be read.
        await tried.make(town.live.token, None, [place.admin])
        assert tried.wrong == []
        assert tried.asked > 3000
        assert tried.statuses[200] + tried.statuses[201] > 300


# Whether all of this would find a right that is forgotten


async def test_a_right_that_is_forgotten_is_found(tmp_path: Path) -> None:
    async with furnished(tmp_path) as place:
        document = (await place.town.live.ask("GET", "/api/openapi.json")).value

        async def found(who: Tenant, role: Callable[..., Any], below: str) -> list[str]:
            before, tried = await place.rows(), Attempts(place, document)
            await tried.make(who.key, who, [who, place.theirs[0]], below=below)
            return [*tried.wrong, *await changed_beyond(place, before, role)]

        for plant, who, role, below in (
            (no_role_is_asked_for, place.member, beyond_member, "/api/agents"),
            (a_field_more_is_taken, place.member, beyond_member, "/api/call"),
            (any_workspace_is_ones_own, place.admin, beyond_admin, "/api/workspaces"),
        ):
            with plant():
                assert await found(who, role, below), plant.__name__
            assert await found(who, role, below) == []
