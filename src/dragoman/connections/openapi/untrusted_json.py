"""JSON written by strangers, looked at without trust: the wrong kind of value counts as an empty one."""

from typing import Any, TypeGuard

Json = Any
Object = dict[str, Any]


class DocumentFault(Exception):
    """The whole document cannot be used. The message is for the person who configured it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class OperationFault(Exception):
    """One operation cannot be offered; the others can."""


def is_object(value: Json) -> TypeGuard[Object]:
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def as_object(value: Json) -> Object:
    return value if is_object(value) else {}


def as_list(value: Json) -> list[Any]:
    return value if is_list(value) else []


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else ""
