"""All trials of a file, and what came of them: tables of figures that a person or a program reads."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from dragoman import extras
from dragoman.evaluation.cases import CaseVariant, EvaluationFile
from dragoman.evaluation.lanes import Lane, open_lanes
from dragoman.evaluation.statistics import difference_interval, share_interval
from dragoman.evaluation.trials import Trial
from dragoman.hub import Hub
from dragoman.settings import Settings
from dragoman.telemetry.redaction import Redactor

Told = Callable[[Trial, int, int], None]
_AS_IT_IS = "default"
_FIGURES = ("requests", "tokens", "cost", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The trials that were made, in the order of the file."""

    variants: Sequence[str]
    cases: Sequence[str]
    trials: Sequence[Trial]

    def of(self, variant: str, case: str | None = None) -> list[Trial]:
        return [one for one in self.trials if one.variant == variant and (case is None or one.case == case)]

    def share(self, variant: str) -> float:
        made = self.of(variant)
        return sum(one.passed for one in made) / len(made)

    def report(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "variants": {name: _summary(self.of(name)) for name in self.variants},
            "comparisons": [self._comparison(name) for name in self.variants[1:]],
            "cases": [
                {"name": case, "variants": {name: _summary(self.of(name, case)) for name in self.variants}}
                for case in self.cases
            ],
            "trials": [_facts(one) for one in self.trials],
        }

    def _comparison(self, variant: str) -> dict[str, Any]:
        """With the first variant, paired by case; each figure with its interval at 95 %."""
        first = self.variants[0]
        differences: dict[str, Any] = {}
        for figure in ("passed", *_FIGURES):
            pairs = [
                (_mean(self.of(first, case), figure), _mean(self.of(variant, case), figure))
                for case in self.cases
            ]
            interval = difference_interval(pairs)
            differences[figure] = {
                "difference": round(fmean(second - one for one, second in pairs), 6),
                "interval": [round(interval.low, 6), round(interval.high, 6)],
                "is_significant": interval.excludes_zero,
            }
        return {"variant": variant, "against": first, "cases": len(self.cases), "differences": differences}


async def evaluate(
    file: EvaluationFile,
    settings: Settings,
    *,
    folder: Path,
    variants: Mapping[str, CaseVariant] | None = None,
    repeat: int | None = None,
    parallel: int = 2,
    redactor: Redactor | None = None,
    told: Told = lambda trial, done, total: None,
) -> Evaluation:
    """Every case by every variant, as often as it says; `told` hears of each trial when it is made.

    `folder` is where the file is: {folder} in it.
    """
    extras.require("agents")
    ways = variants or file.variants or {_AS_IT_IS: CaseVariant()}
    # Variants take turns, so that a slow hour or a full disk is everybody's.
    waiting = [
        (name, variant, case)
        for case in file.cases
        for _ in range(repeat or case.repeat or file.repeat)
        for name, variant in ways.items()
    ]
    total, made = len(waiting), dict[int, Trial]()
    places = iter(enumerate(waiting))

    async def work(lane: Lane) -> None:
        for place, (name, variant, case) in places:
            made[place] = trial = await lane.make(case, name, variant)
            told(trial, len(made), total)

    def open_hub(home: Path | None) -> Hub:
        return Hub(settings if home is None else own_settings(settings, home), redactor=redactor)

    async with open_lanes(file, folder, open_hub, min(parallel, total)) as lanes:
        await asyncio.gather(*map(work, lanes))
    return Evaluation(
        variants=[*ways],
        cases=[case.name for case in file.cases],
        trials=[made[place] for place in sorted(made)],
    )


def own_settings(settings: Settings, home: Path) -> Settings:
    """Models, limits and ways as they are set; a home and a database of its own."""
    return replace(
        settings,
        home=home,
        database_url=None,
        cluster_url=(),
        configuration=None,
        action_servers=None,
        agent_configs=None,
    )


def variants_of(
    file: EvaluationFile, exposures: Sequence[Any], models: Sequence[str]
) -> dict[str, CaseVariant]:
    """Each model by each exposure where either is asked for, else those of the file."""
    if not exposures and not models:
        return dict(file.variants)
    made = [
        CaseVariant(model=model, exposure=exposure)
        for model in models or [None]
        for exposure in exposures or [None]
    ]
    return {" ".join(filter(None, (one.model, one.exposure))): one for one in made}


def _figure(trial: Trial, name: str) -> float:
    observed = trial.observed
    figures = {
        "passed": float(trial.passed),
        "requests": observed.usage.requests,
        "calls": observed.tool_calls,
        "tokens": observed.tokens,
        "cost": observed.usage.cost,
        "seconds": observed.seconds,
    }
    return figures[name]


def _mean(trials: Sequence[Trial], name: str) -> float:
    return fmean(_figure(one, name) for one in trials)


def _summary(trials: Sequence[Trial]) -> dict[str, Any]:
    passed = sum(one.passed for one in trials)
    interval = share_interval(passed, len(trials))
    return {
        "trials": len(trials),
        "passed": passed,
        "share": round(passed / len(trials), 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        **{name: round(_mean(trials, name), 6) for name in ("calls", *_FIGURES)},
        "failures": [*dict.fromkeys(failure for one in trials for failure in one.failures)],
    }


def _facts(trial: Trial) -> dict[str, Any]:
    observed = trial.observed
    return {
        "case": trial.case,
        "variant": trial.variant,
        "passed": trial.passed,
        "failures": [*trial.failures],
        "status": observed.status,
        "answer": observed.answer,
        "error": observed.error or None,
        "exposure": observed.exposure,
        "model": observed.model,
        "calls": [
            {"tool": one.tool, "arguments": None if one.arguments is None else dict(one.arguments)}
            for one in observed.calls
        ],
        "approvals": observed.approvals,
        "questions": observed.questions,
        "requests": observed.usage.requests,
        "input_tokens": observed.usage.input_tokens,
        "output_tokens": observed.usage.output_tokens,
        "cost": observed.usage.cost,
        "seconds": round(observed.seconds, 3),
        "runs": observed.runs,
    }
