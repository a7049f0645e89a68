"""Numbers as one small line. Pure: gives the path of an SVG, knows no page."""

from collections.abc import Sequence
from math import log1p

WIDTH, HEIGHT = 288, 44
_EDGE = 5


def line(values: Sequence[float], width: int = WIDTH, height: int = HEIGHT) -> str:
    """The `d` of a path through the values, oldest first; empty for less than two of them.

    Logarithmic: beside one slow call the others would lie flat.
    """
    if len(values) < 2:
        return ""
    values = [log1p(max(0.0, value)) for value in values]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    step = width / (len(values) - 1)
    room = height - 2 * _EDGE
    points = [
        f"{place * step:.1f} {height - _EDGE - (value - low) / reach * room:.1f}"
        for place, value in enumerate(values)
    ]
    return "M" + " L".join(points)
