"""Which addresses are the console's, and what its menu leads to. Knows no page: none is loaded by this."""

from dataclasses import dataclass

AUTHORIZE = "/oauth/authorize"


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One entry of the menu. `of_clusters`: for who runs several processes; `of_admins`: of many users;
    `of_followers`: where namespaces of a registry are followed.
    """

    path: str
    title: str
    icon: str
    group: str = ""
    of_clusters: bool = False
    of_admins: bool = False
    of_followers: bool = False


PLACES = (
    MenuEntry("/", "Overview", "home"),
    MenuEntry("/chat", "Chat", "chat"),
    MenuEntry("/runs", "Runs", "steps"),
    MenuEntry("/approvals", "Approvals", "check"),
    MenuEntry("/connectors", "Connectors", "plug", "Build"),
    MenuEntry("/tools", "Tools", "tool", "Build"),
    MenuEntry("/bundles", "Bundles", "clip", "Build"),
    MenuEntry("/hooks", "Hooks", "tick", "Build"),
    MenuEntry("/code", "Code", "code", "Build"),
    MenuEntry("/agents", "Agents", "robot", "Build"),
    MenuEntry("/recipes", "Recipes", "book", "Build"),
    MenuEntry("/charts", "Metrics", "chart", "Watch"),
    MenuEntry("/log", "Live log", "pulse", "Watch"),
    MenuEntry("/audit", "Audit", "list", "Watch"),
    MenuEntry("/cluster", "Nodes", "nodes", "Watch", of_clusters=True),
    MenuEntry("/registry", "Registry", "book", "Manage", of_followers=True),
    MenuEntry("/users", "Users", "users", "Manage", of_admins=True),
    MenuEntry("/credentials", "Credentials", "key", "Manage"),
    MenuEntry("/keys", "API keys", "lock", "Manage"),
    MenuEntry("/clients", "Clients", "link", "Manage"),
    MenuEntry("/transfer", "Import/export", "swap", "Manage"),
    MenuEntry("/settings", "Settings", "sliders", "Manage"),
)
_FIRST = frozenset(place.path.strip("/").split("/")[0] for place in PLACES) | {
    "sign-in",
    "sign-out",
    "switch",
    "static",
    "palette",
}
# Aliases of the REST door that people used before; see `api.agents` and `api.discovery`.
_NOT_OURS = frozenset({"/agents/assign-action-server", "/agents/remove-action-server"})


def is_console_path(path: str) -> bool:
    if path == AUTHORIZE:
        return True
    return path not in _NOT_OURS and path.strip("/").split("/")[0] in _FIRST
