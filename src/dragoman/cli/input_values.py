"""Values that somebody else's description asks for: given as `--input NAME=VALUE`, or typed when asked."""

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from dragoman.cli.screen import cleaned

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="NAME=VALUE", help="What an entry asks for; can be given more than once."
    ),
]


def asked(
    needs: Iterable[Mapping[str, Any]], known: Mapping[str, str], is_all: bool = False
) -> dict[str, str]:
    """What a person types for each need that has no value yet; nothing where nobody sits at a terminal.

    Optional ones are asked for when `is_all` says so; an empty answer leaves them out.
    """
    answers = dict(known)
    if not sys.stdin.isatty():
        return answers
    for need in needs:
        if need["name"] in answers or not (need["is_required"] or is_all):
            continue
        default = (
            need["default"] if need["default"] is not None else ("" if not need["is_required"] else None)
        )
        value = typer.prompt(_question(need), default=default, hide_input=need["is_secret"], err=True)
        if value:
            answers[need["name"]] = value
    return answers


def _question(need: Mapping[str, Any]) -> str:
    choices = f" ({', '.join(need['choices'])})" if need["choices"] else ""
    description = f": {need['description']}" if need["description"] else ""
    return cleaned(f"{need['name']}{description}{choices}")
