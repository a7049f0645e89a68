"""The command `dragoman`: a thin client of the REST door, of a running service or of a hub of its own."""

import sys


def main() -> None:
    """The command, as its arguments say."""
    if sys.platform == "win32":
        sys.exit("error: Dragoman does not run on Windows yet\nhint: use it in WSL")
    from dragoman.cli.root import main as run

    run()
