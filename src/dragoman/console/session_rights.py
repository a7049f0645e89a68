"""What the credential behind a session is good for: scopes narrow a key, here as at every other door."""

from starlette.requests import Request

from dragoman.console.pages import find_session
from dragoman.errors import Denied
from dragoman.people import KeyScope

# The first line that fits counts: how the path begins, how it ends, the scope. Pages ask for more themselves.
_CHANGES: tuple[tuple[str, str, KeyScope | None], ...] = (
    ("/sign-out", "/sign-out", None),
    ("/tools/", "/try", "call"),
    ("/tools/", "/form", "read"),
    ("/chat", "", "read"),
    ("/runs", "", "read"),
    ("/approvals", "", "read"),
    ("/audit", "", "read"),
    ("/", "", "manage"),
)


def check_request(request: Request) -> None:
    """What every request of its kind needs, whatever its page asks for; `Denied` says what is missing."""
    if request.method in ("GET", "HEAD"):
        check_scope(request, "read")
        return
    path = request.url.path
    for beginning, ending, scope in _CHANGES:
        if path.startswith(beginning) and path.endswith(ending):
            if scope is not None:
                check_scope(request, scope)
            return


def check_scope(request: Request, scope: KeyScope) -> None:
    """`Denied` says which one is missing. Whether the user may do it is the hub's to say."""
    session = find_session(request)
    if session is None or scope not in session.admission.scopes:
        raise Denied(
            f"this needs a key with the scope {scope!r}",
            hint="sign in with one that has it; whoever manages keys can make one on the page API keys",
        )


def check_from_here(request: Request) -> None:
    """For addresses that do something when they are opened: another site's link does not count."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Denied("another site led here", hint="open the page in the console and use its own button")
