"""How jobs like this were done before: nothing to call, an example in the prompt of a connector's agent."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from dragoman.agents.fences import fenced, one_line
from dragoman.agents.offers import Offer
from dragoman.agents.work_context import WorkContext
from dragoman.recipe import Recipe

FindRecipes = Callable[[WorkContext, Collection[str]], Awaitable[Sequence[Recipe]]]
"""Those that are near enough to what the run is asked, and need no other tools than these."""
_LONGEST_LINE = 200
_EXAMPLE = (
    "A job like yours was done before. Where it fits, do it in the same steps, with the values of your own"
    " job; where it does not, leave it."
)


class RecipeOffers:
    """Fills `Offers`."""

    def __init__(self, find: FindRecipes) -> None:
        self._find = find

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        return []

    async def instructions(self, work: WorkContext) -> str:
        names = [tool.name for tool in await work.toolbox.tools(work.caller)]
        recipes = await self._find(work, names)
        if not recipes:
            return ""
        for recipe in recipes:
            work.loaded.update(dict.fromkeys(recipe.tools))  # need not be searched for
            work.services.tell_notice(
                f"has the recipe {recipe.id} as an example: {one_line(recipe.question, _LONGEST_LINE)}"
            )
        examples = "\n\n".join(f"Asked: {one.question}\nDone:\n{one.text}" for one in recipes)
        return f"{_EXAMPLE}\n{fenced(examples)}"
