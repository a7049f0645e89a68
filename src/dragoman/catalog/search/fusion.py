"""How three ways of scoring become one order, and when the best of it is still no answer.

Pure arithmetic over scores: knows neither tools nor texts.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
Rows = NDArray[np.int64]
Weights = tuple[float, ...]
# Words, meaning of name and description, meaning of connector and parameters. Many tools have no
# parameters to speak of, so their leg counts least.
HYBRID = (0.6, 0.4, 0.1)
SEMANTIC = (0.0, 0.4, 0.2)
CLAUSE = 0.5
"""What the best clause of a long question adds to the whole."""
CANDIDATES = 100
"""How many of the best are looked at again, clause by clause."""
FITTING = 10
"""How many of the best say which connectors fit."""
CONNECTOR = 0.1
"""What a connector adds to its tools where all of those are its own."""
FINDER = 0.15
"""What a tool adds to one that finds the id that it wants."""
NEEDING = 10
"""How many of the best are asked for the ids that they want."""

# A question is answered when an eighth of its words occurs anywhere in the catalog; or else when half of
# them are words at all and a tool is near in meaning. Loose on purpose: refusing a real question costs
# more than answering a senseless one.
_ENOUGH_FOUND = 1 / 8
_ENOUGH_WORDS = 1 / 2
_NEAR = 0.3
_LITTLE = 0.1
"""The least difference, of cosines or of BM25's sums, that counts in full."""


def fused(legs: tuple[Scores | None, Scores | None, Scores | None], weights: Weights) -> Scores:
    """The weighted sum of the legs, each scaled to 0…1. A leg without weight may be absent."""
    weighted = [(leg, weight) for leg, weight in zip(legs, weights, strict=True) if leg is not None]
    total = np.zeros(len(weighted[0][0]), np.float32)
    for leg, weight in weighted:
        total += scaled(leg) * np.float32(weight / sum(weights))
    return total


def trusted(weights: Weights, share: float) -> Weights:
    """Words count less where even the best tool has few of them: scaling hides how little that is.

    `share` is what the best tool has of all that the question's words could say.
    """
    words, *others = weights
    return (words * sqrt(share), *others)


def scaled(scores: Scores) -> Scores:
    """To 0…1, but what lies within a little is not pulled apart: among two tools one is always the best."""
    low, high = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
    if high <= low:
        return np.zeros_like(scores)
    return (scores - np.float32(low)) / np.float32(max(high - low, _LITTLE))


def best(scores: Scores, count: int) -> NDArray[np.intp]:
    """Places of the highest scores, the best first; equal ones in the order of the catalog."""
    places = np.arange(len(scores))
    if len(scores) > count:
        places = np.sort(np.argpartition(scores, -count)[-count:])
    return places[np.argsort(-scores[places], kind="stable")]


def means_something(found: float, known: float, nearest: float) -> bool:
    """`found` and `known` are shares of the question's words: in the catalog, and words at all."""
    return found >= _ENOUGH_FOUND or (known >= _ENOUGH_WORDS and nearest >= _NEAR)
