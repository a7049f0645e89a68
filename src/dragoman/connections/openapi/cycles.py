"""Which nodes of a graph lie on a circle. Pure."""

from collections.abc import Callable, Iterable


class Cycles:
    """Finds strongly connected components as it is asked (Tarjan). `edges` names the neighbours of a node."""

    def __init__(self, edges: Callable[[str], Iterable[str]]) -> None:
        self._edges = edges
        self._order: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self._stack: list[str] = []
        self._group: dict[str, int] = {}
        self._sizes: dict[int, int] = {}

    def contains(self, node: str) -> bool:
        """Whether the node can be reached from itself."""
        if node not in self._order:
            self._visit(node)
        return self._sizes[self._group[node]] > 1 or node in self._edges(node)

    def share_one(self, node: str, other: str) -> bool:
        """Whether a step from one to the other is a step along a circle."""
        return self.contains(node) and self.contains(other) and self._group[node] == self._group[other]

    def _visit(self, node: str) -> None:
        self._order[node] = self._low[node] = len(self._order)
        self._stack.append(node)
        for neighbour in self._edges(node):
            if neighbour not in self._order:
                self._visit(neighbour)
                self._low[node] = min(self._low[node], self._low[neighbour])
            elif neighbour not in self._group:
                self._low[node] = min(self._low[node], self._order[neighbour])
        if self._low[node] == self._order[node]:
            self._close(node)

    def _close(self, node: str) -> None:
        group = len(self._sizes)
        self._sizes[group] = 0
        while True:
            member = self._stack.pop()
            self._group[member] = group
            self._sizes[group] += 1
            if member == node:
                return
