"""Twenty tenants in one installation, each with things of every kind that carry a mark of their own."""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model import make_model
from upstream import Upstream, open_upstream

from api.live import Live, Reply, open_service
from cluster.nats_server import NatsServer
from cluster.nodes import KEY

MARK = re.compile(r"(?:private|common)mark\d+q[0-9a-f]+q")
ID = re.compile(r"\b(?:wsp|usr|key|con|thr|run|apr|qst|recipe|shared)_[0-9a-f]{16,20}\b|\bresult_[\w-]{24}")
SCOPES = ["read", "call", "manage", "approve", "admin"]


@dataclass
class Tenant:
    """`private` may be seen by this user alone, `common` by everybody of the workspace."""

    number: int
    workspace: str
    user: str
    role: str
    key: str
    private: str
    common: str
    ids: dict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))

    @property
    def token(self) -> str:
        """What the upstream knows them by. Not the mark: what is brought is taken out of results."""
        return self.private[::-1]

    def may_see(self, mark: str) -> bool:
        return mark in (self.private, self.common)


class Town:
    """Where there are several `nodes`, people move in at the first, and ask and hear at all of them."""

    def __init__(self, nodes: Sequence[Live], upstream: Upstream, seed: int) -> None:
        self.nodes = nodes
        self.live = nodes[0]
        self.upstream = upstream
        self.random = random.Random(seed)
        self.tenants: list[Tenant] = []
        self._owners: dict[str, Tenant] = {}

    def owner_of(self, word: str) -> Tenant | None:
        """Of an id. Who is gone has left it to nobody else."""
        return self._owners.get(word)

    @property
    def marks(self) -> list[str]:
        return sorted({mark for tenant in self.tenants for mark in (tenant.private, tenant.common)})

    def ids(self, kind: str) -> list[str]:
        return [one for tenant in self.tenants for one in tenant.ids[kind]]

    async def settle(self, workspaces: int, users: int) -> None:
        for number in range(workspaces):
            common = f"commonmark{number}q{self.random.getrandbits(40):x}q"
            workspace = (await self._operator("POST", "/api/workspaces", {"name": common}))["id"]
            await self._operator("PATCH", f"/api/workspaces/{workspace}", {"recipes": True})
            for member in range(users):
                await self._move_in(workspace, common, member)
        # Admins first: what they share is there when the others bring their credentials for it.
        for role in ("admin", "member"):
            await asyncio.gather(*(self.furnish(one) for one in self.tenants if one.role == role))

    async def _move_in(self, workspace: str, common: str, member: int) -> None:
        number = len(self.tenants)
        role = "admin" if member == 0 else "member"
        body = {"name": f"{common}-user{member}", "role": role, "workspace": workspace}
        user = (await self._operator("POST", "/api/users", body))["id"]
        wish = {"name": f"{common}-key", "user": user, "workspace": workspace, "scopes": SCOPES}
        key = await self._operator("POST", "/api/keys", wish)
        tenant = Tenant(
            number=number,
            workspace=workspace,
            user=user,
            role=role,
            key=key["key"],
            private=f"privatemark{number}q{self.random.getrandbits(40):x}q",
            common=common,
        )
        tenant.ids["workspace"].append(workspace)
        tenant.ids["user"].append(user)
        tenant.ids["key"].append(key["id"])
        self.tenants.append(tenant)

    async def furnish(self, tenant: Tenant) -> None:
        """A connector of their own under the name that all use, a thread, a question, a kept result."""
        facts = {"description": tenant.private, "bearer": tenant.token, "url": self.upstream.url}
        facts |= {"max_result_bytes": 4096}  # the rest of a longer one is kept
        own = await self.ask(tenant, "POST", "/api/connectors", {"name": "own", **facts})
        if own.status == 201:
            tenant.ids["connector"].append(own.value["id"])
        if tenant.role == "admin":
            team = {"name": "team", "shared": True, "url": self.upstream.url, "personal": ["auth"]}
            team |= {"auth": {"kind": "bearer"}, "description": tenant.common}
            shared = await self.ask(tenant, "POST", "/api/connectors", team)
            if shared.status == 201:
                tenant.ids["connector"].append(shared.value["id"])
        bundle = {"name": "mine", "description": tenant.private, "tools": ["own"]}
        await self.ask(tenant, "POST", "/api/bundles", bundle)
        if tenant.role == "admin":
            bundle = {"name": "ours", "description": tenant.common, "tools": ["team"], "tier": "workspace"}
            await self.ask(tenant, "POST", "/api/bundles", bundle)
        await self.ask(tenant, "PUT", "/api/credentials/team", {"values": {"auth": tenant.token}})
        thread = await self.ask(tenant, "POST", "/api/threads", {"title": tenant.private})
        if thread.status == 201:
            tenant.ids["thread"].append(thread.value["id"])
        await self._leave_traces(tenant)
        await self._converse(tenant)
        await self._keep_recipes(tenant)
        self._owners |= {one: tenant for kind in tenant.ids.values() for one in kind}

    async def _leave_traces(self, tenant: Tenant) -> None:
        call = {"tool": "mcp_own_flood", "arguments": {"text": tenant.private}}
        flooded = await self.ask(tenant, "POST", "/api/call", call)
        if flooded.status == 200 and (handle := flooded.value["metadata"]["handle"]):
            tenant.ids["handle"].append(handle)
        # An agent asks: nobody answers in time, and the question stays.
        note = {"tool": "mcp_own_note", "arguments": {"text": tenant.common}, "agent": "helper"}
        await self.ask(tenant, "POST", "/api/call", note)
        waiting = await self.ask(tenant, "GET", "/api/approvals?status=pending")
        if waiting.status == 200:
            tenant.ids["approval"] = [one["id"] for one in waiting.value["approvals"]]

    async def _converse(self, tenant: Tenant) -> None:
        """A worker under the name that all use, a run with its answer, and one that waits for an answer."""
        worker = {"name": "helper", "description": tenant.private, "connectors": ["own"]}
        await self.ask(tenant, "POST", "/api/agents", worker)
        tenant.ids["agent"] = ["helper"]
        for text in (f"whoami {tenant.private}", f"ask me {tenant.private}"):
            said = await self.ask(tenant, "POST", "/api/messages?wait=true", {"text": text})
            if said.status in (200, 202):
                tenant.ids["run"].append(said.value["run"]["id"])
                tenant.ids["thread"].append(said.value["run"]["thread"])
        waiting = await self.ask(tenant, "GET", "/api/questions")
        if waiting.status == 200:
            tenant.ids["question"] = [one["id"] for one in waiting.value["questions"]]

    async def _keep_recipes(self, tenant: Tenant) -> None:
        """One of a run of their own connector's agent; what an admin shares of it is everybody's."""
        asked = {"text": f"@own whoami {tenant.private}"}
        said = await self.ask(tenant, "POST", "/api/messages?wait=true", asked)
        if said.status != 200:
            return
        kept = await self.ask(tenant, "POST", "/api/recipes", {"run": said.value["run"]["id"]})
        if kept.status != 200:
            return
        recipe = kept.value["recipes"][0]["id"]
        tenant.ids["recipe"].append(recipe)
        if tenant.role == "admin":
            words = {"question": tenant.common, "text": tenant.common}
            shared = await self.ask(tenant, "POST", f"/api/recipes/{recipe}/share", words)
            tenant.ids["recipe"].append(shared.value["id"])

    async def ask(self, tenant: Tenant, method: str, path: str, body: Any = None) -> Reply:
        return await self.live.ask(method, path, body, Authorization=f"Bearer {tenant.key}")

    async def _operator(self, method: str, path: str, body: Any) -> Any:
        reply = await self.live.ask(method, path, body)
        assert reply.status in (200, 201), (path, reply.status, reply.body)
        return reply.value


@asynccontextmanager
async def open_town(
    home: Path, seed: int, workspaces: int, users: int, nodes: int = 1, **settings: Any
) -> AsyncGenerator[Town]:
    """A service with so many tenants, their upstream, and a model that repeats what it is told.

    Several nodes are joined by NATS, and need a `database_url` of PostgreSQL.
    """
    settings |= {
        "multi_user": True,
        "allowed_networks": ("127.0.0.0/8",),
        "approval_wait": 0.05,
        "discovery": "off",
        "max_servers": 500,
        "model": "repeat",
    }
    async with open_upstream() as upstream, AsyncExitStack() as stack:
        homes = [home]
        if nodes > 1:
            nats = await stack.enter_async_context(NatsServer(home / "nats"))
            homes = [home / f"node{number}" for number in range(nodes)]
            settings |= {"key": KEY, "cluster_url": (nats.url,)}
        services = [await stack.enter_async_context(open_service(one, **settings)) for one in homes]
        for service in services:
            service.hub.models.register("repeat", make_model())
        town = Town(services, upstream, seed)
        await town.settle(workspaces, users)
        yield town
