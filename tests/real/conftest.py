"""One hub for all published servers: they are started once, and their downloads are kept between runs."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from boxes.boxed import BY_ITSELF
from dragoman import Hub
from servers.hubs import open_hub

CACHE = Path(__file__).parents[2] / ".cache"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def downloads() -> dict[str, str]:
    """Where npx and uvx keep what they fetch: a first run downloads, later ones start in a second."""
    for folder in ("npm", "uv"):
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
    return {"npm_config_cache": str(CACHE / "npm"), "UV_CACHE_DIR": str(CACHE / "uv")}


@pytest.fixture(scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[Hub]:
    async with open_hub(tmp_path_factory.mktemp("home"), box_programs=BY_ITSELF) as hub:
        yield hub
