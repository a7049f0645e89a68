"""What the credential behind a session is good for: scopes narrow a key, here as at every other door."""

from starlette.requests import Request

from dragoman.console.pages import find_session
from dragoman.errors import Denied
from dragoman.people import KeyScope

# What a change needs. The first line that fits counts: how the path begins, how it ends, the scopes.
_CHANGES: tuple[tuple[str, str, tuple[KeyScope, ...]], ...] = (
    ("/sign-out", "/sign-out", ()),
    ("/switch", "/switch", ()),
    ("/tools/", "/try", ("call",)),
    ("/tools/", "/form", ("read",)),
    ("/connectors/", "/resources/read", ("read", "call")),
    ("/connectors/", "/prompts/fill", ("read", "call")),
    ("/code", "", ("manage", "call")),
    ("/chat/approvals/", "", ("read", "approve")),
    ("/chat/questions/", "", ("read", "approve")),
    ("/chat/runs/", "", ("read", "call")),
    ("/chat/", "/connectors", ("read", "manage")),
    ("/chat/", "/title", ("read", "manage")),
    ("/chat/", "/pin", ("read", "manage")),
    ("/chat/-/bulk", "", ("read", "manage")),
    ("/chat/", "/restore", ("read", "manage")),
    ("/chat", "", ("read", "call")),
    ("/runs", "", ("read", "call")),
    ("/approvals/allowed/", "", ("read", "manage")),
    ("/approvals", "", ("read", "approve")),
    ("/audit", "", ("read",)),
    ("/keys/users", "", ("manage", "admin")),
    ("/settings/workspace", "", ("manage", "admin")),
    ("/settings/retention", "", ("manage", "admin")),
    ("/settings/models", "", ("manage", "admin")),
    ("/", "", ("manage",)),
)


def check_request(request: Request) -> None:
    """What every request needs: `Denied` says what is missing. Pages that are looked at may ask for more."""
    for scope in _scopes(request.method, request.url.path):
        check_scope(request, scope)


def _scopes(method: str, path: str) -> tuple[KeyScope, ...]:
    if method in ("GET", "HEAD"):
        return ("read",)
    if method == "DELETE":
        return ("read", "manage")
    return next(
        scopes
        for beginning, ending, scopes in _CHANGES
        if path.startswith(beginning) and path.endswith(ending)
    )


def has_scope(request: Request, scope: KeyScope) -> bool:
    session = find_session(request)
    return session is not None and scope in session.admission.scopes


def check_scope(request: Request, scope: KeyScope) -> None:
    """`Denied` says which one is missing. Whether the user may do it is the hub's to say."""
    if not has_scope(request, scope):
        raise Denied(
            f"this needs a key with the scope {scope!r}",
            hint="sign in with one that has it; whoever manages keys can make one on the page API keys",
        )


def check_from_here(request: Request) -> None:
    """For addresses that do something when they are opened: another site's link does not count."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Denied("another site led here", hint="open the page in the console and use its own button")
