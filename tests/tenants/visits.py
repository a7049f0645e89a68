"""Requests at random to every operation of the REST door, with names and ids of everybody.

Built from the OpenAPI document, so that an operation that is added later is visited as well.
"""

import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from population import Tenant, Town

TOOLS = ["mcp_own_whoami", "mcp_own_flood", "mcp_own_fail", "mcp_own_note", "mcp_team_whoami", "own__whoami"]
SLUGS = ["own", "team", "native", "missing"]
# Operations that never end, would end the visit, or reach outside of this machine.
LEFT_OUT = {
    ("GET", "/api/events"),
    ("GET", "/api/runs/{run}/events"),
    ("GET", "/api/threads/{thread}/events"),
    ("GET", "/api/resources/updates"),
    ("POST", "/api/credentials/rotate"),
}
# Costly ones are asked for less often: runs, and what is furnished again afterwards.
RARE_DELETE = 0.1
RARE = {
    "/api/messages": 0.1,
    "/api/threads/{thread}/messages": 0.3,
    "/api/connectors/{slug}/query": 0.3,
    "/api/query_mcp_connector": 0.3,
    "/api/tools/resolve": 0.5,
}
AGENTS = ["helper", "assistant", "own", "team", "missing"]


def likelihood(path: str) -> int:
    """What is found by an id is asked for most: tools and agents of all have the same names."""
    return 4 if "{" in path.replace("{name}", "") else 1


class Visits:
    def __init__(self, town: Town, document: Mapping[str, Any]) -> None:
        self._town = town
        self._random: random.Random = town.random
        self.operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if (method.upper(), path) not in LEFT_OUT
            for _ in range(likelihood(path))
        ]

    def next(self, visitor: Tenant) -> tuple[str, str, Any]:
        method, path, operation = self._random.choice(self.operations)
        removes = method == "DELETE" or path.endswith("/erase")
        if self._random.random() > (RARE_DELETE if removes else RARE.get(path, 1.0)):
            return self.next(visitor)
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                value = self.value(parameter["name"], path)
                if removes and value in _needed(self._town, visitor):
                    return self.next(visitor)
                path = _filled(path, parameter["name"], value)
        query = {
            parameter["name"]: self.value(parameter["name"], path)
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query" and self._random.random() < 0.5
        }
        body = self._body(path, visitor) if method in ("POST", "PUT", "PATCH") else None
        return method, f"{path}?{urlencode(query)}" if query else path, body

    def value(self, name: str, path: str) -> str:
        kinds = {"handle": "handle", "slug": "connector", "connector": "connector"}
        kinds |= {"user": "user", "workspace": "workspace", "thread": "thread"}
        kinds |= {"run": "run", "question": "question", "recipe": "recipe"}
        if name == "wait" and path.endswith("/messages"):
            return "false"  # a run may stand behind another that waits for its person
        if name in ("wait", "children"):
            return self._random.choice(["true", "false"])
        if name == "agent" or (name == "name" and "/agents" in path):
            return self._random.choice(AGENTS)
        if name in ("limit", "offset", "after"):
            return str(self._random.choice([1, 2, 50]))
        if name == "status":
            return self._random.choice(["pending", "approved", "refused", "all", "done", "waiting"])
        if name == "strategy":
            return self._random.choice(["hybrid", "bm25", "semantic", "regex"])
        if name == "q":
            return self._random.choice([*self._town.marks, "whoami", "note", ".*"])
        if name == "uri" or (name == "name" and "/prompts" in path):
            slug = self._random.choice(["own", "team", *self._town.ids("connector")])
            return f"{slug}+mark:///mine" if name == "uri" else f"{slug}__mine"
        if name == "bundle" or (name == "name" and "/bundles" in path):
            return self._random.choice(["mine", "ours", "missing"])
        if name == "tool" or (name == "name" and "/tools" in path):
            return self._random.choice(TOOLS)
        kind = kinds.get(name) or next(
            (one for one in ("thread", "approval", "user", "key", "workspace") if f"/{one}" in path),
            "connector",
        )
        known = [*self._town.ids(kind), *(SLUGS if kind == "connector" else [])]
        return self._random.choice(known or ["missing"])

    def form(self, visitor: Tenant) -> dict[str, str]:
        """What a page sends: fields that say whose thing it is, and those that many forms have."""
        pick, ids = self._random.choice, self._town.ids
        return {
            "text": "whoami",
            "prompt": "whoami",
            "answer": pick(["once", "no"]),
            "thread": pick([*ids("thread"), "t"]),
            "connectors": pick([*ids("connector"), *SLUGS]),
            "connector": pick([*ids("connector"), *SLUGS]),
            "user": pick(ids("user")),
            "workspace": pick(ids("workspace")),
            "auth": visitor.token,
            # All of the workspace see what an admin writes of what is theirs.
            "description": visitor.common if visitor.role == "admin" else visitor.private,
            "code": "await own.whoami()",
            "thumb": "1",
        }

    def _body(self, path: str, visitor: Tenant) -> Any:
        pick, ids = self._random.choice, self._town.ids
        thread = pick([*ids("thread"), "t"])
        if path.endswith("/call"):
            named = {} if "/tools/" in path else {"tool": pick(TOOLS)}
            return {
                **named,
                "arguments": {"text": "x"},
                **({"thread": thread} if pick([True, False]) else {}),
            }
        if (conversation := self._conversation(path, visitor)) is not None:
            return conversation
        if path.endswith("/complete"):
            slug = pick(["own", "team", *ids("connector")])
            named = (
                {"uri_template": f"{slug}+mark:///{{of}}"}
                if "/resources" in path
                else {"name": f"{slug}__mine"}
            )
            return {**named, "argument": "of", "value": "m"}
        if path.startswith("/api/prompts/"):
            return {"arguments": {}}
        if path.endswith(("/load", "/unload")):
            return {"thread": thread, "tools": [pick(TOOLS)]}
        if path.endswith("/resolve"):
            return {"prompt": pick([*self._town.marks, "whoami", "note"]), "thread": thread}
        choices: list[Any] = [
            {},
            {"answer": pick(["once", "always", "no"])},
            {"connectors": [pick([*ids("connector"), *SLUGS])]},
            {"title": visitor.private},
            {"name": f"n{self._random.getrandbits(16):x}", "user": pick(ids("user"))},
            {"name": "x", "workspace": pick(ids("workspace")), "role": "admin"},
            # All of the workspace see what an admin writes on a shared connector.
            {"description": visitor.common if visitor.role == "admin" else visitor.private, "connect": False},
            {"values": {"auth": visitor.token}},
            {"enabled": True, "cost": 0.01, "approval": "default"},
            {"code": "await own.whoami()", "thread": thread},
            {"limits": {"calls_per_hour": 100_000}},
            {
                "files": [{"text": '{"mcpServers": {"own": {"url": "http://127.0.0.1:9/mcp"}}}'}],
                "connect": False,
            },
        ]
        return pick(choices)

    def _conversation(self, path: str, visitor: Tenant) -> Any:
        """What is said to agents, to connectors and about them."""
        pick, ids = self._random.choice, self._town.ids
        connector = pick([*ids("connector"), *SLUGS])
        if path.endswith("/messages"):
            agent = {"agent": pick(AGENTS)} if pick([True, False]) else {}
            return {"text": pick(["whoami", f"@helper {visitor.private}", "ask me"]), **agent}
        if path.endswith("/query"):
            return {"query": "whoami", "max_tools": 3}
        if path.endswith("/query_mcp_connector"):
            return {"connector_id": connector, "query": "whoami"}
        if path.endswith("-action-server"):
            return {"agent_name": pick(AGENTS), "server_name": connector}
        if path == "/api/recipes":
            return {"run": pick(ids("run"))}
        if path.startswith("/api/recipes/"):
            # All of the workspace see what an admin shares.
            return {"text": visitor.common if visitor.role == "admin" else visitor.private}
        if path.startswith("/api/bundles"):
            named = {"name": f"b{self._random.getrandbits(16):x}"} if path == "/api/bundles" else {}
            # All of the workspace see what an admin writes in a bundle of theirs.
            text = visitor.common if visitor.role == "admin" else visitor.private
            return pick([{"description": text, **named}, {"tools": [pick([*SLUGS, *TOOLS])], **named}])
        if path.endswith("/thumb"):
            return {"thumb": pick([1, -1, 0])}
        if "/questions/" in path:
            return {"answer": visitor.private}
        if path.startswith("/api/agents"):
            is_shared = pick([True, False])
            named = {"name": f"a{self._random.getrandbits(16):x}", "shared": is_shared}
            # All of the workspace see what an admin makes for them.
            described = {"description": visitor.common if is_shared else visitor.private}
            return {**(named if path == "/api/agents" else {}), **described, "connectors": [connector]}
        return None


def _filled(path: str, name: str, value: str) -> str:
    for form in (f"{{{name}}}", f"{{{name}:path}}"):
        path = path.replace(form, quote(value, safe=""))
    return path


def _needed(town: Town, visitor: Tenant) -> set[str]:
    """What must stay, or somebody of the same workspace could ask no more."""
    neighbours = [tenant for tenant in town.tenants if tenant.workspace == visitor.workspace]
    return {one for tenant in neighbours for kind in ("key", "user", "workspace") for one in tenant.ids[kind]}
