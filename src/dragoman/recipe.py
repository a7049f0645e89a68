"""How a job was done: a frozen value that travels, and the limits of its texts.

Knows no run, no store and no door.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from dragoman.errors import InvalidArguments

LONGEST_QUESTION = 1_000
LONGEST_TEXT = 4_000
MOST_RECIPES = 200
"""Of one user, and of a workspace as shared ones."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What was asked of a connector's agent, and the steps by which it was done, for runs of the same agent.

    `owner` is the user who kept it, and "" where it is the workspace's. `tools` are those that the run
    called: where one is missing, the recipe is no use. `run` is where it comes from; a shared one has none.
    """

    id: str
    workspace: str
    owner: str
    connector_id: str
    question: str
    text: str
    tools: tuple[str, ...]
    run: str = ""
    created_at: datetime = field(default_factory=_now)
    updated_at: datetime = field(default_factory=_now)
    revision: int = field(default=0, compare=False, repr=False)

    @property
    def is_shared(self) -> bool:
        return not self.owner


def recipe_id(run: str) -> str:
    """One run has one recipe, however often it is kept."""
    return f"recipe_{run.removeprefix('run_')}"


def shared_id(recipe: str) -> str:
    """Of the text that is shared of it: shared again, it is replaced."""
    return f"shared_{recipe.removeprefix('recipe_')}"


def checked_texts(question: str, text: str) -> tuple[str, str]:
    """Without blanks at their ends; `InvalidArguments` for what is empty or too long."""
    question, text = question.strip(), text.strip()
    for name, value, most in (("question", question, LONGEST_QUESTION), ("text", text, LONGEST_TEXT)):
        if not value:
            raise InvalidArguments(f"the {name} of a recipe cannot be empty", hint="or delete the recipe")
        if len(value) > most:
            raise InvalidArguments(
                f"the {name} of a recipe has at most {most:,} characters, not {len(value):,}",
                hint="keep what others need to do it again",
            )
    return question, text
