"""A hub whose models are scripted ones over real HTTP, and small words for what they say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub
from dragoman.agent import AgentNumbers
from dragoman.scope import LOCAL_CALLER
from dragoman.settings import Settings
from servers.hubs import until
from servers.scenarios import Call, Reply, Script, Turn
from servers.scripted_models import (
    ScriptedServer,
    open_scripted_anthropic,
    open_scripted_openai,
    open_scripted_responses,
)

MODEL = "openai-chat:gpt-5.4"
RESPONSES = "openai-responses:gpt-5.4"
CLAUDE = "anthropic:claude-sonnet-5-5"


@asynccontextmanager
async def scripted(script: Script | str, model: str = MODEL) -> AsyncGenerator[ScriptedServer]:
    """While it lasts, the models of OpenAI, or of Anthropic, in this process are the scripted one."""
    prefix = "ANTHROPIC" if model == CLAUDE else "OPENAI"
    opened = {CLAUDE: open_scripted_anthropic, RESPONSES: open_scripted_responses}
    async with opened.get(model, open_scripted_openai)(script) as server:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(f"{prefix}_API_KEY", "a-key")
            environment.setenv(f"{prefix}_BASE_URL", server.base_url)
            yield server


@asynccontextmanager
async def open_scripted(
    home: Path, script: Script | str, *, model: str = MODEL, **settings: Any
) -> AsyncGenerator[tuple[Hub, ScriptedServer]]:
    async with (
        scripted(script, model) as server,
        Hub(Settings(home=home, model=model, **settings)) as hub,
    ):
        yield hub, server


def calls(*named: tuple[str, dict[str, Any]]) -> Reply:
    return Reply(tool_calls=tuple(Call(name, arguments) for name, arguments in named))


def is_of(turn: Turn, slug: str) -> bool:
    """Whether the agent of this connector asks."""
    return f"the agent of the connector {slug} " in turn.system


async def numbers(
    hub: Hub, name: str = "box", *, runs: int = 1, caller: Caller = LOCAL_CALLER
) -> AgentNumbers:
    """What an agent did, once that many runs are counted: that is after their end was told."""

    async def are_counted() -> bool:
        return (await hub.acting_for(caller).agents.view(name)).numbers.runs >= runs

    await until(are_counted)
    return (await hub.acting_for(caller).agents.view(name)).numbers
