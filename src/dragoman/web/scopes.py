"""Which scope of a key a request needs: one table from method and path. Pure; what is not in it is denied.

Whether the user may do it is the hub's to say: a scope narrows a key, it gives nobody a right.
"""

from dragoman.errors import Denied
from dragoman.people import KeyScope

SCOPES = "dragoman.scopes"  # where the guard leaves them in a request's scope
OPEN_PATHS = frozenset(
    {"/health", "/ready", "/oauth/callback", "/oauth/start", "/oauth/client.json"}
    | {"/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/jwks"}
)
_OPEN_BEGINNING = "/.well-known/"


def is_open(path: str) -> bool:
    """Whether it is answered without a credential."""
    return path in OPEN_PATHS or path.startswith(_OPEN_BEGINNING)


_READ = frozenset({"GET", "HEAD"})
_CHANGE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ANY = _READ | _CHANGE
_POST = frozenset({"POST"})

# The first line that fits counts: methods, how the path begins, how it ends, the scope.
_TABLE: tuple[tuple[frozenset[str], str, str, KeyScope], ...] = (
    (_POST, "/api/call", "/api/call", "call"),
    (_POST, "/api/tools/", "/call", "call"),
    (_POST, "/api/tools/resolve", "/api/tools/resolve", "call"),
    (_POST, "/api/tools/load", "/api/tools/load", "call"),
    (_POST, "/api/tools/unload", "/api/tools/unload", "call"),
    # To look is to ask a server.
    (_ANY, "/api/resources", "", "call"),
    (_ANY, "/api/prompts", "", "call"),
    (_POST, "/api/messages", "/api/messages", "call"),
    (_POST, "/api/threads/", "/messages", "call"),
    (_POST, "/api/threads/", "/branch", "call"),
    (_POST, "/api/runs/", "/cancel", "call"),
    (_POST, "/api/runs/", "/thumb", "call"),
    (_POST, "/api/connectors/", "/query", "call"),
    (_POST, "/api/query_mcp_connector", "/api/query_mcp_connector", "call"),
    (_ANY, "/mcp", "", "call"),
    (_POST, "/openapi/", "", "call"),
    (_POST, "/api/approvals/", "/answer", "approve"),
    (_POST, "/api/questions/", "", "approve"),
    (_CHANGE, "/api/models", "", "admin"),
    (_ANY, "/api/workspaces", "", "admin"),
    (_ANY, "/api/users", "", "admin"),
    (_ANY, "/api/audit", "", "admin"),
    (_READ, "/", "", "read"),
    (_CHANGE, "/api/", "", "manage"),
    (_CHANGE, "/agents/", "", "manage"),
)


def needed_scope(method: str, path: str) -> KeyScope | None:
    """None: no key opens it."""
    for methods, beginning, ending, scope in _TABLE:
        if method in methods and path.startswith(beginning) and path.endswith(ending):
            return scope
    return None


def check_scope(method: str, path: str, scopes: frozenset[KeyScope]) -> None:
    needed = needed_scope(method, path)
    if needed is None:
        raise Denied("no API key is good for this request", hint="GET /api/openapi.json lists what there is")
    if needed not in scopes:
        raise Denied(
            f"this needs a key with the scope {needed!r}",
            hint=f"dragoman keys add NAME --scope {needed}",
        )
