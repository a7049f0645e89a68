"""A small real server of embeddings as OpenAI's API has them, in the test's own loop. Counts its requests.

A text becomes the counts of the words that its `meanings` give for it, so a test says what means the same.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web


class EmbeddingServer:
    """`requests` are the texts of each request that was answered; `attempts` counts the others too."""

    def __init__(self, meanings: Mapping[str, int], width: int = 8) -> None:
        self._meanings = meanings
        self.width = width
        self.is_down = False
        self.open = asyncio.Event()
        self.open.set()
        self.requests: list[list[str]] = []
        self.attempts = 0
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/embeddings", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open.set()
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request]

    async def _answer(self, request: web.Request) -> web.Response:
        asked: dict[str, Any] = await request.json()
        self.attempts += 1
        await self.open.wait()
        if self.is_down:
            headers = {"x-should-retry": "false"}  # the client would, and a test would wait for it
            return web.json_response({"error": {"message": "overloaded"}}, status=503, headers=headers)
        texts: list[str] = asked["input"]
        self.requests.append(texts)
        data = [
            {"object": "embedding", "index": number, "embedding": self._vector(text)}
            for number, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "data": data, "model": asked["model"], "usage": usage})

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * self.width
        for word, place in self._meanings.items():
            vector[place] += text.lower().count(word)
        return vector
