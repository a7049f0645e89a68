"""Search with an embedder: what it finds, what it costs in requests, and what happens when it is away."""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.catalog.search import SearchResults
from dragoman.errors import InvalidConfig
from patience import deadline
from servers.embedding_server import EmbeddingServer
from servers.hubs import open_hub, runtime_of, until

pytestmark = pytest.mark.anyio
MODEL = "openai:text-embedding-3-small"
SHOP = {
    "send_email": "Sends an email to people.",
    "get_forecast": "Tells the weather of the coming days.",
    "convert_currency": "Converts an amount of money into another currency.",
}
# By these the tool for money is the one for a journey: no other search would say so.
MEANINGS = {"email": 0, "weather": 1, "forecast": 1, "money": 2, "currency": 2, "journey": 2, "letter": 0}


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EmbeddingServer]:
    async with EmbeddingServer(MEANINGS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
        yield server


@asynccontextmanager
async def open_shop(home: Path, **settings: Any) -> AsyncGenerator[Hub]:
    async with open_hub(home, **{"search_embedder": MODEL, **settings}) as hub:
        for name, description in SHOP.items():
            hub.add_tool(lambda: None, name=name, description=description)
        yield hub


async def embedded(hub: Hub, query: str = "weather", strategy: str = "hybrid") -> SearchResults:
    """The first answer for which the embedder was heard."""
    answers: list[SearchResults] = []

    async def is_heard() -> bool:
        answers.append(await hub.tools.search(query, strategy=strategy))
        return answers[-1].embedder is not None

    await until(is_heard, within=30)
    return answers[-1]


def names(found: SearchResults) -> list[str]:
    return [hit.tool.name for hit in found.hits]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


async def test_an_embedder_tells_what_texts_mean(tmp_path: Path, server: EmbeddingServer) -> None:
    async with open_shop(tmp_path) as hub:
        first = await hub.tools.search("people on a journey", strategy="semantic")
        assert (first.embedder, names(first)[0]) == (None, "send_email")
        found = await embedded(hub, "people on a journey", "semantic")
        assert found.embedder == MODEL
        assert names(found)[0] == "convert_currency"
        assert "convert_currency" in names(await hub.tools.search("people on a journey"))[:2]
        assert names(await hub.tools.search("send_email"))[0] == "send_email"


async def test_tools_are_computed_once_in_batches_and_a_question_once(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with open_shop(tmp_path) as hub:
        for number in range(40):
            hub.add_tool(lambda: None, name=f"tool_{number}", description=f"Does the thing {number}.")
        await embedded(hub)
        # 43 tools have a text each for what they do; as functions of one place they share the other text.
        assert [len(request) for request in server.requests] == [44, 1]
        assert server.requests[1] == ["weather"]
        await asyncio.gather(*(hub.tools.search("weather") for _ in range(5)))
        assert len(server.requests) == 2
        await asyncio.gather(*(hub.tools.search("a letter by email") for _ in range(5)))
        assert server.requests[2:] == [["a letter by email"]]
        for strategy in ("bm25", "regex"):
            assert (await hub.tools.search("money", strategy=strategy)).embedder is None
        assert len(server.requests) == 3


async def test_more_tools_than_a_batch_takes_are_asked_for_in_several(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with open_shop(tmp_path) as hub:
        for number in range(100):
            hub.add_tool(lambda: None, name=f"tool_{number}", description=f"Does the thing {number}.")
        await embedded(hub)
        assert [len(request) for request in server.requests] == [64, 40, 1]


async def test_a_restart_asks_for_no_tool_again(tmp_path: Path, server: EmbeddingServer) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
    before = len(server.requests)
    async with open_shop(tmp_path) as hub:
        found = await hub.tools.search("people on a journey", strategy="semantic")
        assert (found.embedder, names(found)[0]) == (MODEL, "convert_currency")
        assert server.requests[before:] == [["people on a journey"]]


async def test_a_new_tool_and_a_changed_one_are_computed_alone(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
        hub.add_tool(lambda: None, name="write_letter", description="Writes a letter.")
        assert (await hub.tools.search("weather")).embedder is None
        found = await embedded(hub, "letter", "semantic")
        assert "write_letter" in names(found)[:2]
        assert server.requests[2:] == [["write letter. Writes a letter."], ["letter"]]


async def test_the_steps_of_a_long_question_are_asked_in_one_request(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    question = "look at the weather of the coming week. then write an email to my people"
    async with open_shop(tmp_path) as hub:
        found = await embedded(hub, question)
        assert {*names(found)[:2]} == {"get_forecast", "send_email"}
        assert len(server.requests) == 2
        assert server.requests[1][0] == question
        assert len(server.requests[1]) == 3


async def test_search_goes_on_during_an_outage_and_says_so_once(
    tmp_path: Path, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
        server.is_down = True
        found = await hub.tools.search("convert money")
        assert (found.embedder, names(found)[0]) == (None, "convert_currency")
        assert server.attempts == 3
        for number in range(5):
            assert (await hub.tools.search(f"send an email to {number} people")).hits
        assert server.attempts == 3
        assert (await hub.tools.search("weather")).embedder == MODEL  # known from before
        assert len(warnings(caplog)) == 1
        assert "embedder_failed" in warnings(caplog)[0]


async def test_tools_are_computed_as_soon_as_an_outage_is_over(
    tmp_path: Path, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.is_down = True
    async with open_shop(tmp_path) as hub:
        embeddings = runtime_of(hub).search._embeddings
        assert embeddings is not None
        embeddings._first_rest = embeddings._next_rest = 0.05
        assert (await hub.tools.search("weather")).hits
        await until(lambda: server.attempts >= 3, within=30)
        server.is_down = False
        assert (await embedded(hub)).embedder == MODEL
        assert len(server.texts) == len({*server.texts})
        assert len(warnings(caplog)) == 1


async def test_search_goes_on_when_the_kept_vectors_are_deleted(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
    async with open_shop(tmp_path) as hub:
        assert (await hub.tools.search("weather", strategy="bm25")).hits
        for path in (tmp_path / "embeddings").iterdir():
            path.unlink()
        assert names(await hub.tools.search("send an email"))[0] == "send_email"
        hub.add_tool(lambda: None, name="write_letter", description="Writes a letter.")
        assert names(await hub.tools.search("write a letter"))[0] == "write_letter"
    async with open_shop(tmp_path) as hub:
        assert (await embedded(hub)).embedder == MODEL


async def test_a_slow_embedder_holds_up_no_search(tmp_path: Path, server: EmbeddingServer) -> None:
    async with open_shop(tmp_path) as hub:
        server.open.clear()
        async with deadline(10):
            assert (await hub.tools.search("weather")).hits
        server.open.set()
        await embedded(hub)
        embeddings = runtime_of(hub).search._embeddings
        assert embeddings is not None
        embeddings._patience = 0.1
        server.open.clear()
        async with deadline(2):
            found = await hub.tools.search("send an email")
        assert (found.embedder, names(found)[0]) == (None, "send_email")


async def test_a_local_server_is_an_embedder_too(tmp_path: Path, server: EmbeddingServer) -> None:
    async with open_shop(tmp_path, search_embedder="ollama:nomic-embed-text") as hub:
        assert (await embedded(hub)).embedder == "ollama:nomic-embed-text"


async def test_two_models_keep_their_vectors_apart(tmp_path: Path, server: EmbeddingServer) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
    server.width = 12
    async with open_shop(tmp_path, search_embedder="openai:text-embedding-3-large") as hub:
        await embedded(hub)
    assert [len(request) for request in server.requests] == [4, 1, 4, 1]


async def test_another_model_under_the_old_name_is_not_mixed_in(
    tmp_path: Path, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_shop(tmp_path) as hub:
        await embedded(hub)
    server.width = 12
    async with open_shop(tmp_path) as hub:
        found = await hub.tools.search("journey money")
        assert (found.embedder, names(found)[0]) == (None, "convert_currency")
    assert [line for line in warnings(caplog) if "embedder_failed" in line]


async def test_without_a_key_search_works_and_the_log_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    async with open_shop(tmp_path) as hub:
        assert (await hub.tools.search("weather")).hits
        await until(lambda: len(warnings(caplog)) > 0, within=30)
        assert "OPENAI_API_KEY" in str(vars(caplog.records[-1]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("text-embedding-3-small", "provider"),
        ("openai:", "provider"),
        ("sentence-transformers:all-MiniLM-L6-v2", "sentence_transformers"),
        ("voyageai:voyage-4", "voyageai"),
    ],
)
async def test_an_embedder_that_cannot_be_is_refused_with_a_hint(
    tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(InvalidConfig, match=said) as caught:
        async with open_hub(tmp_path, search_embedder=name):
            pass
    assert caught.value.hint


@pytest.mark.slow
async def test_the_benchmark_runs_an_embedder_beside_the_default(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    tools = [
        {"id": name, "server": "shop", "name": name, "description": text, "schema": {"type": "object"}}
        for name, text in SHOP.items()
    ]
    (tmp_path / "tools.jsonl").write_text("\n".join(map(json.dumps, tools)))
    question = {"text": "people on a journey", "gold": ["convert_currency"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(question))
    bench = Path(__file__).parents[2] / "bench" / "search.py"
    words = [sys.executable, str(bench), str(tmp_path), "--embedder", MODEL]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        async with deadline(90):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0
    means = [row for row in map(json.loads, said.splitlines()) if row["set"] == "mean"]
    assert [row["engine"] for row in means] == ["dragoman", f"dragoman {MODEL}"]
    assert [len(request) for request in server.requests] == [4, 1, 1]
