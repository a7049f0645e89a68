"""A command of Dragoman that gives up sooner than others: what is vital may fail for so many seconds."""

import sys

from dragoman import background_tasks

if __name__ == "__main__":
    _, patience, *words = sys.argv
    background_tasks.VITAL_PATIENCE = float(patience)
    from dragoman.cli.root import run

    sys.exit(run(words))
