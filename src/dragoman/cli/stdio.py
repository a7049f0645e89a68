"""`dragoman stdio`: this home as an MCP server for a client that starts its servers as programs."""

import os
from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import quote

import typer

from dragoman.cli.door import find_service
from dragoman.cli.screen import Screen
from dragoman.cli.session import failures_on
from dragoman.settings import Settings

ViewName = Literal["tools", "search"]


def stdio(
    view: Annotated[
        ViewName | None,
        typer.Option(help="All tools, or a few that lead to them; by their number unless you say."),
    ] = None,
    connector: Annotated[
        str | None, typer.Option(help="This connector alone, under the names that its server gives.")
    ] = None,
) -> None:
    """Speak MCP over stdin and stdout, for clients that start a program.

    \b
    dragoman stdio
    dragoman stdio --view search
    dragoman stdio --connector github

    Uses the running service of this home, with DRAGOMAN_TOKEN as its key where that is set; without a
    service it opens the home by itself. It ends when stdin does. Whatever it has to say of itself goes
    to stderr.
    """
    with failures_on(Screen(False)):
        _speak(Settings.load(), address(view, connector))


def address(view: str | None, connector: str | None) -> str:
    path = f"/mcp/{quote(connector, safe='')}" if connector else "/mcp"
    return f"{path}?view={view}" if view else path


def _speak(settings: Settings, path: str) -> None:
    service = find_service(settings)
    if service is not None and (token := os.environ.get("DRAGOMAN_TOKEN")):
        service = replace(service, token=token)
    # The whole stack: only here, so that other commands start at once, and a missing service is told at once.
    import asyncio

    from dragoman.cli.stdio_bridge import speak
    from dragoman.telemetry.logs import configure_logging
    from dragoman.telemetry.redaction import Redactor

    redactor = Redactor()
    configure_logging(settings.log_level, settings.log_json, redactor)
    asyncio.run(speak(settings, service, path, redactor))
