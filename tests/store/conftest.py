from collections.abc import AsyncGenerator

import pytest

from dragoman.store import Store, open_store


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    async with open_store(database_url) as opened:
        yield opened
