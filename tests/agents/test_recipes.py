"""Recipes: what is kept of a run, whose it is, and what later runs get of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import BoundHub, Caller, Hub
from dragoman.errors import Conflict, Denied, InvalidArguments, LimitReached, NotFound
from dragoman.hub import recipes as hub_recipes
from dragoman.recipe import LONGEST_TEXT
from dragoman.run import Run
from servers.rule_model import Fault, RuleModel
from servers.samples import sample
from servers.scripted_hubs import open_scripted

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SEND = '@email Send an email to ann@example.com with subject "Quarterly figures" and text "They are good"'
ALSO = '@email Send an email to bob@example.org with subject "Lunch" and text "At noon?"'
OTHER = "@email Check my 2 latest emails"
SHAPE = "1. mcp_email_send-email(to: array, subject: string, body: string)"
BOB = Caller(user="bob")


@asynccontextmanager
async def kitchen(tmp_path: Path, *, on: bool = True) -> AsyncGenerator[tuple[Hub, RuleModel]]:
    """A hub with a mailbox and a tracker, where people may keep recipes."""
    model = RuleModel()
    async with open_scripted(tmp_path / "home", model) as (hub, _):
        await hub.connectors.add(
            "email", description="a mailbox: e-mail", shared=True, **sample("email", tmp_path)
        )
        about = "issues of repositories"
        await hub.connectors.add("tracker", description=about, shared=True, **sample("tracker", tmp_path))
        if on:
            await hub.people.update_workspace("local", recipes=True)
        yield hub, model


async def done(hub: BoundHub, text: str, **options: Any) -> Run:
    """The finished run; every approval is given."""
    accepted = await hub.messages.post(text, options=options)
    async for event in hub.runs.follow(accepted.run.id):
        if event.kind == "approval.requested":
            await hub.approvals.answer(event.data["approval"], "once")
    return await hub.runs.get(accepted.run.id)


async def prompt(hub: BoundHub, run: Run) -> str:
    """The instructions of the last agent that worked in it."""
    return (await hub.runs.prompts(run.id))[-1].instructions[0]


async def notices(hub: BoundHub, run: Run) -> list[str]:
    return [one.data["text"] for one in (await hub.runs.view(run.id)).events if one.kind == "notice"]


async def test_a_run_is_kept_by_the_shapes_of_its_calls_without_a_value(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as (hub, _):
        run = await done(hub, SEND)
        (view,) = await hub.recipes.keep(run.id)
        assert (view.connector, view.recipe.text) == ("email", SHAPE)
        assert view.recipe.tools == ("mcp_email_send-email",)
        for value in ("ann@example.com", "Quarterly", "They are good"):
            assert value not in view.recipe.question
        assert "Send an email" in view.recipe.question
        again = await hub.recipes.keep(run.id)
        assert [one.recipe for one in again] == [view.recipe]
        assert [one.recipe for one in await hub.recipes.list()] == [view.recipe]
        assert (await hub.runs.get(view.recipe.run)).id == run.id


async def test_a_run_that_handed_on_is_kept_for_each_connectors_agent_that_did_a_part(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as (hub, _):
        text = "Check my 2 latest emails, then list the issues in xyne"
        run = await done(hub, text, exposure="delegate")
        kept = await hub.recipes.keep(run.id)
        assert {one.connector for one in kept} == {"email", "tracker"}
        assert {one.connector for one in await hub.recipes.list("tracker")} == {"tracker"}
        direct = await done(hub, OTHER.removeprefix("@email "), exposure="direct")
        with pytest.raises(Conflict, match="no agent of a connector"):
            await hub.recipes.keep(direct.id)


async def test_the_nearest_recipe_is_an_example_in_later_runs_of_the_same_agent(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as (hub, _):
        (kept,) = await hub.recipes.keep((await done(hub, SEND)).id)
        like, unlike = await done(hub, ALSO), await done(hub, OTHER)
        assert f"<data {(await prompt(hub, like)).split('<data ')[-1]}".count(SHAPE) == 1
        assert any(kept.recipe.id in text for text in await notices(hub, like))
        assert SHAPE not in await prompt(hub, unlike)
        assert not any(kept.recipe.id in text for text in await notices(hub, unlike))
        await hub.recipes.edit(kept.recipe.id, text="1. send it twice")
        assert "1. send it twice" in await prompt(hub, await done(hub, ALSO))
        await hub.tools.disable("mcp_email_send-email")
        assert "1. send it twice" not in await prompt(hub, await done(hub, ALSO))
        await hub.tools.enable("mcp_email_send-email")
        await hub.people.update_workspace("local", recipes=False)
        assert "1. send it twice" not in await prompt(hub, await done(hub, ALSO))


async def test_what_is_shared_is_the_edited_text_and_the_recipe_stays_its_users(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as (hub, _):
        (kept,) = await hub.recipes.keep((await done(hub, SEND)).id)
        bob = hub.acting_for(BOB)
        assert await bob.recipes.list() == []
        assert SHAPE not in await prompt(bob, await done(bob, ALSO))
        shared = await hub.recipes.share(kept.recipe.id, text="1. send it, politely")
        assert [one.recipe.id for one in await bob.recipes.list()] == [shared.recipe.id]
        told = await prompt(bob, await done(bob, ALSO))
        assert "1. send it, politely" in told
        assert SHAPE not in told
        assert (await hub.recipes.get(kept.recipe.id)).recipe == kept.recipe
        for act in (bob.recipes.edit(shared.recipe.id, text="x"), bob.recipes.delete(shared.recipe.id)):
            with pytest.raises(Denied):
                await act
        with pytest.raises(NotFound):
            await bob.recipes.get(kept.recipe.id)
        await hub.recipes.share(kept.recipe.id, text="1. send it, briefly")
        await hub.recipes.delete(kept.recipe.id)
        assert [one.recipe.text for one in await bob.recipes.list()] == ["1. send it, briefly"]
        await hub.recipes.delete(shared.recipe.id)
        assert await bob.recipes.list() == []


async def test_who_may_not_keep_and_what_is_not_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kitchen(tmp_path, on=False) as (hub, model):
        run = await done(hub, OTHER)
        with pytest.raises(Conflict, match="switched off"):
            await hub.recipes.keep(run.id)
        await hub.people.update_workspace("local", recipes=True)
        for other in (Caller(way="agent"), Caller(way="mcp"), Caller(agent="assistant")):
            with pytest.raises(Denied, match="only a person"):
                await hub.acting_for(other).recipes.keep(run.id)
        with pytest.raises(NotFound):
            await hub.acting_for(BOB).recipes.keep(run.id)
        await hub.runs.thumb(run.id, -1)
        with pytest.raises(Conflict, match="thumb down"):
            await hub.recipes.keep(run.id)
        await hub.runs.thumb(run.id, 1)
        (kept,) = await hub.recipes.keep(run.id)
        model.faults = [Fault("garbage")]
        with pytest.raises(Conflict, match="did not end with an answer"):
            await hub.recipes.keep((await done(hub, OTHER)).id)
        model.faults = []
        for texts in ({"text": " "}, {"question": ""}, {"text": "x" * (LONGEST_TEXT + 1)}):
            with pytest.raises(InvalidArguments):
                await hub.recipes.edit(kept.recipe.id, **texts)
        monkeypatch.setattr(hub_recipes, "MOST_RECIPES", 1)
        with pytest.raises(LimitReached):
            await hub.recipes.keep((await done(hub, OTHER)).id)
