"""`dragoman eval FILE`: cases, tried and judged; a table, a report, and an exit code for CI."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, failures_on
from dragoman.settings import Settings

if TYPE_CHECKING:
    from dragoman.evaluation.evaluate import Evaluation
    from dragoman.evaluation.trials import Trial


def evaluate(
    file: Annotated[
        Path | None, typer.Argument(help="A TOML file with cases.", show_default=False, dir_okay=False)
    ] = None,
    examples: Annotated[
        bool, typer.Option("--examples", help="The forty cases that ship, over the example servers.")
    ] = False,
    repeat: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Trials of each case.", show_default=False)
    ] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="Only cases with such a name; * is anything.", show_default=False)
    ] = None,
    exposure: Annotated[
        list[str] | None,
        typer.Option(help="How tools are reached; several are compared.", show_default=False),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Which model; several are compared.", show_default=False)
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, max=16, help="Trials at once.")] = 2,
    at_least: Annotated[
        float, typer.Option(min=0, max=1, help="The share of trials that must pass, in each variant.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Try cases against the model, and say which passed. Ends with 1 when too few did.

    \b
    dragoman eval cases.toml
    dragoman eval cases.toml --repeat 5 --at-least 0.9 --json
    dragoman eval cases.toml --exposure direct --exposure delegate
    dragoman eval --examples --model openai:gpt-5.4 --model anthropic:claude-sonnet-5-5

    A file with connectors of its own is run in a home of its own; else with the connectors that you have,
    each trial in a thread of its own. Approvals are refused unless a case says otherwise.
    """
    if examples == (file is not None):
        raise typer.BadParameter("give a file, or --examples", param_hint="FILE")
    screen = Screen(as_json)
    with failures_on(screen):
        made = _evaluated(screen, file, case or (), exposure or (), model or (), repeat, parallel)
    report = made.report()
    screen.data(report) if as_json else _show(screen, report)
    if failed := [name for name in made.variants if made.share(name) < at_least]:
        _say_failed(screen, made, failed, at_least)
        raise typer.Exit(1)


def _evaluated(
    screen: Screen,
    file: Path | None,
    names: Sequence[str],
    exposures: Sequence[str],
    models: Sequence[str],
    repeat: int | None,
    parallel: int,
) -> "Evaluation":
    import asyncio

    from dragoman.agents.exposure import checked_exposure
    from dragoman.evaluation import evaluate as engine
    from dragoman.evaluation.cases import read_file
    from dragoman.examples import examples
    from dragoman.telemetry.logs import configure_logging
    from dragoman.telemetry.redaction import Redactor

    path = file or examples() / "evaluation.toml"
    cases = read_file(path).with_cases(names)
    variants = engine.variants_of(cases, [checked_exposure(one) for one in exposures], models)
    settings = Settings.load()
    redactor = Redactor()
    configure_logging(settings.log_level, settings.log_json, redactor)
    return asyncio.run(
        engine.evaluate(
            cases,
            settings,
            folder=path.absolute().parent,
            variants=variants,
            repeat=repeat,
            parallel=parallel,
            redactor=redactor,
            told=_progress(screen),
        )
    )


def _progress(screen: Screen) -> Any:
    """A line for each trial, on stderr."""

    def told(trial: "Trial", done: int, total: int) -> None:
        way = f" ({plain(trial.variant)})" if trial.variant != "default" else ""
        outcome = "passed" if trial.passed else f"[red]failed[/]: {plain(trial.failures[0], 200)}"
        seconds = trial.observed.seconds
        screen.aside(f"{done}/{total} {plain(trial.case)}{way}: {outcome} [dim]{seconds:.1f} s[/]")

    return told


def _show(screen: Screen, report: dict[str, Any]) -> None:
    from dragoman.cli.tables import new_table

    names = [*report["variants"]]
    cases = new_table("case", *(name if len(names) > 1 else "passed" for name in names), "what failed")
    for case in report["cases"]:
        summaries = case["variants"].values()
        failures = [failure for one in summaries for failure in one["failures"]]
        cases.add_row(
            plain(case["name"]),
            *(_score(one["passed"], one["trials"]) for one in summaries),
            plain("; ".join(dict.fromkeys(failures)), 200),
        )
    totals = new_table(
        *("variant", "passed", "95 %", "calls", "requests", "tokens", "cost", "seconds"),
        right=("passed", "95 %", "calls", "requests", "tokens", "cost", "seconds"),
    )
    for name, one in report["variants"].items():
        low, high = one["interval"]
        totals.add_row(
            plain(name),
            _score(one["passed"], one["trials"]),
            f"{low:.0%} – {high:.0%}",
            f"{one['calls']:.1f}",
            f"{one['requests']:.1f}",
            f"{one['tokens']:,.0f}",
            f"${one['cost']:.4f}",
            f"{one['seconds']:.1f}",
        )
    screen.show(cases, totals)
    if report["comparisons"]:
        screen.show(_compared(report["comparisons"]))


def _compared(comparisons: list[dict[str, Any]]) -> Any:
    """What a trial takes more or less than with the first variant; bold where that is no chance."""
    from dragoman.cli.tables import new_table

    figures = {"passed": "{:+.0%}", "requests": "{:+.1f}", "tokens": "{:+,.0f}", "cost": "{:+.4f} $"}
    figures["seconds"] = "{:+.1f}"
    table = new_table("compared", "with", *figures, right=tuple(figures))
    for one in comparisons:
        cells: list[str] = []
        for name, form in figures.items():
            found = one["differences"][name]
            low, high = (form.format(end) for end in found["interval"])
            text = f"{form.format(found['difference'])} ({low} … {high})"
            cells.append(f"[bold]{text}[/]" if found["is_significant"] else text)
        table.add_row(plain(one["variant"]), plain(one["against"]), *cells)
    return table


def _score(passed: int, trials: int) -> str:
    return f"[{'green' if passed == trials else 'red'}]{passed}/{trials}[/]"


def _say_failed(screen: Screen, made: "Evaluation", failed: list[str], at_least: float) -> None:
    told = ", ".join(
        f"{sum(one.passed for one in made.of(name))} of {len(made.of(name))}"
        + (f" ({name})" if len(made.variants) > 1 else "")
        for name in failed
    )
    wanted = "all" if at_least == 1 else f"{at_least:.0%}"
    Screen(False).fail(
        {"detail": f"{told} trials passed, and {wanted} should", "hint": "--json tells all of it"}
    )
