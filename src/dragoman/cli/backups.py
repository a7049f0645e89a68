"""`dragoman backup` and `dragoman restore`: the whole installation in one encrypted file."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.screen import Screen, ago
from dragoman.cli.session import AsJson, failures_on
from dragoman.errors import InvalidConfig
from dragoman.settings import Settings

PassphraseEnv = Annotated[
    str | None,
    typer.Option(
        metavar="VARIABLE",
        help="Where the passphrase is; else it is asked for, or read from stdin.",
        show_default=False,
    ),
]


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write it; a file there is replaced.")],
    passphrase_env: PassphraseEnv = None,
    as_json: AsJson = False,
) -> None:
    """Write everything to one file, encrypted with a passphrase: the database, the master key, the token.

    \b
    dragoman backup monday.backup
    dragoman backup /backups/dragoman.backup --passphrase-env BACKUP_PASSPHRASE

    It works while a service runs, which waits for nothing. Without the passphrase nobody opens the file.
    """
    screen = Screen(as_json)
    with failures_on(screen):
        settings = _own_settings()
        passphrase = _passphrase(passphrase_env, is_new=True)
        from dragoman.hub.backups import back_up

        with screen.busy("writing …"):
            made = back_up(settings, file, passphrase)
        size = file.stat().st_size
        if as_json:
            screen.data({"file": str(file), "bytes": size, "made_at": made.made_at, "rows": made.rows})
        else:
            screen.note(f"{file}: {sum(made.rows.values()):,} rows in {size:,} bytes")
            screen.note(
                "keep the passphrase elsewhere; try it out: dragoman restore, in an empty DRAGOMAN_HOME"
            )


def restore(
    file: Annotated[Path, typer.Argument(help="As dragoman backup wrote it.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="In the place of what is there, which is kept in a folder.")
    ] = False,
    passphrase_env: PassphraseEnv = None,
    as_json: AsJson = False,
) -> None:
    """Put a backup into an empty home, or an empty PostgreSQL database. Stop every service first.

    \b
    DRAGOMAN_HOME=/tmp/look dragoman restore monday.backup
    DRAGOMAN_DATABASE_URL=postgresql://… dragoman restore monday.backup

    SQLite and PostgreSQL take each other's backups. With --replace the rows of a PostgreSQL database are
    gone; files of the home are kept beside the new ones. What ran when the backup was made goes on: let
    only one of the two installations do so.
    """
    screen = Screen(as_json)
    with failures_on(screen):
        settings = _own_settings()
        passphrase = _passphrase(passphrase_env, is_new=False)
        from dragoman.hub.backups import restore as put_back

        with screen.busy("reading …"):
            done = put_back(settings, file, passphrase, replace=replace)
        if as_json:
            screen.data({**asdict(done), "kept": str(done.kept) if done.kept else None})
            return
        screen.note(f"{sum(done.rows.values()):,} rows of {ago(done.made_at)}, by Dragoman {done.version}")
        if done.kept:
            screen.note(f"what was here is in {done.kept}")
        screen.note("see that everything is there: dragoman doctor")


def _own_settings() -> Settings:
    if "DRAGOMAN_URL" in os.environ:
        raise InvalidConfig(
            "DRAGOMAN_URL names a service elsewhere",
            hint="run this where its home is, with its DRAGOMAN_HOME and DRAGOMAN_DATABASE_URL",
        )
    return Settings.load()


def _passphrase(variable: str | None, *, is_new: bool) -> str:
    if variable is not None:
        if not (given := os.environ.get(variable)):
            raise typer.BadParameter(f"the variable {variable} is not set", param_hint="--passphrase-env")
        return given
    if sys.stdin.isatty():
        return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=is_new, err=True))
    if not (line := sys.stdin.readline().rstrip("\r\n")):
        raise typer.BadParameter("give it on stdin, or name a variable", param_hint="--passphrase-env")
    return line
