"""Names of tools out of a document, and which operations are wanted. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dragoman.connections.openapi.untrusted_json import Object, as_list, as_object, as_text

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class FoundOperation:
    """One operation where it stands in the document."""

    name: str
    method: str
    path: str
    item: Object
    operation: Object

    @property
    def where(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Which operations become tools: each list that is not empty narrows, and `exclude` wins."""

    tags: Sequence[str] = ()
    paths: Sequence[str] = ()
    methods: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def takes(self, found: FoundOperation) -> bool:
        tags = [as_text(tag) for tag in as_list(found.operation.get("tags"))]
        names = (found.name, as_text(found.operation.get("operationId")), found.where)
        return (
            (not self.tags or any(_fits(tag, self.tags) for tag in tags))
            and (not self.paths or _fits(found.path, self.paths))
            and (not self.methods or found.method in {method.lower() for method in self.methods})
            and (not self.include or any(_fits(name, self.include) for name in names if name))
            and not any(_fits(name, self.exclude) for name in names if name)
        )


class OperationNames:
    """Gives each operation of a document one name: its id, else method and path; no two alike."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, method: str, path: str, operation: Object) -> str:
        fallback = _legal(f"{method} {path}")
        own = _legal(str(operation.get("operationId") or ""))
        for name in (own or fallback, f"{own}_{fallback}" if own else fallback):
            if name not in self._taken:
                self._taken.add(name)
                return name
        number = 2
        while f"{fallback}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{fallback}_{number}")
        return f"{fallback}_{number}"


def description_of(found: FoundOperation) -> str:
    """Summary, then description; the path where there is neither."""
    operation, item = found.operation, as_object(found.item)
    summary = as_text(operation.get("summary") or item.get("summary")).strip()
    text = as_text(operation.get("description") or item.get("description")).strip()
    parts = [summary] if summary and not text.startswith(summary) else []
    parts += [text] if text else []
    words = "\n\n".join(parts) or found.where
    if operation.get("deprecated") is True:
        words = f"(deprecated) {words}"
    return words if len(words) <= 4000 else f"{words[:3999]}…"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("_", text).strip("_")[:200]


def _fits(word: str, patterns: Sequence[str]) -> bool:
    return any(word == pattern or fnmatchcase(word, pattern) for pattern in patterns)
