"""Tries the cases that ship with the rule-driven model of the tests; writes the table of `evaluate.md`."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from dragoman.evaluation.cases import CaseVariant, read_file  # noqa: E402
from dragoman.evaluation.evaluate import Evaluation, evaluate  # noqa: E402
from dragoman.examples import examples  # noqa: E402
from dragoman.settings import Settings  # noqa: E402
from servers.rule_model import RuleModel  # noqa: E402  # pyright: ignore
from servers.scripted_hubs import MODEL, scripted  # noqa: E402  # pyright: ignore

PAGE = ROOT / "docs" / "guides" / "evaluate.md"
SHIPPED = examples() / "evaluation.toml"
EXPOSURES = ("direct", "search", "delegate", "code")
FIRST = "| case: requests / tokens |"
LAST = "`dragoman eval --examples --exposure"


async def tried() -> Evaluation:
    variants = {name: CaseVariant(exposure=name) for name in EXPOSURES}
    with TemporaryDirectory() as home:
        async with scripted(RuleModel()):
            settings = Settings(home=Path(home) / "home", model=MODEL)  # pyright: ignore[reportUnknownArgumentType]
            return await evaluate(
                read_file(SHIPPED), settings, folder=SHIPPED.parent, variants=variants, parallel=1
            )


def table(report: dict[str, Any]) -> list[str]:
    lines = [f"{FIRST} {' | '.join(EXPOSURES)} |", "|---|--:|--:|--:|--:|"]
    for case in report["cases"]:
        shown = (case["variants"][name] for name in EXPOSURES)
        lines.append(_row(case["name"], [f"{one['requests']:.0f} / {one['tokens']:,.0f}" for one in shown]))
    whole = [report["variants"][name] for name in EXPOSURES]
    lines.append(_row("**passed**", [f"**{one['passed']} of {one['trials']}**" for one in whole]))
    lines.append(_row("**mean**", [f"**{one['requests']:.1f} / {one['tokens']:,.0f}**" for one in whole]))
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    report = asyncio.run(tried()).report()
    page = PAGE.read_text().splitlines()
    begin = next(number for number, line in enumerate(page) if line.startswith(FIRST))
    end = next(number for number, line in enumerate(page) if line.startswith(LAST))
    command, _, rest = page[end].partition(", on ")
    today = datetime.now(UTC)
    page[end] = f"{command}, on {today.day} {today:%B %Y};{rest.partition(';')[2]}"
    PAGE.write_text("\n".join([*page[:begin], *table(report), "", *page[end:]]) + "\n")


if __name__ == "__main__":
    main()
