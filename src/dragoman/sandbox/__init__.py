"""Code that a model wrote, run where it can reach nothing but tools. The only home of pydantic_monty."""

from dragoman.sandbox.callers import callable_from_code
from dragoman.sandbox.guide import guide
from dragoman.sandbox.limits import CodeLimits
from dragoman.sandbox.outcome import CodeError, CodeOutput, CountTokens
from dragoman.sandbox.sandbox import Sandbox
from dragoman.sandbox.work import Ways

__all__ = (
    "CodeError",
    "CodeLimits",
    "CodeOutput",
    "CountTokens",
    "Sandbox",
    "Ways",
    "callable_from_code",
    "guide",
)
