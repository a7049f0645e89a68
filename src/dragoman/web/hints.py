"""Hints by HTTP: in the words of REST, or as commands where it is the command line that asks."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated, Any

from pydantic import BeforeValidator
from starlette.types import Scope

from dragoman.hints import Words, worded

_BY_COMMAND = (b"dragoman-hints", b"command")
# Whoever asks is known where a request comes in; hints are told where its answer is made.
_WORDS: ContextVar[Words] = ContextVar("hint_words", default="rest")


def choose_words(scope: Scope) -> None:
    """For the rest of this request."""
    _WORDS.set("command" if _BY_COMMAND in map(tuple, scope["headers"]) else "rest")


def told(hint: str | None) -> str | None:
    """A hint in the words of whoever asks."""
    return worded(hint, _WORDS.get())


def _told_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {**error, "hint": told(error.get("hint"))} if error and error.get("hint") else error  # pyright: ignore[reportReturnType]


Hint = Annotated[str | None, BeforeValidator(told)]
RunError = Annotated[dict[str, Any] | None, BeforeValidator(_told_error)]
