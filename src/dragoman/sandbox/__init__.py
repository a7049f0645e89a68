"""Code that a model wrote, run where it can reach nothing but tools. The only home of pydantic_monty."""

from dragoman.sandbox.callers import callable_from_code
from dragoman.sandbox.code_run import CodeServices
from dragoman.sandbox.guide import guide
from dragoman.sandbox.limits import CodeLimits
from dragoman.sandbox.outcome import CodeError, CodeOutput, CountTokens
from dragoman.sandbox.sandbox import CodeSandbox

__all__ = (
    "CodeError",
    "CodeLimits",
    "CodeOutput",
    "CodeSandbox",
    "CodeServices",
    "CountTokens",
    "callable_from_code",
    "guide",
)
