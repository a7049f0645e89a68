"""Which module answers what at the REST door: the one table, in the order in which routes are tried.

A group of routes is what may be asked for at one place; it is loaded with the first request for it
(`operations_app`). The whole table is the OpenAPI document.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Routes of one module. `places`: how their paths begin, see `place_of`."""

    module: str
    places: tuple[str, ...]
    name: str = "routes"


PARTS = (
    Part("connectors", ("api/connectors",)),
    Part("search", ("api/tools",)),
    Part("tool_loading", ("api/tools",)),
    Part("tools", ("api/tools",)),
    Part("bundles", ("api/bundles",)),
    Part("bundle_openapi", ("openapi",)),
    Part("resources", ("api/resources", "api/prompts")),
    Part("operations", ("api/calls", "api/results", "api/events")),
    Part("operations", ("metrics", "health", "ready"), "probes"),
    Part("imports", ("api/import", "api/export")),
    Part("discovery", ("api/discover",)),
    Part("discovery", ("action-servers",), "aliases"),
    Part("people", ("api/me", "api/workspaces", "api/users", "api/keys", "api/clients")),
    Part("threads", ("api/threads", "api/starters", "api/preferences")),
    Part("approvals", ("api/approvals",)),
    Part("credentials", ("api/credentials", "oauth")),
    Part("usage", ("api/usage",)),
    Part("metrics", ("api/metrics",)),
    Part("hooks", ("api/hooks",)),
    Part("audit", ("api/audit",)),
    Part("code", ("api/code",)),
    Part("messages", ("api/threads", "api/messages")),
    Part("runs", ("api/runs", "api/threads")),
    Part("questions", ("api/questions",)),
    Part("agents", ("api/agents",)),
    Part("queries", ("api/connectors", "api/query_mcp_connector")),
    Part("recipes", ("api/recipes",)),
    Part("models", ("api/models",)),
    Part("rollout", ("api/rollout",)),
    Part("cluster", ("api/cluster",)),
    Part("client_login", (".well-known", "oauth")),
    Part("agents", ("agents",), "aliases"),
)


_AT = {place: tuple(part for part in PARTS if place in part.places) for one in PARTS for place in one.places}


def place_of(path: str) -> str:
    """The first word of a path, or the first two below `/api`: no route has a parameter there."""
    _, *words = path.split("/", 3)
    return "/".join(words[: 2 if words[:1] == ["api"] else 1])


def parts_at(place: str) -> tuple[Part, ...]:
    """All whose routes may be asked for there."""
    return _AT.get(place, ())
