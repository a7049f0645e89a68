"""Documents that a later version of Dragoman wrote: nodes of two versions work side by side while a deploy
lasts.

A field that this version does not know is passed over when a document is read, and kept when it is written
again. What people give is another matter: a field of theirs that nobody knows is an error.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel

Fact = TypeVar("Fact")


@dataclasses.dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document of a row that is written again: `beside` has it with what is stored and not known here."""

    document: Any
    beside: Callable[[Any], Any]


def known_to(kind: type[Fact], document: Mapping[str, Any]) -> Fact:
    """A dataclass of those facts that it has a field for."""
    names = _names(kind)
    if not document.keys() <= names:
        document = {name: value for name, value in document.items() if name in names}
    return kind(**document)


def kept_facts(kind: type, document: dict[str, Any]) -> KeptDocument:
    """Of a dataclass."""
    names = _names(kind)

    def beside(stored: dict[str, Any] | None) -> dict[str, Any]:
        later = {name: value for name, value in (stored or {}).items() if name not in names}
        return {**later, **document}

    return KeptDocument(document, beside)


def with_later(document: dict[str, Any], kind: type[BaseModel], stored: Mapping[str, Any]) -> dict[str, Any]:
    """The document with those fields of what is stored that its kind, or one in it, does not know. Of what is
    no longer in the document, nothing is kept.
    """
    return _joined(document, kind.model_validate(stored, extra="allow"))


def _joined(document: dict[str, Any], stored: BaseModel) -> dict[str, Any]:
    for name in stored.model_fields_set & document.keys():
        inner, now = getattr(stored, name), document[name]
        if isinstance(inner, BaseModel) and isinstance(now, dict):
            document = {**document, name: _joined(cast("dict[str, Any]", now), inner)}
    return {**(stored.model_extra or {}), **document}


@cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(one.name for one in dataclasses.fields(cast("Any", kind)))
