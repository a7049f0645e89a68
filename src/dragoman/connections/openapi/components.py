"""Closes the references of translated schemas: parts are put in place, cycles and large ones are `$defs`."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dragoman.connections.openapi.parsing import Version
from dragoman.connections.openapi.references import References
from dragoman.connections.openapi.schemas import Direction, SchemaReference, Translator
from dragoman.connections.openapi.untrusted_json import Json, Object, is_list, is_object


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


_ROOMY, _TIGHT = 16_000, 200  # largest part that is put in place, about in bytes of JSON
_DEEPEST_IN_PLACE = 25
_LEFT_OUT: Object = {"description": "(left out: the service's own description is too large)"}


@dataclass(frozen=True, slots=True)
class _Closed:
    """A schema without open references; `needs` are the pointers of the `$defs` it uses."""

    schema: Json
    size: int
    depth: int
    needs: frozenset[str]


class Components:
    """All schemas of one document in one direction."""

    def __init__(self, references: References, version: Version, direction: Direction) -> None:
        self._references = references
        self._translator = Translator(references, version, direction)
        self._translated: dict[str, Json] = {}
        self._edges: dict[str, tuple[SchemaReference, ...]] = {}
        self._circles = Cycles(lambda pointer: [edge.pointer for edge in self._edges_of(pointer)])
        self._loops = Cycles(
            lambda pointer: [edge.pointer for edge in self._edges_of(pointer) if edge.is_in_place]
        )
        self._roomy = _Closer(self, _ROOMY)
        self._tight = _Closer(self, _TIGHT)

    def translate(self, schema: Json) -> Json:
        """With open references, for those who look at the top of it first."""
        return self._translator.translated(schema)

    def opened(self, schema: Json) -> Json:
        """The schema itself, or the translated one that it refers to."""
        for _ in range(50):
            if not isinstance(schema, SchemaReference):
                return schema
            schema = self.get(schema.pointer)
        return {}

    def close(self, schema: Json, limit: int) -> Object | None:
        """A schema that stands alone, of at most about `limit` bytes; None when it cannot be that small."""
        for closer in (self._roomy, self._tight):
            root = closer.closed(schema, None)
            size, definitions = closer.definitions(root.needs, limit - root.size)
            if root.size + size <= limit and None not in definitions.values():
                return _assembled(root.schema, definitions, closer.names)
        return None

    def close_cut(self, schema: Json, limit: int) -> Object:
        """As `close`, but what does not fit any more allows everything."""
        root = self._tight.closed(schema, None)
        _, definitions = self._tight.definitions(root.needs, limit - root.size)
        return _assembled(root.schema, definitions, self._tight.names)

    def get(self, pointer: str) -> Json:
        if pointer not in self._translated:
            self._translated[pointer] = self._translator.translated(self._references.get(pointer))
        return self._translated[pointer]

    def is_circular(self, pointer: str) -> bool:
        return self._circles.contains(pointer)

    def is_endless(self, home: str | None, reference: SchemaReference) -> bool:
        """Whether a validator that follows it would come back without having looked at anything new."""
        if not reference.is_in_place or home is None:
            return False
        return self._loops.share_one(home, reference.pointer)

    def _edges_of(self, pointer: str) -> tuple[SchemaReference, ...]:
        if pointer not in self._edges:
            self._edges[pointer] = tuple(_open_references(self.get(pointer)))
        return self._edges[pointer]


class _Closer:
    """One way to close references: parts up to `limit` are put in place."""

    def __init__(self, components: Components, limit: int) -> None:
        self._components = components
        self._limit = limit
        self._parts: dict[str, _Closed] = {}
        self.names = _Names()

    def closed(self, node: Json, home: str | None) -> _Closed:
        if isinstance(node, SchemaReference):
            return self._placed(node, home)
        if is_object(node):
            items: dict[str, _Closed] = {name: self.closed(part, home) for name, part in node.items()}
            schema: Json = {name: part.schema for name, part in items.items()}
            return _joined(schema, list(items.values()), sum(len(name) + 4 for name in items))
        if is_list(node):
            parts = [self.closed(part, home) for part in node]
            return _joined([part.schema for part in parts], parts, len(parts))
        return _Closed(node, len(node) + 2 if isinstance(node, str) else 6, 0, frozenset())

    def definitions(self, needs: frozenset[str], room: int) -> tuple[int, dict[str, Json]]:
        """Everything that is needed, nearest first; what exceeds the room is None."""
        found: dict[str, Json] = {}
        waiting, size = sorted(needs), 0
        while waiting:
            further: set[str] = set()
            for pointer in waiting:
                part = self._part(pointer)
                size += part.size
                found[pointer] = part.schema if size <= room else None
                if found[pointer] is None:
                    size -= part.size
                else:
                    further |= part.needs
            waiting = sorted(further - found.keys())
        return size, found

    def _placed(self, reference: SchemaReference, home: str | None) -> _Closed:
        if self._components.is_endless(home, reference):
            return _Closed({}, 2, 0, frozenset())
        pointer = reference.pointer
        if not self._components.is_circular(pointer):
            part = self._part(pointer)
            if part.size <= self._limit and part.depth <= _DEEPEST_IN_PLACE:
                return part
        name = self.names.name_for(pointer)
        return _Closed({"$ref": f"#/$defs/{name}"}, len(name) + 20, 1, frozenset({pointer}))

    def _part(self, pointer: str) -> _Closed:
        if pointer not in self._parts:
            self._parts[pointer] = self.closed(self._components.get(pointer), pointer)
        return self._parts[pointer]


class _Names:
    """Names in `$defs`, from the last word of the pointer."""

    def __init__(self) -> None:
        self._by_pointer: dict[str, str] = {}
        self._taken: set[str] = set()

    def name_for(self, pointer: str) -> str:
        if pointer not in self._by_pointer:
            word = re.sub(r"[^A-Za-z0-9_.-]+", "_", pointer.rsplit("/", 1)[-1]) or "root"
            name, number = word, 2
            while name in self._taken:
                name, number = f"{word}_{number}", number + 1
            self._taken.add(name)
            self._by_pointer[pointer] = name
        return self._by_pointer[pointer]


def _joined(schema: Json, parts: list[_Closed], size: int) -> _Closed:
    needs = frozenset[str]().union(*(part.needs for part in parts if part.needs))
    depth = max((part.depth for part in parts), default=0) + 1
    return _Closed(schema, size + 2 + sum(part.size for part in parts), depth, needs)


def _assembled(root: Json, definitions: dict[str, Json], names: _Names) -> Object:
    if not definitions:
        return root
    parts = {
        names.name_for(pointer): _LEFT_OUT if part is None else part for pointer, part in definitions.items()
    }
    return {**root, "$defs": dict(sorted(parts.items()))}


def _open_references(node: Json) -> Iterator[SchemaReference]:
    if isinstance(node, SchemaReference):
        yield node
    elif is_object(node):
        for part in node.values():
            yield from _open_references(part)
    elif is_list(node):
        for part in node:
            yield from _open_references(part)
