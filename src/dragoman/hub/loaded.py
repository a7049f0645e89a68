"""The tools that are loaded in threads. In memory: after a restart a thread loads again what it needs."""

from collections import OrderedDict
from collections.abc import Iterable

ThreadKey = tuple[str, str, str]
MOST_LOADED = 200
_MOST_THREADS = 10_000


class LoadedTools:
    """By workspace, user and thread. The thread that was used longest ago is forgotten first."""

    def __init__(self) -> None:
        self._threads: OrderedDict[ThreadKey, dict[str, None]] = OrderedDict()

    def of(self, key: ThreadKey) -> tuple[str, ...]:
        """In the order in which they were loaded."""
        return tuple(self._threads.get(key, ()))

    def add(self, key: ThreadKey, names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those that are new there, and those that had to go for them: the ones loaded longest ago."""
        held = self._threads.setdefault(key, {})
        self._threads.move_to_end(key)
        before = set(held)
        for name in names:
            held.pop(name, None)
            held[name] = None
        gone = tuple(held)[: max(0, len(held) - MOST_LOADED)]
        for name in gone:
            del held[name]
        while len(self._threads) > _MOST_THREADS:
            self._threads.popitem(last=False)
        return tuple(name for name in held if name not in before), tuple(n for n in gone if n in before)

    def remove(self, key: ThreadKey, names: Iterable[str]) -> tuple[str, ...]:
        """Those that were loaded."""
        held = self._threads.get(key, {})
        gone = tuple(name for name in dict.fromkeys(names) if name in held)
        for name in gone:
            del held[name]
        if not held:
            self.forget(key)
        return gone

    def forget(self, key: ThreadKey) -> None:
        self._threads.pop(key, None)
