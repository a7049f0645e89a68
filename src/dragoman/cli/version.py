"""`dragoman version`, and the version for `dragoman --version`."""

from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson


def installed() -> str:
    from importlib.metadata import version as version_of

    return version_of("dragoman")


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        Screen(True).data({"version": installed()})
    else:
        print(installed())
