"""Pages of 50 of a list in memory. A cursor says where the last page ended, not how many there were."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

A_PAGE = 50
_LONGEST = 300
Item = TypeVar("Item")
Place = tuple[float, str]
"""Where something stands: a number, and a name where numbers are the same."""


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Item]):
    """`total` are all that fit; `next` is the cursor of the page after this one."""

    shown: Sequence[Item]
    total: int
    next: str | None
    is_first: bool


def page_of(items: Iterable[Item], place: Callable[[Item], Place], after: str = "") -> ListPage[Item]:
    """The page after that cursor, in the order of their places; what is no cursor begins at the start."""
    ordered = sorted(items, key=place)
    begin = _read(after)
    left = ordered if begin is None else [one for one in ordered if place(one) > begin]
    shown = left[:A_PAGE]
    number, name = place(shown[-1]) if shown else (0.0, "")
    cursor = f"{number!r}~{name}" if len(left) > A_PAGE else None
    return ListPage(shown, len(ordered), cursor, begin is None)


def _read(cursor: str) -> Place | None:
    number, sign, name = cursor[:_LONGEST].partition("~")
    try:
        return (float(number), name) if sign else None
    except ValueError:
        return None


def has_words(text: str, words: Sequence[str]) -> bool:
    """Whether every word is in it, in capital letters or not; `words` are small."""
    text = text.lower()
    return all(word in text for word in words)
