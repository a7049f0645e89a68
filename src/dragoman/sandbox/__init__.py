"""Code that a model wrote, run where it can reach nothing but tools. The only home of pydantic_monty, which
`pool` and what it imports need; the rest does without."""

from dragoman.sandbox.namespace import callable_from_code
from dragoman.sandbox.outcome import CodeError, CodeLimits, CodeOutput, CodeServices, CountTokens
from dragoman.sandbox.sandbox import CodeSandbox, guide

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
