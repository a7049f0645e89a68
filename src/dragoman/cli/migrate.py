"""`dragoman migrate`: the tables alone, brought up to date before anything is started."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, failures_on
from dragoman.settings import Settings

if TYPE_CHECKING:
    from dragoman.store.schema import Schema


def migrate(as_json: AsJson = False) -> None:
    """Bring the database up to date and start nothing: a step of a deployment, before its services.

    \b
    DRAGOMAN_DATABASE_URL=postgresql://… dragoman migrate

    A service does the same when it starts. Neither the master key nor NATS is needed. An older Dragoman does
    not open the database afterwards: make a backup first.
    """
    from dragoman.store.schema import migrated

    screen = Screen(as_json)
    with failures_on(screen):
        schema = migrated(Settings.load().store_url)
        if as_json:
            screen.data(asdict(schema))
        else:
            print("\n".join(lines(schema)))


def lines(schema: "Schema") -> list[str]:
    """For people: one line, or what the last migration brought, a line each."""
    if schema.migration is None:
        return [f"{schema.version}, as it was made"]
    migration = schema.migration
    told = f"{schema.version}, migrated from {migration.found} at {migration.at:%Y-%m-%d %H:%M} UTC:"
    return [told, *migration.steps]
