"""How good search is, and what it costs: `bench/search.py DIR…` for folders of tools.jsonl and queries.jsonl.

Prints a JSON line per folder and the means. Where FastMCP or pydantic-ai is installed, their rankings
run beside ours on the same tools and questions. `--scale` measures time and memory on made-up
catalogs; `--held-out` chooses the weights of the legs on all folders but one and judges them on that one,
in turn: what to expect of tools and questions that nobody has seen; `--refusals` measures what is refused:
senseless text, real questions, and questions that belong to another folder.
`--embedder openai:text-embedding-3-small` runs search with that embedder beside the default; its vectors
are computed first, and are not kept.
"""

import argparse
import asyncio
import json
import random
import statistics
import string
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from dragoman import Caller
from dragoman.background_tasks import Supervisor
from dragoman.catalog.search import Search, SearchQuery
from dragoman.catalog.search.embeddings import Embeddings
from dragoman.catalog.search.hybrid import WEIGHTS
from dragoman.hub.embedding import open_embeddings
from dragoman.scope import LOCAL_CALLER
from dragoman.tool import Tool, ToolDefinition

Ranking = Callable[[str], Awaitable[Sequence[str]]]
BEST = 10
SAMPLE = 300  # questions of a set by which weights are chosen
# Words, and connector and parameters, beside 0.4 for name and description.
CHOICES = [(words, 0.4, parameters) for words in (0.3, 0.4, 0.5, 0.6, 0.7) for parameters in (0.05, 0.1, 0.2)]
_PATIENCE = 900.0  # seconds for an embedder to read a whole set of tools


class PlainCatalog:
    """Lists of tools as search sees a catalog's, without a store behind them."""

    def __init__(self) -> None:
        self._version = 0
        self.tools: dict[tuple[str, str], tuple[Tool, ...]] = {}

    def put(self, connector: str, tools: Sequence[Tool]) -> None:
        self.tools[connector, ""] = tuple(tools)
        self._version += 1

    @property
    def version(self) -> int:
        return self._version

    def lists(self, workspace: str) -> dict[tuple[str, str], tuple[Tool, ...]]:
        return dict(self.tools)

    def readable(self, caller: Caller, connector_id: str | None = None) -> list[tuple[str, str]]:
        return [*self.tools]

    def find(self, name: str, caller: Caller) -> Tool | None:
        return None


@dataclass(frozen=True)
class Folder:
    name: str
    tools: list[dict[str, Any]]
    queries: list[dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> "Folder":
        tools, queries = (
            [json.loads(line) for line in (path / name).read_text("utf-8").splitlines() if line.strip()]
            for name in ("tools.jsonl", "queries.jsonl")
        )
        return cls(path.name, tools, queries)


def made_tool(fact: Mapping[str, Any]) -> Tool:
    """The public name is the id of the set, to know it again among the hits."""
    definition = ToolDefinition(
        original_name=fact["name"], description=fact.get("description") or "", input_schema=fact["schema"]
    )
    return Tool(
        name=fact["id"],
        workspace=LOCAL_CALLER.workspace,
        connector_id=fact["server"],
        slug=fact["server"],
        definition=definition,
        fingerprint=fact["id"],
    )


def opened(
    facts: Sequence[Mapping[str, Any]], embeddings: Embeddings | None = None
) -> tuple[PlainCatalog, Search]:
    catalog = PlainCatalog()
    servers: dict[str, list[Tool]] = {}
    for fact in facts:
        servers.setdefault(fact["server"], []).append(made_tool(fact))
    for server, tools in servers.items():
        catalog.put(server, tools)
    return catalog, Search(catalog, embeddings)


def ours(folder: Folder, embeddings: Embeddings | None = None) -> Ranking:
    _, search = opened(folder.tools, embeddings)

    async def rank(text: str) -> Sequence[str]:
        question = SearchQuery.checked(text[:4000], "hybrid", BEST)
        found = await search.find(question, LOCAL_CALLER)
        if embeddings and not found.embedder:
            with suppress(TimeoutError):
                await asyncio.wait_for(embeddings.settled(), _PATIENCE)
            found = await search.find(question, LOCAL_CALLER)
            if not found.embedder:
                raise SystemExit(f"{embeddings.name} does not answer")
        return [hit.tool.name for hit in found.hits]

    return rank


def fastmcp_bm25(folder: Folder) -> Ranking:
    transform = _of("fastmcp.server.transforms.search.bm25", "BM25SearchTransform")(max_results=BEST)
    their_tool = _of("fastmcp.tools.base", "Tool")
    ids = _mounted(folder)
    tools = [
        their_tool(name=name, description=fact["description"] or "", parameters=fact["schema"] or {})
        for name, fact in ids.items()
    ]

    async def rank(text: str) -> Sequence[str]:
        return [ids[tool.name]["id"] for tool in await transform._search(tools, text)]

    return rank


def pydantic_ai_keywords(folder: Folder) -> Ranking:
    search = _of("pydantic_ai.toolsets._tool_search", "keywords_search_fn")
    their_tool = _of("pydantic_ai.tools", "ToolDefinition")
    ids = _mounted(folder)
    tools = [
        their_tool(name=name, description=fact["description"], parameters_json_schema=fact["schema"])
        for name, fact in ids.items()
    ]

    async def rank(text: str) -> Sequence[str]:
        return [ids[name]["id"] for name in search(None, [text], tools)[:BEST]]

    return rank


def _of(module: str, name: str) -> Any:
    """A part of another library, which need not be installed."""
    return getattr(import_module(module), name)


def _mounted(folder: Folder) -> dict[str, dict[str, Any]]:
    """Names as a server that is mounted under its own name has them."""
    names: dict[str, dict[str, Any]] = {}
    for number, fact in enumerate(folder.tools):
        name = f"{fact['server']}_{fact['name']}"
        # Some sets have two tools of one name; these engines know a tool by its name.
        names[f"{name}_{number}" if name in names else name] = fact
    return names


ENGINES: dict[str, tuple[str, Callable[[Folder], Ranking]]] = {
    "dragoman": ("dragoman", ours),
    "fastmcp": ("fastmcp", fastmcp_bm25),
    "pydantic-ai": ("pydantic_ai", pydantic_ai_keywords),
}


async def quality(folder: Folder, engine: str, rank: Ranking) -> dict[str, Any]:
    await rank("warm up")
    marks: list[tuple[float, float, float]] = []
    spent: list[float] = []
    for query in folder.queries:
        since = time.process_time()
        found = await rank(query["text"])
        spent.append((time.process_time() - since) * 1000)
        marks.append(_marks(found, query.get("alt") or [[gold] for gold in query["gold"]]))
    five, ten, gain = (statistics.fmean(values) for values in zip(*marks, strict=True))
    return {
        "set": folder.name,
        "engine": engine,
        "tools": len(folder.tools),
        "questions": len(marks),
        "R@5": round(five, 4),
        "R@10": round(ten, 4),
        "NDCG@10": round(gain, 4),
        "p50_ms": round(statistics.median(spent), 3),
    }


def _marks(found: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[float, float, float]:
    """Recall at 5 and 10, and NDCG at 10; of a group of equally good tools any one counts, once."""
    first = {
        number: min((place for place, name in enumerate(found) if name in group), default=BEST)
        for number, group in enumerate(groups)
    }
    gain = sum(1 / log2(place + 2) for place in first.values() if place < BEST)
    ideal = sum(1 / log2(place + 2) for place in range(min(BEST, len(groups))))
    recalls = [sum(place < most for place in first.values()) / len(groups) for most in (5, BEST)]
    return recalls[0], recalls[1], gain / ideal


async def refusals(folders: Sequence[Folder]) -> list[dict[str, Any]]:
    """Shares of answers that were empty, and of exact names that came first."""
    rows: list[dict[str, Any]] = []
    for folder in folders:
        rank = ours(folder)
        chance = random.Random(7)
        senseless = [text for make in SENSELESS for text in (make(chance) for _ in range(200))]
        foreign = [q["text"] for other in folders if other is not folder for q in other.queries[:200]]
        named = [await rank(fact["name"]) for fact in folder.tools]
        namesakes: dict[str, set[str]] = {}
        for fact in folder.tools:
            namesakes.setdefault(_spelled(fact["name"]), set()).add(fact["id"])
        rows.append(
            {
                "set": folder.name,
                "gibberish_refused": await _refused(rank, senseless),
                "real_refused": await _refused(rank, [query["text"] for query in folder.queries]),
                "foreign_refused": await _refused(rank, foreign),
                "exact_name_first": statistics.fmean(
                    bool(found) and found[0] in namesakes[_spelled(fact["name"])]
                    for found, fact in zip(named, folder.tools, strict=True)
                ),
            }
        )
    return rows


async def _refused(rank: Ranking, texts: Sequence[str]) -> float | None:
    empty = [not await rank(text) for text in texts if text.strip()]
    return round(statistics.fmean(empty), 4) if empty else None


def _spelled(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _made_of(letters: str) -> Callable[[random.Random], str]:
    def make(chance: random.Random) -> str:
        words = range(chance.randint(1, 8))
        return " ".join("".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in words)

    return make


def _syllables(chance: random.Random) -> str:
    words = range(chance.randint(1, 8))
    return " ".join(
        "".join(
            chance.choice("bcdfghjklmnprstvz") + chance.choice("aeiou") for _ in range(chance.randint(2, 4))
        )
        for _ in words
    )


def _latin(chance: random.Random) -> str:
    words = "lorem ipsum dolor amet consectetur adipiscing eiusmod incididunt aliqua veniam nostrud ullamco"
    return " ".join(chance.choices(words.split(), k=chance.randint(2, 8)))


SENSELESS = (
    _made_of(string.ascii_lowercase),
    _made_of("asdfghjkl;qwerty"),
    _made_of(string.digits + string.punctuation),
    _syllables,
    _latin,
)


async def scale(folders: Sequence[Folder], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Tools of the folders, varied and repeated, a hundred to a connector."""
    facts = [fact for folder in folders for fact in folder.tools]
    questions = [query["text"] for folder in folders for query in folder.queries]
    vocabulary = sorted({word for fact in facts for word in fact["description"].split() if word.isalpha()})
    rows: list[dict[str, Any]] = []
    for size in sizes:
        chance = random.Random(size)
        varied = [
            {
                **(fact := chance.choice(facts)),
                "id": f"{number}",
                "server": f"server-{number // 100}",
                "name": f"{fact['name']}_{chance.choice(vocabulary)}_{number % 100}",
                "description": f"{fact['description']} {' '.join(chance.choices(vocabulary, k=5))}",
            }
            for number in range(size)
        ]
        rows.append(await _cost(varied, chance.choices(questions, k=200)))
    return rows


async def _cost(facts: Sequence[Mapping[str, Any]], questions: Sequence[str]) -> dict[str, Any]:
    catalog, search = opened(facts)
    process = psutil.Process()

    async def asked(text: str) -> float:
        since = time.process_time()
        await search.find(SearchQuery.checked(text[:4000], "hybrid", BEST), LOCAL_CALLER)
        return (time.process_time() - since) * 1000

    before = process.memory_info().rss
    built = await asked("warm up the index")
    held = process.memory_info().rss - before
    spent = [await asked(text) for text in questions]
    added: list[float] = []
    for number in range(20):
        server, tools = next(iter(catalog.tools.items()))
        new = replace(tools[0], name=f"new-{number}", fingerprint=f"new-{number}")
        new = replace(new, definition=replace(new.definition, original_name=f"new_{number}"))
        catalog.put(server[0], (*tools, new))
        with_change = await asked(questions[number])
        added.append(with_change - await asked(questions[number]))
    return {
        "tools": len(facts),
        "build_ms": round(built),
        "p50_ms": round(statistics.median(spent), 2),
        "p95_ms": round(statistics.quantiles(spent, n=20)[-1], 2),
        "add_one_ms": round(statistics.median(added), 2),
        "memory_mb": round(held / 1e6, 1),
    }


async def held_out(folders: Sequence[Folder]) -> list[dict[str, Any]]:
    """Each folder by the weights that are best on the others, of which each counts as much."""
    ranks = {folder.name: ours(folder) for folder in folders}
    samples = [
        replace(one, queries=random.Random(7).sample(one.queries, min(SAMPLE, len(one.queries))))
        for one in folders
    ]
    gains: dict[tuple[float, ...], dict[str, float]] = {}
    before = WEIGHTS["hybrid"]
    for weights in CHOICES:
        WEIGHTS["hybrid"] = weights
        gains[weights] = {
            one.name: (await quality(one, "dragoman", ranks[one.name]))["NDCG@10"] for one in samples
        }
    rows: list[dict[str, Any]] = []
    for folder in folders:
        others = [one.name for one in folders if one is not folder]
        weights = max(CHOICES, key=lambda one: sum(gains[one][name] for name in others))
        WEIGHTS["hybrid"] = weights
        row = await quality(folder, "dragoman, held out", ranks[folder.name])
        rows.append({**row, "weights": weights})
    WEIGHTS["hybrid"] = before
    return [*rows, _mean(rows)]


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {key: round(statistics.fmean(row[key] for row in rows), 4) for key in rows[0] if "@" in key}
    return {"set": "mean", "engine": rows[0]["engine"], **means}


def _print(row: Mapping[str, Any]) -> None:
    print(json.dumps(row), flush=True)


async def compared(folders: Sequence[Folder], embeddings: Embeddings | None) -> None:
    engines = {name: make for name, (package, make) in ENGINES.items() if find_spec(package)}
    if embeddings:
        engines = {"dragoman": ours, f"dragoman {embeddings.name}": partial(ours, embeddings=embeddings)}
    for engine, make in engines.items():
        rows = [await quality(folder, engine, make(folder)) for folder in folders]
        for row in rows:
            _print(row)
        _print(_mean(rows))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--scale", action="store_true", help="time and memory at 500, 5,000 and 50,000 tools")
    parser.add_argument("--held-out", action="store_true", help="each folder by weights of the others")
    parser.add_argument("--refusals", action="store_true", help="what is refused, and exact names")
    parser.add_argument("--embedder", metavar="PROVIDER:MODEL", help="an embedder beside the default")
    options = parser.parse_args()
    folders = [Folder.read(path) for path in options.folders]
    if options.scale:
        for row in await scale(folders, (500, 5_000, 50_000)):
            _print(row)
    elif options.held_out:
        for row in await held_out(folders):
            _print(row)
    elif options.refusals:
        for row in await refusals(folders):
            _print(row)
    else:
        with TemporaryDirectory() as home:
            async with open_embeddings(options.embedder, Path(home), Supervisor()) as embeddings:
                await compared(folders, embeddings)


if __name__ == "__main__":
    asyncio.run(main())
