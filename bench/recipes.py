"""What a recipe saves: jobs that are done again by a connector's agent with 117 tools, with and without one.

The model decides from what it is offered, over real HTTP (`tests/servers/rule_model.py`): it searches for a
tool that it does not see, and takes one that a recipe names. Each job is asked twice with other values;
between both its run is kept, or that of another job under its question.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import lab
from dragoman import Hub
from dragoman.run import Run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from servers.rule_model import RuleModel  # noqa: E402  # pyright: ignore
from servers.scripted_hubs import open_scripted  # noqa: E402  # pyright: ignore

CATALOGUE = HERE.parent / "tests" / "data" / "tool-search" / "github_mcp_tools.json"
# Twice the same with other values.
JOBS = (
    ('List the issues of owner "octocat" in repo "xyne"', 'List the issues of owner "hubot" in repo "web"'),
    ('Which branches has repo "xyne" of owner "octocat"', 'Which branches has repo "web" of owner "hubot"'),
    ('List the commits of owner "octocat" in repo "xyne"', 'List the commits of owner "hubot" in repo "web"'),
    ('Which releases has repo "xyne" of owner "octocat"', 'Which releases has repo "web" of owner "hubot"'),
    ('List the tags of owner "octocat" in repo "xyne"', 'List the tags of owner "hubot" in repo "web"'),
)
OTHER = "Get me"  # a job that has nothing to do with them
Keeping = Callable[[Hub, Run], Awaitable[None]]


async def helpful(hub: Hub, run: Run) -> None:
    await hub.recipes.keep(run.id)


async def unhelpful(hub: Hub, run: Run) -> None:
    """The steps of another job under the question of this one."""
    other = await _done(hub, OTHER)
    for view in await hub.recipes.keep(other.id):
        await hub.recipes.edit(view.recipe.id, question=run.request)


async def measure(keep: Keeping, jobs: Sequence[tuple[str, str]]) -> tuple[list[Run], list[Run]]:
    """The first run of each job, and the second."""
    before: list[Run] = []
    after: list[Run] = []
    with TemporaryDirectory() as place:
        async with open_scripted(Path(place) / "home", RuleModel()) as (hub, _):
            await hub.people.update_workspace("local", recipes=True)
            program = [str(HERE / "catalog_server.py"), str(CATALOGUE), "3"]
            await hub.connectors.add(
                "github", command=sys.executable, sandbox="none", args=program, approval="never"
            )
            await hub.agents.update("github", exposure="search")
            for first, again in jobs:
                before.append(await _done(hub, first))
                await keep(hub, before[-1])
                after.append(await _done(hub, again))
                for view in await hub.recipes.list():  # the next job begins without any
                    await hub.recipes.delete(view.recipe.id)
    return before, after


async def _done(hub: Hub, text: str) -> Run:
    async with asyncio.timeout(lab.PATIENCE):
        run = await hub.ask(f"@github {text}")
    assert (run.status, run.exposure, run.usage.calls) == ("done", "search", 1), (text, run)
    return run


def requests(runs: Sequence[Run]) -> int:
    return sum(run.usage.requests for run in runs)


def main() -> None:
    given = lab.options(__doc__ or "", jobs=(len(JOBS), "how many of the jobs"))
    report = lab.Report("recipes")
    none, with_one = asyncio.run(measure(helpful, JOBS[: given.jobs]))
    _, with_another = asyncio.run(measure(unhelpful, JOBS[: given.jobs]))
    found = {"none": none, "helpful": with_one, "unhelpful": with_another}
    report.table(
        f"{given.jobs} jobs asked again of a connector's agent with 117 tools",
        ["recipe", "requests", "per job", "tool calls"],
        [
            [name, requests(runs), f"{requests(runs) / len(runs):.1f}", sum(run.usage.calls for run in runs)]
            for name, runs in found.items()
        ],
    )
    saved = 1 - requests(found["helpful"]) / requests(found["none"])
    report.verdict("a recipe saves at least a third of the requests", f"{saved:.0%}", met=saved >= 1 / 3)
    more = requests(found["unhelpful"]) - requests(found["none"])
    report.verdict("one that does not help costs no request", f"{more:+d}", met=more <= 0)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
