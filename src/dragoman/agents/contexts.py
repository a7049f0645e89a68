"""Sources of an answer: what each call brought, under a name that the answer can cite."""

from dragoman.agents.offers import Context
from dragoman.agents.work import Work
from dragoman.tool import ToolOutput


def contexts_of(output: ToolOutput, known: int, work: Work) -> tuple[Context, ...]:
    """None for an agent that does not cite."""
    return ()
