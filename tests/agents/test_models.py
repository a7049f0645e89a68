"""Which model is chosen, how it is opened, and what is said when it cannot be."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic_ai import Agent
from pydantic_ai.models import known_model_names
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage, RunUsage

from dragoman.agents.fenced_model import FencedModel
from dragoman.agents.models import ModelChoice, Models
from dragoman.agents.offline.model import OfflineModel
from dragoman.agents.prices import cost_of
from dragoman.agents.providers import PROVIDERS, ollama_url
from dragoman.errors import InvalidConfig, InvalidName
from servers.scenarios import Reply
from servers.scripted_models import open_scripted_openai

pytestmark = pytest.mark.anyio
KEY = "sk-proj-canary-4f1c9a7e22b1"
NOBODY = "http://127.0.0.1:1"


@asynccontextmanager
async def open_ollama(models: dict[str, list[str] | None]) -> AsyncGenerator[tuple[str, list[str]]]:
    """An Ollama with these models and their capabilities; None is one too old to tell them."""
    asked: list[str] = []

    async def tags(request: web.Request) -> web.Response:
        asked.append("tags")
        return web.json_response({"models": [{"name": name, "model": name} for name in models]})

    async def show(request: web.Request) -> web.Response:
        name = (await request.json())["model"]
        capabilities = models[name]
        if capabilities is None:
            return web.json_response({"template": "{{ if .Tools }}"})
        return web.json_response({"capabilities": capabilities, "template": ""})

    async with serving([web.get("/api/tags", tags), web.post("/api/show", show)]) as url:
        yield url, asked


@asynccontextmanager
async def serving(routes: list[Any]) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_what_was_asked_for_comes_first_then_the_configured_one_then_a_key() -> None:
    environment = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    models = Models("deepseek:deepseek-v4-pro", environment=environment, ollama=NOBODY)
    assert await models.choose("anthropic:claude-opus-5") == ModelChoice(
        ("anthropic:claude-opus-5",), "it was asked for"
    )
    assert await models.choose() == ModelChoice(("deepseek:deepseek-v4-pro",), "it is configured")
    found = Models(environment=environment, ollama=NOBODY)
    assert await found.choose() == ModelChoice(("openai:gpt-6.1-terra",), "OPENAI_API_KEY is set")
    found = Models(environment={"ANTHROPIC_API_KEY": KEY}, ollama=NOBODY)
    assert (await found.choose("  ")).name == "anthropic:claude-sonnet-5-5"


async def test_a_key_whose_package_is_missing_is_passed_over() -> None:
    models = Models(environment={"GROQ_API_KEY": KEY, "DEEPSEEK_API_KEY": KEY}, ollama=NOBODY)
    assert (await models.choose()).name == "deepseek:deepseek-v4-pro"


async def test_a_local_ollama_gives_its_first_model_that_calls_tools() -> None:
    installed: dict[str, list[str] | None] = {
        "nomic-embed": ["embedding"],
        "gemma": ["completion"],
        "qwen3:8b": ["completion", "tools"],
        "llama3.1": ["completion", "tools"],
    }
    async with open_ollama(installed) as (url, asked):
        models = Models(environment={}, ollama=url)
        choice = await models.choose()
        assert choice == ModelChoice(("ollama:qwen3:8b",), f"Ollama answers at {url}")
        await models.choose()
        assert asked == ["tags"]
        opened = models.open(choice)
        assert (opened.model_name, opened.system) == ("qwen3:8b", "ollama")


async def test_an_older_ollama_is_understood_by_its_templates() -> None:
    async with open_ollama({"mistral": None}) as (url, _):
        models = Models(environment={"OLLAMA_HOST": url.removeprefix("http://")})
        assert (await models.choose()).name == "ollama:mistral"


async def test_without_anything_the_offline_model_answers() -> None:
    nothing = Models(environment={}, ollama=NOBODY)
    choice = await nothing.choose()
    assert (choice.names, choice.is_offline) == (("offline",), True)
    async with open_ollama({"gemma": ["completion"]}) as (url, _):
        assert (await Models(environment={}, ollama=url).choose()).is_offline


@pytest.mark.parametrize("answer", ["slow", "not json", "another service"])
async def test_what_is_not_an_ollama_is_no_ollama(answer: str) -> None:
    async def tags(request: web.Request) -> web.Response:
        if answer == "slow":
            await asyncio.sleep(30)
        return web.Response(text="<html>" if answer == "not json" else "[1]")

    async with serving([web.get("/api/tags", tags)]) as url:
        assert (await Models(environment={}, ollama=url).choose()).is_offline


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "0.0.0.0:11500"}, "http://127.0.0.1:11500"),
        ({"OLLAMA_HOST": "box.local"}, "http://box.local:11434"),
        ({"OLLAMA_HOST": "https://box.local"}, "https://box.local:443"),
        ({"OLLAMA_BASE_URL": "http://box:9/v1/", "OLLAMA_HOST": "x"}, "http://box:9"),
        ({"OLLAMA_HOST": "[::1]:11434"}, "http://[::1]:11434"),
    ],
)
def test_where_ollama_is_can_be_said_in_many_ways(environment: dict[str, str], expected: str) -> None:
    assert ollama_url(None, environment) == expected


async def test_fallbacks_help_the_configured_model_but_not_one_asked_for_by_name() -> None:
    models = Models("openai:gpt-5", ["anthropic:claude-opus-5"], environment={}, ollama="")
    assert (await models.choose()).names == ("openai:gpt-5", "anthropic:claude-opus-5")
    assert (await models.choose("ollama:qwen3")).names == ("ollama:qwen3",)
    assert (await models.choose("ollama:a, ollama:b")).names == ("ollama:a", "ollama:b")


async def test_fallbacks_of_an_agent_help_whatever_model_it_gets() -> None:
    models = Models("openai:gpt-5", environment={}, ollama="")
    assert (await models.choose(None, ["ollama:a"])).names == ("openai:gpt-5", "ollama:a")
    assert (await models.choose("ollama:b", ["ollama:a"])).names == ("ollama:b", "ollama:a")
    none = await Models(environment={}, ollama="").choose(None, ["ollama:a"])
    assert (none.names, none.is_offline) == (("ollama:a",), False)


async def test_the_offline_model_is_nobodys_fallback() -> None:
    models = Models("openai:gpt-5", ["offline"], environment={"OPENAI_API_KEY": KEY}, ollama="")
    for wanted in (None, "openai:gpt-5,offline"):
        with pytest.raises(InvalidConfig, match="offline cannot step in for a model that failed"):
            await models.choose(wanted)
    assert (await models.choose("offline")).is_offline


@pytest.mark.parametrize(
    ("name", "environment", "message", "hint"),
    [
        ("gpt-5", {}, "there is no model 'gpt-5'", "did you mean openai:gpt-5?"),
        ("claude-sonnet-5", {}, "no model 'claude-sonnet-5'", "did you mean anthropic:claude-sonnet-5?"),
        ("oppenai:gpt-5", {}, "there is no provider 'oppenai'", "did you mean openai?"),
        ("test", {}, "there is no model 'test'", "DRAGOMAN_MODEL"),
        ("openai:", {}, "there is no model 'openai:'", "DRAGOMAN_MODEL"),
        ("qqqqq", {}, "there is no model 'qqqqq'", "a model is named provider:model"),
        ("openai:gpt-5", {}, "OpenAI needs a key, and OPENAI_API_KEY is not set", "set OPENAI_API_KEY"),
        ("google:gemini-flash-latest", {"GEMINI_API_KEY": KEY}, "package google.genai", "slim[google]"),
        ("groq:openai/gpt-oss-120b", {"GROQ_API_KEY": KEY}, "the package groq", "pip install"),
        ("cohere:command-nightly", {}, "needs a package", "slim[cohere]"),
    ],
)
async def test_a_model_that_cannot_be_opened_says_what_to_do(
    name: str, environment: dict[str, str], message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # only what Models was given counts
    async with Models(environment=environment, ollama="") as models:
        with pytest.raises(InvalidConfig) as caught:
            models.check(name)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert KEY not in f"{caught.value.message} {caught.value.hint} {caught.value.cause}"


async def test_a_registered_model_is_opened_by_its_name() -> None:
    mine = TestModel(call_tools=[])
    async with Models("scripted", environment={}, ollama="") as models:
        models.register("scripted", mine)
        opened = models.open(await models.choose())
        assert isinstance(opened, FencedModel)
        assert opened.wrapped is mine
        for name in ("offline", "a,b", " "):
            with pytest.raises(InvalidName):
                models.register(name, mine)


async def test_a_model_and_those_that_step_in_for_it_are_opened_in_their_order() -> None:
    environment = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    names = ["openai-chat:gpt-5", "anthropic:claude-opus-5"]
    async with Models(names[0], names[1:], environment=environment, ollama="") as models:
        opened = models.open_all(await models.choose())
        assert [one.model_name for one in opened] == ["gpt-5", "claude-opus-5"]
        assert all(isinstance(one, FencedModel) for one in opened)


async def test_models_of_one_provider_share_connections_that_close_with_models() -> None:
    async with open_scripted_openai(lambda turn: Reply(text=turn.user)) as server:
        environment = {"OPENAI_BASE_URL": server.base_url}
        async with Models(environment=environment, ollama="") as models:
            one, two = [models.open(await models.choose(f"openai-chat:gpt-{n}")) for n in (4, 5)]
            assert one.provider is two.provider
            assert (await Agent(one).run("no key is needed here")).output == "no key is needed here"
            assert one.provider is not None
            client = one.provider.client._client
            assert client.timeout.read == 300
        assert client.is_closed


async def test_a_server_that_resembles_openai_is_spoken_to_in_the_older_protocol() -> None:
    environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    assert (await Models(environment=environment, ollama="").choose()).name.startswith("openai-chat:")


async def test_the_survey_tells_what_was_found_and_why() -> None:
    installed: dict[str, list[str] | None] = {"qwen3": ["tools"], "gemma": []}
    async with open_ollama(installed) as (url, _):
        environment = {"ANTHROPIC_API_KEY": KEY, "GROQ_API_KEY": KEY}
        async with Models("oppenai:x", environment=environment, ollama=url) as models:
            models.register("mine", TestModel())
            lines = await models.list()
    by_model = {line.model: line for line in lines if line.model}
    assert [line.model for line in lines if line.is_default] == ["oppenai:x"]
    assert "no provider 'oppenai'" in by_model["oppenai:x"].why
    assert not by_model["oppenai:x"].is_usable
    assert by_model["anthropic:claude-sonnet-5-5"].is_usable
    assert "the package groq is missing" in by_model["groq:openai/gpt-oss-120b"].why
    assert by_model["ollama:qwen3"].is_usable
    assert by_model["ollama:gemma"].why == "installed, but it cannot call tools"
    assert by_model["mine"].is_usable
    assert lines[-1].model == "offline"
    assert any(line.why == "OPENAI_API_KEY is not set" for line in lines)
    assert KEY not in str(lines)
    async with Models(environment={}, ollama=NOBODY) as models:
        assert [line.model for line in await models.list() if line.is_default] == ["offline"]


def test_every_default_model_is_known_to_pydantic_ai_or_has_a_price() -> None:
    usage = RequestUsage(input_tokens=1000, output_tokens=10)
    for provider in PROVIDERS:
        assert provider.model in known_model_names() or cost_of(provider.model, usage), provider.model


def test_work_is_priced_by_the_installed_list() -> None:
    usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)
    assert cost_of("openai:gpt-5", usage) == cost_of("openai-chat:gpt-5", usage) == cost_of("gpt-5", usage)
    assert cost_of("openai:gpt-5", usage) == pytest.approx(1.25)
    assert cost_of("xai:grok-4.7", usage)
    assert cost_of("openai:nobody-knows-this", usage) is None
    assert cost_of("nobody:x", usage) is None
    assert cost_of("offline", usage) == cost_of("ollama:qwen3", usage) == 0


async def test_a_run_is_priced_and_nothing_is_fetched_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from genai_prices import update_prices

    def fetch(self: update_prices.UpdatePrices) -> None:
        pytest.fail("prices were fetched")

    monkeypatch.setattr(update_prices.UpdatePrices, "fetch", fetch)
    monkeypatch.setattr(update_prices.UpdatePrices, "start", fetch)
    async with open_scripted_openai(lambda _: Reply(text="four words of answer")) as server:
        environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url}
        async with Models(environment=environment, ollama="") as models:
            result = await Agent(models.open(await models.choose("openai-chat:gpt-5"))).run("hello")
    cost = cost_of("openai-chat:gpt-5", result.usage)
    counted = RunUsage(input_tokens=result.usage.input_tokens, output_tokens=result.usage.output_tokens)
    assert cost == pytest.approx(cost_of("openai:gpt-5", counted))
    assert cost


def test_choosing_imports_no_pydantic_ai() -> None:
    code = (
        "import sys, anyio, dragoman.agents.models as m;"
        "anyio.run(m.Models(environment={'OPENAI_API_KEY': 'x'}, ollama='').choose);"
        "print([name for name in sys.modules if name.startswith(('pydantic_ai', 'openai', 'anthropic'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_command_imports_no_pydantic_ai() -> None:
    code = "import dragoman.cli, dragoman.hub, sys; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_function_model_can_be_registered() -> None:
    models = Models(environment={}, ollama="")
    models.register("mine", FunctionModel(lambda messages, info: pytest.fail("not asked")))
    models.check("mine")


async def test_the_offline_model_is_opened_by_its_name() -> None:
    async with Models(environment={}, ollama="") as models:
        assert isinstance(models.open(await models.choose()), OfflineModel)
