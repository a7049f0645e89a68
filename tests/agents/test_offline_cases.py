"""How often the offline model does what was meant, on services that its code does not know."""

import ast
import json
import re
import time
from pathlib import Path

import pytest
from offline_sets import ASK_PERSON, Case, calls_in, cases, respond, sets, text_in
from pydantic_ai.tools import ToolDefinition

import dragoman.agents.offline
from public_data import GITHUB_TOOLS

pytestmark = pytest.mark.anyio

PACKAGE = Path(dragoman.agents.offline.__file__).parent
# What the services of the cases and samples speak of.
DOMAIN = set(
    """
    email e-mail mail mails inbox mailbox subject sender issue issues repository repositories repo channel
    channels tracker chat weather forecast calendar attendee bread bakery oven library loan isbn member
    greenhouse sensor harvest hotel guest garage vehicle octocat github slack
    """.split()  # noqa: SIM905
)


async def is_right(case: Case) -> bool:
    response = await respond(case.ask, [*case.tools, ASK_PERSON], case.instructions)
    found = calls_in(response)
    if case.call is None:
        return found == []
    if case.missing:
        ((name, arguments),) = found or [("", {})]
        return name == "ask_person" and arguments.get("fields") == case.missing
    return found == [(case.call, case.arguments)]


@pytest.mark.parametrize(
    "case", [case for case in cases() if "latest emails" in case.ask or "test email" in case.ask]
)
async def test_the_first_things_people_try_work(case: Case) -> None:
    assert await is_right(case)


async def test_most_requests_become_the_call_that_was_meant() -> None:
    meant = [case for case in cases() if case.call is not None]
    wrong = [case.ask for case in meant if not await is_right(case)]
    assert len(meant) >= 60
    assert len({id(case.tools) for case in meant}) >= 6
    assert len(wrong) / len(meant) <= 0.1, wrong


async def test_what_fits_nothing_calls_nothing() -> None:
    strangers = [case for case in cases() if case.call is None]
    assert len(strangers) >= 8
    assert [case.ask for case in strangers if not await is_right(case)] == []


async def test_reading_never_changes_anything() -> None:
    """Whatever is asked for in order to read, no tool that only changes is called, in any service."""
    changing = {
        "send",
        "create",
        "delete",
        "update",
        "post",
        "order",
        "cancel",
        "move",
        "write",
        "set",
        "stop",
    }
    for tools in sets().values():
        for ask in (
            "check my latest ones",
            "show everything",
            "what is new?",
            "list all of it",
            "find the order",
        ):
            for name, _ in calls_in(await respond(ask, tools)):
                assert not set(re.split(r"[_-]", name)) & changing, (ask, name)


async def test_a_published_server_is_used_without_knowing_it() -> None:
    tools = [
        ToolDefinition(
            name=tool["name"],
            description=tool["description"],
            parameters_json_schema=tool["inputSchema"],
            metadata={"annotations": tool.get("annotations", {})},
        )
        for tool in json.loads(GITHUB_TOOLS.read_text())
    ]
    place = {"owner": "octo", "repo": "hello"}
    wanted = {
        "list the branches of repository hello owned by octo": ("list_branches", place),
        "create a branch named fix-login in owner octo repo hello": (
            "create_branch",
            {**place, "branch": "fix-login"},
        ),
        "search repositories for vector database": ("search_repositories", {"query": "vector database"}),
        "search code for parse_config": ("search_code", {"query": "parse_config"}),
        "star repository hello of owner octo": ("star_repository", place),
        "list releases of owner octo repo hello": ("list_releases", place),
        "fork the repository hello of owner octo": ("fork_repository", place),
        "merge pull request 5 in owner octo repo hello": ("merge_pull_request", {**place, "pullNumber": 5}),
        "list my notifications": ("list_notifications", {}),
        "create a repository named demo": ("create_repository", {"name": "demo"}),
        "get the latest release of owner octo repo hello": ("get_latest_release", place),
        "list open issues in octo/hello": ("list_issues", {**place, "state": "OPEN"}),
    }
    found = {ask: calls_in(await respond(ask, tools))[:1] for ask in wanted}
    wrong = {ask: found[ask] for ask, call in wanted.items() if found[ask] != [call]}
    assert len(wrong) <= 1, wrong
    assert calls_in(await respond("delete file README.md in owner octo repo hello", tools)) == []
    assert "found nothing" in text_in(await respond("bake a cake", tools))


def test_no_word_of_a_service_is_in_the_code() -> None:
    found: dict[str, set[str]] = {}
    for file in PACKAGE.glob("*.py"):
        texts = [
            node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)
        ]
        words = {
            word for text in texts if isinstance(text, str) for word in re.findall(r"[a-z-]+", text.lower())
        }
        names = set(re.findall(r"[a-z]+", file.read_text().lower()))
        found[file.name] = (words | names) & DOMAIN
    assert {name: words for name, words in found.items() if words} == {}


async def test_a_request_over_fifty_tools_costs_little() -> None:
    tools = [tool for entry in sets().values() for tool in entry][:50]
    for case in cases():
        await respond(case.ask, tools)
    started = time.process_time()
    for case in cases():
        await respond(case.ask, tools)
    assert (time.process_time() - started) / len(cases()) < 0.01
