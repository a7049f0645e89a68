"""The command `dragoman`: a thin client of the REST door, of a running service or of a hub of its own."""

import gc
import sys


def main() -> None:
    """The command, as its arguments say."""
    if sys.platform == "win32":
        sys.exit("error: Dragoman does not run on Windows yet\nhint: use it in WSL")
    # What a start makes is no garbage, and to look for some is a sixth of a start.
    gc.set_threshold(20_000, 5, 10)
    from dragoman.cli.root import main as run

    try:
        run()
    finally:
        gc.freeze()  # to look through all of it once more before the end is a third of a short command
