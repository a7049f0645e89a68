"""Recipes as people handle them: keep a run as one, look, edit, share, delete. Who may is decided here.

A recipe is its user's alone. What an admin shares of one of theirs is a text of its own, for everybody in the
workspace who sees the connector. Only people write recipes: what agents read later is not theirs to write.
"""

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dragoman.access.approvals import is_person
from dragoman.agents import preload
from dragoman.connector import Connector
from dragoman.errors import Conflict, Denied, LimitReached, NotFound
from dragoman.events import Event
from dragoman.hub.agents import Agents
from dragoman.hub.bound import BoundService
from dragoman.hub.revisions import revised
from dragoman.hub.runs import Runs
from dragoman.hub.tools import callable_tools
from dragoman.recipe import MOST_RECIPES, Recipe, checked_texts, recipe_id, shared_id
from dragoman.run import Run, Step

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime
    from dragoman.runs.recipe_drafts import RecipeDraft

_MOST_OFFERED = 2
_NO_WORDS = re.compile(r"<\w+>|(?<!\w)@[\w-]+")  # placeholders, and whom it was written to


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeView:
    """A recipe, and the connector whose agent it is for."""

    recipe: Recipe
    connector: str
    may_change: bool
    may_share: bool


class Recipes(BoundService):
    """A recipe is its user's alone; what is shared of it is the workspace's, and its admins' to change."""

    __slots__ = ()

    async def is_on(self) -> bool:
        """Whether the caller's workspace keeps recipes, and its runs get them."""
        return (await self._runtime.directory.of(self._caller)).workspace.recipes

    async def list(self, connector: str | None = None) -> Sequence[RecipeView]:
        """The caller's own and those of the workspace, newest first; of one connector or of all."""
        caller, registry = self._caller, self._runtime.registry
        of_one = None if connector is None else registry.get(connector, caller).id
        found = await self._runtime.store.recipes.list(caller.workspace, caller.user, of_one)
        seen = {one.id: one for one in registry.list(caller)}
        return [self._view(one, seen[one.connector_id]) for one in found if one.connector_id in seen]

    async def get(self, recipe: str) -> RecipeView:
        """One recipe by its id. Raises `NotFound`."""
        caller = self._caller
        found = await self._runtime.store.recipes.find(caller.workspace, recipe)
        if found is not None and found.owner in ("", caller.user):
            connectors = self._runtime.registry.list(caller)
            if connector := next((one for one in connectors if one.id == found.connector_id), None):
                return self._view(found, connector)
        raise NotFound(
            f"there is no recipe {recipe[:80]!r}", hint="dragoman recipes list shows those there are"
        )

    async def keep(self, run: str) -> Sequence[RecipeView]:
        """Keeps how a run was done: one recipe for each connector's agent that did a part of it.

        That is the run itself or whatever it handed to others. Kept before, it stays as it is.
        """
        self._check_person()
        await self._check_on()
        runs = Runs(self._runtime, self._caller)
        journals = await runs.journals(run)
        root = journals[0][0]
        if root.status != "done":
            raise Conflict(f"the run {root.id} did not end with an answer", hint="keep one that did")
        if await runs.is_disliked(root):
            raise Conflict(f"the answer of {root.id} has a thumb down", hint="take the thumb back first")
        kept = [view for one, steps in journals if (view := await self._kept(one, steps))]
        if not kept:
            raise Conflict(
                f"no agent of a connector called a tool with success in {root.id}",
                hint="write to the agent of a connector, as in: @NAME do it",
            )
        return kept

    async def edit(self, recipe: str, *, question: str | None = None, text: str | None = None) -> RecipeView:
        """Changes what is given. One that is shared is the admins' to change."""

        async def change(before: Recipe) -> Recipe:
            return _with_texts(before, question, text)

        async def read(before: Recipe) -> Recipe:
            return (await self._changeable(before.id)).recipe

        view = await self._changeable(recipe)
        _, after = await revised(view.recipe, change, self._write, read)
        if after != view.recipe:
            await self._tell(after, "edited", view.connector)
        return replace(view, recipe=after)

    async def share(self, recipe: str, *, question: str | None = None, text: str | None = None) -> RecipeView:
        """Has everybody in the workspace use this text; the recipe itself stays its user's. For admins.

        Shared again, the text takes the place of the one before.
        """
        view = await self._changeable(recipe)
        await self._check_on()
        if not self._caller.is_admin:
            raise Denied("only an admin of the workspace shares a recipe", hint="give the text to an admin")
        own = view.recipe
        if own.is_shared:
            raise Conflict(f"{own.id} is shared already", hint="edit it: dragoman recipes edit")
        before = await self._runtime.store.recipes.find(own.workspace, shared_id(own.id)) or replace(
            own, id=shared_id(own.id), owner="", run="", created_at=datetime.now(UTC), revision=0
        )
        asked, done = own.question if question is None else question, own.text if text is None else text
        after = _with_texts(before, asked, done)
        if after != before or not before.revision:
            await self._write(after)
            await self._tell(after, "shared", view.connector)
        return await self.get(after.id)

    async def delete(self, recipe: str) -> None:
        """For good. A text that was shared of it stays until an admin deletes that."""
        view = await self._changeable(recipe)
        await self._runtime.store.recipes.remove(view.recipe.workspace, view.recipe.id)
        await self._tell(view.recipe, "deleted", view.connector)

    async def near(self, connector_id: str, question: str, tools: Collection[str]) -> Sequence[Recipe]:
        """For a run of the connector's agent: those that were asked nearly the same, the nearest first.

        None where the workspace has recipes switched off, and none that needs another tool than these.
        """
        if not await self.is_on():
            return []
        caller, known = self._caller, {*tools}
        rows = await self._runtime.store.recipes.list(caller.workspace, caller.user, connector_id)
        usable = [one for one in rows if known.issuperset(one.tools)]
        if not usable:
            return []
        question, *asked = (_NO_WORDS.sub(" ", one) for one in (question, *(one.question for one in usable)))
        return [usable[place] for place in await self._runtime.search.nearest(question, asked, _MOST_OFFERED)]

    # Parts

    async def _kept(self, run: Run, steps: Sequence[Step]) -> RecipeView | None:
        """None where it is no run of a connector's agent, or none that called a tool with success."""
        caller = self._caller
        agent = await Agents(self._runtime, caller).find(run.agent) if run.agent else None
        connector = agent and self._runtime.registry.find(agent.connector_id or "", caller)
        if run.status != "done" or not connector:
            return None
        draft = await self._draft(run, steps, connector)
        if draft is None:
            return None
        question, text = checked_texts(draft.question, draft.text)
        recipe = Recipe(
            id=recipe_id(run.id),
            workspace=caller.workspace,
            owner=caller.user,
            connector_id=connector.id,
            question=question,
            text=text,
            tools=draft.tools,
            run=run.id,
        )
        known = await self._runtime.store.recipes.find(recipe.workspace, recipe.id)
        if known is None:
            await self._write(recipe)
            await self._tell(recipe, "kept", connector.slug)
        return self._view(known or recipe, connector)

    async def _draft(self, run: Run, steps: Sequence[Step], connector: Connector) -> "RecipeDraft | None":
        infos = await callable_tools(self._runtime, self._caller, "agent")
        tools = {info.shown_tool.name: info.shown_tool for info in infos}
        own = {name: tool for name, tool in tools.items() if tool.connector_id == connector.id}

        def read() -> "RecipeDraft | None":
            preload.load()
            from dragoman.runs.recipe_drafts import draft_of

            return draft_of(run, steps, own, self._runtime.engine.previews.text)

        # In a thread: it may be the first that needs pydantic-ai, and a journal may be long.
        return await asyncio.to_thread(read)

    async def _changeable(self, recipe: str) -> RecipeView:
        self._check_person()
        view = await self.get(recipe)
        if not view.may_change:
            raise Denied("only an admin of the workspace changes what is shared", hint="ask an admin")
        return view

    async def _write(self, recipe: Recipe) -> None:
        if not await self._runtime.store.recipes.put(recipe, MOST_RECIPES):
            whose = "the workspace shares" if recipe.is_shared else "you have"
            raise LimitReached(
                f"{whose} {MOST_RECIPES} recipes already", hint="make room: dragoman recipes delete"
            )

    async def _tell(self, recipe: Recipe, what: str, connector: str) -> None:
        tell_recipe(self._runtime, recipe.workspace, recipe.owner, recipe.id, what)
        await self._runtime.auditor.done(
            self._caller, f"recipe.{what}", recipe.id, details={"connector": connector}
        )

    async def _check_on(self) -> None:
        workspace = self._caller.workspace
        if not await self.is_on():
            raise Conflict(
                "recipes are switched off in this workspace",
                hint=f"an admin switches them on: dragoman workspaces update {workspace} --recipes",
            )

    def _check_person(self) -> None:
        if not is_person(self._caller):
            raise Denied(
                "only a person writes recipes",
                hint="a person does, in the console or with a key of their own",
            )

    def _view(self, recipe: Recipe, connector: Connector) -> RecipeView:
        is_admin = self._caller.is_admin
        return RecipeView(
            recipe=recipe,
            connector=connector.slug,
            may_change=not recipe.is_shared or is_admin,
            may_share=not recipe.is_shared and is_admin,
        )


def tell_recipe(runtime: "Runtime", workspace: str, owner: str, recipe: str, what: str) -> None:
    """Whom it concerns: its user, or everybody where it is shared."""
    runtime.events.publish(
        Event(kind="recipe.changed", workspace=workspace, user=owner, data={"id": recipe, "what": what})
    )


def _with_texts(recipe: Recipe, question: str | None, text: str | None) -> Recipe:
    asked, done = checked_texts(
        recipe.question if question is None else question, recipe.text if text is None else text
    )
    if (asked, done) == (recipe.question, recipe.text):
        return recipe
    return replace(recipe, question=asked, text=done, updated_at=datetime.now(UTC))
