"""A core without any extra: what it lacks says which extra has it, by every door; the rest works."""

import json
from collections.abc import Generator
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from dragoman.extras import EXTRAS, ExtraName
from packages.installed import Environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# What somebody does who lacks it: settings, words of the command, and what is typed.
ASKING: dict[ExtraName, tuple[dict[str, str], list[str], str]] = {
    "agents": ({}, ["ask", "what time is it?"], ""),
    "cluster": ({"DRAGOMAN_CLUSTER_URL": "nats://127.0.0.1:1"}, ["tools", "list"], ""),
    "code": ({}, ["code", "run", "-"], "1 + 1"),
    "vectors": ({}, ["tools", "search", "--strategy", "semantic", "read my mail"], ""),
    "otel": ({"DRAGOMAN_OTLP_ENDPOINT": "http://127.0.0.1:1"}, ["tools", "list"], ""),
    "demo": ({}, ["cluster", "demo"], ""),
    "guard": ({}, ["hooks", "try", "personal_data US_SSN"], "536-90-4399"),
    "postgres": ({"DRAGOMAN_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, ["tools", "list"], ""),
}
NOT_NEEDED: set[ExtraName] = {"tokens"}  # estimates do without
# No command has them: modules of `dragoman.integrations`, and the extra that each says it needs.
INTEGRATIONS: dict[str, ExtraName] = {
    "anthropic": "anthropic",
    "langchain": "langchain",
    "openai": "openai",
    "pydantic_ai": "agents",
}
# Modules that import what an extra brings, each told by the module that is missing.
HOMES = """
import importlib, json, pkgutil
import dragoman
failed, told = {}, {}
for found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if found.name == "dragoman.__main__" or "._examples" in found.name:
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        failed[found.name] = error.name.partition(".")[0]
    except dragoman.NotInstalled as error:
        told[found.name] = error.hint
print(json.dumps([failed, told]))
"""
IN_PYTHON = """
import asyncio, json, sys
from dragoman import Hub, NotInstalled

async def main():
    async with Hub() as hub:
        told = {}
        for extra, asked in {
            "agents": lambda: hub.ask("hello"),
            "code": lambda: hub.code.run("1"),
        }.items():
            try:
                await asked()
            except NotInstalled as error:
                told[extra] = [error.code, error.hint]
        print(json.dumps({"told": told, "threads": len(await hub.threads.list())}))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def service(core: Environment) -> Generator[str]:
    with core.serving(DRAGOMAN_NATIVE_TOOLS="read_file", DRAGOMAN_TOOLS_ROOT=str(core.home)) as url:
        yield url


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("home"))


def test_every_extra_is_asked_for() -> None:
    assert ASKING.keys() | NOT_NEEDED | {*INTEGRATIONS.values()} == EXTRAS.keys()


@pytest.mark.parametrize("extra", ASKING)
def test_a_command_says_which_extra_it_needs(core: Environment, extra: ExtraName, empty_home: str) -> None:
    variables, words, given = ASKING[extra]
    done = core.dragoman(*words, given=given, DRAGOMAN_HOME=empty_home, **variables)
    assert done.returncode == 1
    assert f"need the extra {extra}, which is not installed" in done.stderr
    assert f"pip install 'dragoman[{extra}]'" in done.stderr


def test_the_library_says_which_extra_it_needs_and_writes_nothing(core: Environment, empty_home: str) -> None:
    told = core.python_output(IN_PYTHON, DRAGOMAN_HOME=empty_home)
    wanted = {extra: ["not_installed", f"pip install 'dragoman[{extra}]'"] for extra in ("agents", "code")}
    assert json.loads(told) == {"told": wanted, "threads": 0}


def test_rest_answers_501_with_the_command_that_installs_it(core: Environment, service: str) -> None:
    token = core.dragoman("token").stdout.strip()
    for extra, path, body in (
        ("agents", "/api/messages", {"text": "hi"}),
        ("code", "/api/code", {"code": "1"}),
    ):
        request = Request(
            service + path,
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with pytest.raises(HTTPError) as refused:
            urlopen(request)
        problem = json.loads(refused.value.read())
        assert (refused.value.code, problem["code"]) == (501, "not_installed")
        assert problem["hint"] == f"pip install 'dragoman[{extra}]'"


def test_the_console_says_it_where_one_would_begin(core: Environment, service: str) -> None:
    browser = build_opener(HTTPCookieProcessor())
    browser.open(core.answer("console")["link"])
    for page, extra in (
        ("/chat", "agents"),
        ("/code", "code"),
        ("/settings/models", "agents"),
        ("/tools?q=mail", "vectors"),
    ):
        assert f"pip install &#39;dragoman[{extra}]&#39;" in browser.open(service + page).read().decode()
    assert browser.open(service + "/").status == 200


def test_only_the_homes_of_an_extra_import_what_it_brings_and_integrations_say_so(core: Environment) -> None:
    brought = {module.partition(".")[0] for extra in EXTRAS.values() for module in extra.modules}
    failed, told = json.loads(core.python_output(HOMES))
    assert set(failed.values()) <= brought
    assert told == {
        f"dragoman.integrations.{module}": f"pip install 'dragoman[{extra}]'"
        for module, extra in INTEGRATIONS.items()
    }
