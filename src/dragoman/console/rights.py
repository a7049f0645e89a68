"""What the credential behind a session is good for: scopes narrow a key, here as at every other door."""

from starlette.requests import Request

from dragoman.console.pages import find_session
from dragoman.errors import Denied
from dragoman.people import KeyScope


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
