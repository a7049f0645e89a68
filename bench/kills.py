"""`kill -9` at every write of the journal of a run, before it is on disk and right after; then a restart.

A run with three calls in a row, three at once and one that needs a person's yes, on a real MCP server that
writes down what it executes. After the restart: no finished call was made again, no result is that of
another call, one that must not be repeated and was under way is told as uncertain, the yes was asked for once
and used once.
"""

import itertools
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "runs"), str(TESTS)]

from killing import Lives, Scene  # noqa: E402  # pyright: ignore

import lab  # noqa: E402
from servers.processes import HttpProcess  # noqa: E402  # pyright: ignore


def measure(kills: int) -> lab.Report:
    report = lab.Report("kills")
    done, wrong, started = 0, list[str](), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        server = HttpProcess(home, "--folder", folder, program="ledger_server.py")
        with server, Lives() as lives:
            scene = Scene(lives, home, server.url)
            for moment in itertools.cycle(("before", "after")):
                number = 1
                while done < kills:
                    try:
                        if not scene.story(number, moment):
                            break
                    except AssertionError as error:
                        wrong.append(str(error)[:300])
                    done, number = done + 1, number + 1
                if done >= kills:
                    break
    columns = ["kills", "wrong after the restart", "seconds"]
    report.table("Killed and started again", columns, [[done, len(wrong), time.perf_counter() - started]])
    report.notes += wrong[:10]
    report.verdict("after every kill the run came to its right end", f"{len(wrong)} wrong", met=not wrong)
    return report


def main() -> None:
    parser = lab.parser(__doc__, quick="a tenth of the kills")
    parser.add_argument("--kills", type=int, default=200)
    given = parser.parse_args()
    report = measure(given.kills // 10 if given.quick else given.kills)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
