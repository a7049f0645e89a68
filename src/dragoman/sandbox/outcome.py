"""How much a run of code may use, what it reaches, and what came of it: frozen values that travel."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.scope import Caller
from dragoman.tool import CallObserver, Json, Tool, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """`execution` counts only while the code itself computes; `wall` also counts waiting and calls.

    `output` is what is printed and returned together; `arguments` what one call may be given, `result`
    what one call may hand to the code; all in bytes. `processes` run at once, of one user `per_user`.
    """

    execution: float = 30.0
    wall: float = 300.0
    memory: int = 128 * 1024 * 1024
    calls: int = 200
    output: int = 64 * 1024
    code: int = 256 * 1024
    arguments: int = 4 * 1024 * 1024
    result: int = 16 * 1024 * 1024
    processes: int = 8
    per_user: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeServices:
    """How a run reaches what is outside: the road, search, and the whole of a result that was cut."""

    call: Callable[[str, Mapping[str, Any], Caller, CallObserver], Awaitable[ToolOutput]]
    search: Callable[[str, int, Caller], Awaitable[list[Tool]]]
    whole: Callable[[str, Caller], Awaitable[tuple[bytes, str]]]


CodeFault = Literal[
    "code_timeout",
    "code_memory",
    "code_calls",
    "code_output",
    "code_syntax",
    "code_error",
    "code_crashed",
    "code_busy",
]
CountTokens = Callable[[bytes], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeError:
    """Why the code has no result, in words by which a model can mend it. `line` counts from 1."""

    code: CodeFault
    message: str
    hint: str | None = None
    traceback: str | None = None
    line: int | None = None


class CodeEnded(Exception):
    """The run has no result; inside the sandbox only."""

    def __init__(self, error: CodeError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOutput:
    """What is printed and returned is all that comes back. `tokens_outside` is what a model did not have
    to read: the results of all calls, without what came back. `cost` is in dollars, of tools with a price."""

    ok: bool
    result: Json = None
    printed: str = ""
    calls: int = 0
    tokens_outside: int = 0
    cost: float = 0.0
    duration_ms: float = 0.0
    error: CodeError | None = None
