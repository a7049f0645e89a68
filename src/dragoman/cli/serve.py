"""`dragoman serve`: the service of one home, until it is told to stop."""

import json
from dataclasses import replace
from typing import Annotated

import typer

from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, failures_on
from dragoman.settings import Settings


def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen; 127.0.0.1 is this machine only.")] = None,
    port: Annotated[
        int | None, typer.Option(help="8765 unless you say otherwise; 0 takes a free one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve console, REST API and MCP endpoint of this home until Ctrl-C or SIGTERM.

    \b
    dragoman serve
    dragoman serve --port 9000
    curl -H "Authorization: Bearer $(dragoman token)" http://127.0.0.1:8765/api/tools

    While it runs, every other dragoman command of the same home talks to it.
    """
    import asyncio

    from dragoman.server import serve as serve_forever
    from dragoman.telemetry.logs import configure_logging
    from dragoman.telemetry.redaction import Redactor

    screen = Screen(as_json)
    with failures_on(screen):
        settings = Settings.load()
        given = {name: value for name, value in {"host": host, "port": port}.items() if value is not None}
        settings = replace(settings, **given)
        redactor = Redactor()
        configure_logging(settings.log_level, settings.log_json, redactor)

        def ready(url: str, link: str) -> None:
            if as_json:
                file = None if settings.operator_token else str(settings.token_file)
                facts = {"url": url, "token_file": file, "console": link}
                print(json.dumps(facts), flush=True)
            else:
                screen.note(f"Dragoman serves at {url} (Ctrl-C stops it)")
                screen.note(f"console, signed in once by this link: {link}")
                place = "DRAGOMAN_OPERATOR_TOKEN" if settings.operator_token else settings.token_file
                screen.note(f"its bearer token is in {place}")

        asyncio.run(serve_forever(settings, ready, redactor))


def token(as_json: AsJson = False) -> None:
    """Print the operator's bearer token; the first time, make it.

    \b
    curl -H "Authorization: Bearer $(dragoman token)" http://127.0.0.1:8765/api/tools

    It is in a file of the home, unless DRAGOMAN_OPERATOR_TOKEN gives one.
    """
    from dragoman.web.service_token import ServiceToken

    screen = Screen(as_json)
    with failures_on(screen):
        settings = Settings.load()
        made = ServiceToken(settings).current
        if as_json:
            file = None if settings.operator_token else str(settings.token_file)
            screen.data({"token": made, "file": file})
        else:
            print(made)
