"""Search through the hub, REST and the command, on a real server; and every way to ask wrongly."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from api.live import open_service
from cli.command_line import Command, raw
from dragoman import Caller
from dragoman.errors import InvalidArguments, NotFound
from patience import patient
from servers.hubs import open_hub, quick, until
from servers.processes import stdio

pytestmark = pytest.mark.anyio


async def test_the_hub_finds_the_tools_of_a_server_and_forgets_them_with_it(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("raw", **quick(**stdio()))
        found = await hub.tools.search("add two numbers", connector="raw")
        assert found.total == len(hub.tools.list("raw"))
        assert (await hub.tools.search("raw__echo")).hits[0].tool.name == "mcp_raw_echo"
        await hub.call("mcp_raw_add_tool", {"name": "brandnew"})
        await until(lambda: any(tool.original_name == "brandnew" for tool in hub.tools.list("raw")))
        assert (await hub.tools.search("brandnew")).hits[0].tool.name == "mcp_raw_brandnew"
        assert (await hub.acting_for(Caller("elsewhere", "eve")).tools.search("echo")).total == 0
        await hub.connectors.remove("raw")
        assert (await hub.tools.search("raw__echo")).hits == ()


async def test_a_native_tool_is_found_as_soon_as_it_is_declared(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        assert (await hub.tools.search("multiply")).hits == ()

        @hub.tool
        def multiply(left: int, right: int) -> int:
            """The product of two numbers."""
            return left * right

        assert (await hub.tools.search("product of numbers")).hits[0].tool.name == "multiply"
        assert multiply(2, 3) == 6


async def test_many_may_ask_at_once_while_tools_come_and_go(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("raw", **quick(**stdio()))

        async def ask() -> None:
            for _ in range(5):
                assert (await hub.tools.search("mcp_raw_echo")).hits[0].tool.name == "mcp_raw_echo"

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(ask())
            for name in ("count", "send", "add"):
                await hub.tools.disable(f"mcp_raw_{name}")
                await hub.tools.enable(f"mcp_raw_{name}")


@pytest.mark.parametrize(
    ("query", "facts", "said"),
    [
        ("", {}, "empty"),
        (" \n\t", {}, "empty"),
        ("x" * 100_000, {}, "at most 4,000 characters"),
        ("a" * 501, {"strategy": "regex"}, "at most 500 characters"),
        ("(a", {"strategy": "regex"}, "missing )"),
        ("a(?=b)", {"strategy": "regex"}, "invalid perl operator"),
        (r"(a)\1", {"strategy": "regex"}, "invalid escape"),
        ("((a{100}){100}){100}", {"strategy": "regex"}, "repetition size"),
        ("email", {"strategy": "hybird"}, "no search strategy"),
        ("email", {"strategy": "magic"}, "no search strategy"),
        ("email", {"limit": 0}, "between 1 and 100"),
        ("email", {"limit": 101}, "between 1 and 100"),
    ],
)
async def test_a_wrong_question_is_told_how_to_ask(
    tmp_path: Path, query: str, facts: dict[str, object], said: str
) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidArguments, match=said.replace("(", r"\(").replace(")", r"\)")) as caught:
            await hub.tools.search(query, **facts)  # type: ignore[arg-type]
        assert caught.value.hint
        if facts.get("strategy") == "hybird":
            assert "did you mean 'hybrid'?" in caught.value.hint


async def test_an_unknown_connector_is_told_what_it_may_have_meant(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(NotFound) as caught:
            await hub.tools.search("x", connector="nativ")
        assert "native" in (caught.value.hint or "")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*b", "(a|a?)+$"])
async def test_a_catastrophic_pattern_costs_no_time(tmp_path: Path, pattern: str) -> None:
    async with open_hub(tmp_path) as hub:
        hub.add_tool(lambda: None, name="bait", description="a" * 4_000 + "!")
        since = time.process_time()
        await hub.tools.search(pattern, strategy="regex")
        assert time.process_time() - since < patient(1)


async def test_half_a_character_in_a_question_does_no_harm(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        hub.add_tool(lambda: None, name="send_email", description="Sends an email.")
        for strategy in ("hybrid", "bm25", "semantic", "regex"):
            await hub.tools.search("email \ud800\x00", strategy=strategy)
        assert (await hub.tools.search("send email \ud800")).hits[0].tool.name == "send_email"


async def test_rest_answers_hits_and_problems(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.hub.connectors.add("raw", **quick(**stdio()))

        async def get(**query: object) -> tuple[int, dict[str, object]]:
            reply = await live.ask("GET", f"/api/tools/search?{urlencode(query)}")
            return reply.status, reply.value

        status, found = await get(q="raw__echo", limit=3)
        assert (status, found["strategy"], found["query"]) == (200, "hybrid", "raw__echo")
        assert found["summary"] == f"3 of {len(live.hub.tools.list())}"
        hits = found["hits"]
        assert isinstance(hits, list)
        assert (hits[0]["name"], hits[0]["connector"], hits[0]["score"]) == ("mcp_raw_echo", "raw", 1.0)
        assert (await get(q="xqzvkw blorfft"))[1]["hits"] == []
        assert (await get(q="^echo$", strategy="regex", connector="raw"))[1]["summary"].startswith("1 of ")  # type: ignore[union-attr]
        for query in (
            {},
            {"q": "x" * 50_000},
            {"q": "(", "strategy": "regex"},
            {"q": "x", "strategy": "bm52"},
        ):
            status, problem = await get(**query)
            assert (status, problem["code"]) == (422, "invalid_arguments")
            assert problem["hint"]
        assert (await get(q="x", connector="nobody"))[0] == 404
        document = (await live.ask("GET", "/api/openapi.json")).value
        assert "/api/tools/search" in document["paths"]


def test_the_command_shows_what_fits_and_says_when_nothing_does(dragoman: Command, home: Path) -> None:
    assert dragoman("connectors", "add", "raw", *raw()).code == 0
    found = dragoman("tools", "search", "raw__echo", "--limit", "2")
    assert found.code == 0
    assert "mcp_raw_echo" in found.out
    assert "2 of " in found.err
    found = dragoman("tools", "search", "xqzvkw", "blorfft")
    assert (found.out, "fits" in found.err) == ("", True)
    found = dragoman("tools", "search", "^echo$", "--strategy", "regex", "--json")
    assert [hit["name"] for hit in found.value["hits"]] == ["mcp_raw_echo"]
    found = dragoman("tools", "search", "(", "--strategy", "regex")
    assert (found.code, found.out) == (1, "")
    assert "hint:" in found.err


@pytest.mark.slow
def test_nothing_heavy_is_loaded_before_the_first_question() -> None:
    program = """
import asyncio, pathlib, sys, tempfile
from dragoman import Hub, Settings
async def main():
    async with Hub(Settings(home=pathlib.Path(tempfile.mkdtemp()))):
        names = ("numpy", "tokenizers", "safetensors", "re2", "snowballstemmer")
        heavy = [name for name in names if name in sys.modules]
        sys.exit(f"imported: {heavy}" if heavy else 0)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
