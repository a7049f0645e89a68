"""`dragoman console`: the pages of a running service, signed in."""

from typing import Annotated

import typer

from dragoman.cli.session import AsJson, session
from dragoman.errors import Unreachable


def console(
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a link that signs you in to the console of the running service. It works once, for an hour.

    \b
    dragoman console
    dragoman console --open
    """
    with session(as_json) as (door, screen):
        service = door.service
        if service is None:
            raise Unreachable("no service is running for this home", hint="start one with: dragoman serve")
        link = service.url + door.ask("POST", "/sign-in/links")["path"]
        if as_json:
            screen.data({"link": link})
        else:
            print(link)
        if open_browser:
            import webbrowser

            webbrowser.open(link)
