"""Search: how well tools are found in public sets of questions, beside other rankings, and what it costs.

The sets are folders under `tests/data/tool-search`; `search.py` does the work, each part in a fresh process.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lab
from mcp_endpoint import VENV, fastmcp_python

HERE = Path(__file__).parent
DATA = HERE.parent / "tests" / "data" / "tool-search"
GAIN, RECALL = 0.70, 0.70
SENSELESS, REAL = 0.95, 0.03
QUERY = {500: 1.0, 5_000: 3.0, 50_000: 15.0}  # milliseconds of CPU
ADDING, MEMORY = 5.0, 200.0  # milliseconds, MB
# FastMCP is found in an environment of its own, after everything of ours.
PROGRAM = """
import runpy, sys
sys.path[:0], sys.path[-1:] = [sys.argv[1]], [sys.path[-1], sys.argv[2]]
del sys.argv[:3]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def told(folders: list[Path], *flags: str) -> list[dict[str, Any]]:
    (packages,) = VENV.glob("lib/python*/site-packages")
    words = [str(HERE), str(packages), str(HERE / "search.py"), *map(str, folders), *flags]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def quality(report: lab.Report, folders: list[Path]) -> None:
    rows = told(folders)
    sizes = {row["set"]: (row["tools"], row["questions"]) for row in rows if row["set"] != "mean"}
    report.table(
        "How well tools are found",
        ["set × ranking", "tools", "questions", "R@5", "R@10", "NDCG@10"],
        [
            [
                f"{row['set']} × {row['engine']}",
                *(sizes.get(row["set"]) or ("", "")),
                *(f"{row[name]:.3f}" for name in ("R@5", "R@10", "NDCG@10")),
            ]
            for row in rows
        ],
    )
    if len(folders) > 1:
        held_out(report, folders)
    (mean,) = (row for row in rows if row["set"] == "mean" and row["engine"] == "dragoman")
    gain, recall = mean["NDCG@10"], mean["R@5"]
    report.verdict(f"mean NDCG@10 at least {GAIN:g}", f"{gain:.4f}", met=gain >= GAIN)
    report.verdict(f"mean R@5 at least {RECALL:g}", f"{recall:.4f}", met=recall >= RECALL)


def held_out(report: lab.Report, folders: list[Path]) -> None:
    report.table(
        "Each set by weights that were chosen on the others",
        ["set", "R@5", "R@10", "NDCG@10", "weights"],
        [
            [
                row["set"],
                *(f"{row[name]:.3f}" for name in ("R@5", "R@10", "NDCG@10")),
                ", ".join(f"{one:g}" for one in row.get("weights", ())),
            ]
            for row in told(folders, "--held-out")
        ],
    )


def refusals(report: lab.Report, folders: list[Path]) -> None:
    rows = told(folders, "--refusals")
    names = ["gibberish_refused", "real_refused", "foreign_refused", "exact_name_first"]
    report.table(
        "What is refused, and exact names",
        ["set", "senseless refused", "real refused", "another set's refused", "exact name first"],
        [[row["set"], *(f"{100 * row[name]:.1f} %" for name in names)] for row in rows],
    )
    senseless, real, _, exact = ([row[name] for row in rows] for name in names)
    report.verdict("an exact name comes first", f"{min(exact):.1%} or more", met=min(exact) == 1)
    report.verdict(
        f"at least {SENSELESS:.0%} of senseless text finds nothing",
        f"{min(senseless):.1%} or more",
        met=min(senseless) >= SENSELESS,
    )
    report.verdict(
        f"at most {REAL:.0%} of real questions find nothing",
        f"{max(real):.1%} at most",
        met=max(real) <= REAL,
    )


def scale(report: lab.Report, folders: list[Path]) -> None:
    rows = told(folders, "--scale")
    report.table(
        "What it costs",
        ["tools", "first build ms", "query p50 ms CPU", "p95", "adding one ms", "memory MB, grown"],
        [[f"{row.pop('tools'):,}", *row.values()] for row in map(dict, rows)],
    )
    for row in rows:
        most, found = QUERY[row["tools"]], row["p50_ms"]
        report.verdict(
            f"{row['tools']:,} tools: a query in at most {most:g} ms CPU", f"{found:g} ms", met=found <= most
        )
    adding, memory = rows[-1]["add_one_ms"], rows[-1]["memory_mb"]
    report.verdict(f"adding one in at most {ADDING:g} ms", f"{adding:g} ms", met=adding <= ADDING)
    report.verdict(f"at most {MEMORY:g} MB", f"{memory:g} MB", met=memory <= MEMORY)


def main() -> None:
    given = lab.options(__doc__ or "")
    report = lab.Report("finding")
    folders = sorted(path.parent for path in DATA.glob("*/queries.jsonl"))
    if given.quick:
        folders = [folder for folder in folders if folder.name in ("mcpproxy", "restbench")]
    fastmcp_python()
    quality(report, folders)
    refusals(report, folders)
    scale(report, folders)
    report.notes.append(
        "The weights of the legs and the thresholds below which nothing is found were chosen on these"
        " sets, so expect a little less on others."
    )
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
