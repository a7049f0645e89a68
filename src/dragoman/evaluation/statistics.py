"""How sure one can be: a share of trials with its interval, and a difference between two ways. Pure."""

from collections.abc import Sequence
from math import sqrt
from random import Random
from statistics import fmean
from typing import NamedTuple

_Z = 1.959963984540054  # 95 %
_RESAMPLES = 2_000


class Interval(NamedTuple):
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def share_interval(passed: int, trials: int) -> Interval:
    """Wilson's score interval of a share, at 95 %: it is right for few trials and for shares near 0 and 1."""
    if not trials:
        return Interval(0.0, 1.0)
    share, square = passed / trials, _Z * _Z
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = _Z * sqrt(share * (1 - share) / trials + square / (4 * trials * trials)) / (1 + square / trials)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def difference_interval(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Of the mean difference, second less first, by a paired bootstrap over the cases at 95 %.

    Cases are what is drawn, and not trials: those of one case are alike. The same pairs give the same.
    """
    differences = [second - first for first, second in pairs]
    if not differences:
        return Interval(0.0, 0.0)
    draws = Random(0)  # noqa: S311 - a seed, so that a report can be made again
    means = sorted(fmean(draws.choices(differences, k=len(differences))) for _ in range(_RESAMPLES))
    return Interval(means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1])
