"""A hub whose models are scripted ones over real HTTP, and small words for what they say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.settings import Settings
from servers.scenarios import Call, Reply, Script, Turn
from servers.scripted_models import ScriptedServer, open_scripted_openai

MODEL = "openai-chat:gpt-5.4"


@asynccontextmanager
async def open_scripted(
    home: Path, script: Script | str, *, database_url: str | None = None, **settings: Any
) -> AsyncGenerator[tuple[Hub, ScriptedServer]]:
    async with open_scripted_openai(script) as server:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OPENAI_API_KEY", "a-key")
            environment.setenv("OPENAI_BASE_URL", server.base_url)
            facts = {"home": home, "database_url": database_url, "model": MODEL, **settings}
            async with Hub(Settings(**facts)) as hub:
                yield hub, server


def calls(*named: tuple[str, dict[str, Any]]) -> Reply:
    return Reply(tool_calls=tuple(Call(name, arguments) for name, arguments in named))


def is_of(turn: Turn, slug: str) -> bool:
    """Whether the agent of this connector asks."""
    return f"the agent of the connector {slug} " in turn.system
