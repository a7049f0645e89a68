"""Code on a real MCP server: what it gets, what comes back, and what it is told when it fails."""

import asyncio
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from coding import SHORT, add_raw, allow, as_caller, journal_of, open_coding, open_workshop

from dragoman import Caller
from dragoman.sandbox import CodeLimits, CodeOutput, callable_from_code
from dragoman.tokens import count_tokens
from dragoman.tool import DEFAULT_CALLERS, Annotations, Tool, ToolDefinition
from patience import patient
from servers.hubs import open_hub, runtime_of, until
from servers.processes import journal

pytestmark = pytest.mark.anyio


def error_of(output: CodeOutput) -> tuple[str, str, str]:
    assert not output.ok
    assert output.error
    return output.error.code, output.error.message, output.error.hint or ""


async def test_tools_are_functions_and_only_what_is_returned_or_printed_comes_back(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        output = await code.run(
            "total = await raw.add(a=1, b=2)\nprint('so far', total['sum'])\nawait raw.echo(text='done')"
        )
        assert output.ok
        assert (output.result, output.printed, output.calls) == ("done", "so far 3\n", 2)
        assert (await code.run("return await raw.echo('by position')")).result == "by position"
        assert (await code.run("await raw.add(1, 2)")).result == {"sum": 3}
        assert (await code.run("await call_tool('raw__echo', {'text': 'by name'})")).result == "by name"
        assert (await code.run("await call_tool('mcp_raw_echo', text='by name')")).result == "by name"
        imported = "from raw import echo\nfunctions = [echo]\nawait functions[0](text='handed on')"
        assert (await code.run(imported)).result == "handed on"
        assert (await code.run("import raw\nawait raw.echo(text='as a module')")).result == "as a module"


async def test_gathered_calls_run_at_once(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        await code.run("await raw.echo(text='warm')")
        started = perf_counter()
        output = await code.run(
            f"import asyncio\nawait asyncio.gather(*[raw.sleep(seconds={patient(0.3)}) for _ in range(5)])"
        )
        assert output.ok
        assert output.calls == 5
        assert perf_counter() - started < patient(1.0)


async def test_every_call_takes_the_road(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        await code.run(
            "await raw.echo(text='a')\ntry:\n    await raw.echo(text=1)\nexcept RuntimeError:\n    pass"
        )
        last, first = (await hub.calls(2))[:2]
        assert (first.tool, first.ok, first.way) == ("mcp_raw_echo", True, "code")
        assert (last.ok, last.code) == (False, "invalid_arguments")


async def test_a_failed_call_can_be_caught_and_says_why(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        caught = "try:\n    await raw.fail(text='no luck')\nexcept RuntimeError as error:\n    print(error)"
        assert (await code.run(caught)).printed.startswith("tool_failed: no luck\nhint: ")
        fault, message, hint = error_of(await code.run("x = 1\nawait raw.fail(text='no luck')"))
        assert (fault, message) == ("code_error", "RuntimeError: tool_failed: no luck")
        assert "change the arguments" in hint
        output = await code.run("def f():\n    return 1 / 0\n\nf()")
        assert output.error
        assert (output.error.line, "line 4, in <module>" in str(output.error.traceback)) == (2, True)


async def test_large_results_stay_outside_and_are_whole_for_the_code(tmp_path: Path) -> None:
    async with open_workshop(tmp_path, CodeLimits()) as (hub, code):
        rows = [{"id": number, "state": "open" if number % 100 else "lost"} for number in range(20_000)]

        @hub.tool(annotations=Annotations(read_only=True))
        def list_rows() -> list[dict[str, Any]]:
            """All rows."""
            return rows

        await allow(hub, "list_rows")
        output = await code.run("rows = await list_rows()\nlen([r for r in rows if r['state'] == 'lost'])")
        assert output.result == 200
        whole = count_tokens(json.dumps(rows, separators=(",", ":")))
        assert output.tokens_outside == pytest.approx(whole, rel=0.05)
        assert len(list_rows()) == 20_000
        assert (await code.run("len(await raw.big(bytes=1_000_000))")).result == 1_000_000


async def test_tools_are_found_and_described_inside(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        found = (await code.run("await search_tools('echo', limit=3)")).result
        assert found[0] == {"name": "raw.echo", "description": "[MCP:raw] The tool echo"}
        assert "raw.send" not in [one["name"] for one in found]
        text = (await code.run("await describe_tool('raw.add')")).result
        assert text.startswith("async def raw.add(a: float, b: float) -> Any\n    [MCP:raw] The tool add")
        assert "may not be called from code" in (await code.run("await describe_tool('raw__send')")).result
        strict = (await code.run("await describe_tool('mcp_raw_strict')")).result
        assert "raw.strict(when: str, *, copies: int = …)" in strict
        assert error_of(await code.run("await search_tools('')"))[1].startswith("RuntimeError: invalid_arg")
        assert hub.code.description().startswith("Run Python that calls tools.")


async def test_a_tool_that_code_may_not_call_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        for text in ("await raw.send(text='x')", "await call_tool('mcp_raw_send', {'text': 'x'})"):
            _, message, hint = error_of(await code.run(text))
            assert "denied: the tool 'mcp_raw_send' may not be called from code" in message
            assert "allowed_callers" in hint
        await hub.tools.disable("mcp_raw_echo")
        assert "tool_disabled" in error_of(await code.run("await raw.echo(text='x')"))[1]
        assert journal(journal_of(hub)) == []


async def test_a_tool_that_vanished_between_search_and_call_is_said_to_be_gone(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        await hub.call("mcp_raw_add_tool", {"name": "fleeting"})
        await until(lambda: any(one.original_name == "fleeting" for one in hub.tools.list("raw")))

        @hub.tool(annotations=Annotations(read_only=True))
        async def until_gone() -> None:
            """Waits until the hub has heard of it."""
            await until(lambda: all(one.original_name != "fleeting" for one in hub.tools.list("raw")))

        for name in ("mcp_raw_fleeting", "mcp_raw_remove_tool", "until_gone"):
            await allow(hub, name)
        output = await code.run(
            "found = await search_tools('fleeting')\n"
            "print(found[0]['name'])\n"
            "await raw.remove_tool(name='fleeting')\n"
            "await until_gone()\n"
            "await raw.fleeting(text='x')"
        )
        assert output.printed.startswith("raw.fleeting\n")
        _, message, _ = error_of(output)
        assert "fleeting" in message
        assert "has no tool" in message or "not_found" in message


async def test_what_others_may_see_is_not_there_for_those_with_less(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):
        narrow = hub.caller.narrowed({"mcp_raw_echo"})
        assert (await as_caller(code, narrow).run("await raw.echo(text='x')")).ok
        _, message, _ = error_of(await as_caller(code, narrow).run("await raw.add(1, 2)"))
        assert message == "AttributeError: 'raw' has no tool 'add'; it has: echo"
        elsewhere = Caller("elsewhere", "eve")
        assert "NameError" in error_of(await as_caller(code, elsewhere).run("await raw.echo(text='x')"))[1]


MENDED = {
    "x = [1,\n": ("code_syntax", ""),
    "class A: pass\nclass B(A): pass": ("code_syntax", "without a base"),
    "def f():\n    yield 1": ("code_syntax", "build a list"),
    "x = [1]\ndel x[0]": ("code_syntax", "pop"),
    "import asyncio\nasyncio.create_task(raw.echo(text='x'))": ("code_error", "gather"),
    "import asyncio\nawait asyncio.gather(raw.echo(text='x'), return_exceptions=True)": (
        "code_error",
        "catches",
    ),
    "import statistics": ("code_error", "sum(values)"),
    "import enum": ("code_error", "constants"),
    "import heapq": ("code_error", "sorted"),
    "import pandas": ("code_error", "there are only"),
    "raw.echo(text='x')": ("code_error", "await"),
    "{'inside': [raw.echo(text='x')]}": ("code_error", "await"),
    "raw.echo(text='x')['a']": ("code_error", "await"),
    "f = raw.echo": ("code_error", "from raw import echo"),
    "raw": ("code_error", "return dicts"),
    "lambda: 1": ("code_error", "return dicts"),
    "b'bytes'": ("code_error", "decode"),
    "{(1, 2): 3}": ("code_error", "keys must be text"),
    "await raw.ecko(text='x')": ("code_error", "did you mean 'echo'?"),
    "await raw.echo('x', 'y')": ("code_error", "give them by name: raw.echo(text=…)"),
    "await raw.echo('x', text='y')": ("code_error", "two values for 'text'"),
    "await raw.echo(text=raw)": ("code_error", "must be JSON"),
    "await describe_tool('nothing')": ("code_error", "search_tools"),
    "await nothing.here()": ("code_error", "search_tools"),
    "": ("code_syntax", "print or return"),
    "while True: pass": ("code_timeout", "does not end"),
    "x = 'x' * 10 ** 10": ("code_memory", "fields that you need"),
    "print('x' * 10_000)": ("code_output", "summarise"),
    "'x' * 10_000": ("code_output", "summarise"),
    "for i in range(50): await raw.echo(text='x')": ("code_calls", "several runs"),
}


async def test_each_mistake_has_its_own_error_that_says_how_to_mend_it(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        for text, (fault, words) in MENDED.items():
            found, message, hint = error_of(await code.run(text))
            assert (text, found) == (text, fault)
            assert words in f"{message} {hint}", (text, message, hint)


async def test_the_time_of_calls_counts_against_the_whole_and_not_against_computing(tmp_path: Path) -> None:
    limits = CodeLimits(execution=patient(0.2), wall=patient(1))
    async with open_workshop(tmp_path, limits) as (_, code):
        assert (await code.run(f"await raw.sleep(seconds={patient(0.5)})")).ok
        fault, message, _ = error_of(await code.run(f"await raw.sleep(seconds={patient(4)})"))
        assert (fault, message) == (
            "code_timeout",
            f"the code and its calls took longer than {patient(1):g} s",
        )


async def test_results_become_plain_json(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (_, code):
        text = (
            "import datetime, decimal\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass Point:\n    x: int\n"
            "{1: (1, 2), 'set': {3}, 'day': datetime.date(2026, 1, 2), 'price': decimal.Decimal('1.50'),"
            " 'nan': float('nan'), 'point': Point(4), 'none': None, 'large': 2 ** 70}"
        )
        assert (await code.run(text)).result == {
            "1": [1, 2],
            "set": [3],
            "day": "2026-01-02",
            "price": "1.50",
            "nan": "nan",
            "point": {"x": 4},
            "none": None,
            "large": 2**70,
        }


async def test_names_that_are_no_python_names_are_made_some(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        for slug in ("two-words", "time", "list"):
            await add_raw(hub, slug)

        @hub.tool(name="class")
        def class_(value: str) -> str:
            """Has the name of a keyword."""
            return value

        await allow(hub, "class")
        async with open_coding(hub) as code:
            for text in (
                "await two_words.echo(text='x')",
                "await time.echo(text='x')",
                "import time\nawait time_.echo(text='x')",
                "await list_.echo(text='x')",
                "await class_(value='x')",
            ):
                assert (text, (await code.run(text)).result) == (text, "x")
            names = "sorted({t['name'] for t in await search_tools('echo', limit=50) if 'echo' in t['name']})"
            assert (await code.run(names)).result == ["list_.echo", "time_.echo", "two_words.echo"]
        assert class_("x") == "x"


async def test_a_run_costs_the_same_however_many_tools_there_are(tmp_path: Path) -> None:
    async with open_workshop(tmp_path) as (hub, code):

        def one() -> int:
            return 1

        for number in range(1000):
            runtime_of(hub).native.add(one, name=f"native_{number}", description="One of many.")
        runtime_of(hub).declare_native()
        await code.run("1")
        durations = [(await code.run("await raw.echo(text='x')")).duration_ms for _ in range(20)]
        assert sorted(durations)[10] < patient(200)


def _tool(callers: frozenset[Any] = DEFAULT_CALLERS, read_only: bool | None = None) -> Tool:
    definition = ToolDefinition(original_name="t", annotations=Annotations(read_only=read_only))
    return Tool(
        name="t",
        workspace="w",
        connector_id="c",
        slug="s",
        definition=definition,
        allowed_callers=callers,
    )


async def test_by_default_code_calls_what_only_reads_and_what_is_set_always_holds() -> None:
    assert callable_from_code(_tool(read_only=True), programmatic=True)
    assert not callable_from_code(_tool(read_only=True), programmatic=False)
    assert not callable_from_code(_tool(read_only=None), programmatic=True)
    assert not callable_from_code(_tool(read_only=False), programmatic=True)
    assert callable_from_code(_tool(frozenset({"code"})), programmatic=False)
    assert not callable_from_code(_tool(frozenset({"agent"}), read_only=True), programmatic=True)


async def test_two_runs_know_nothing_of_each_other(tmp_path: Path) -> None:
    async with open_workshop(tmp_path, SHORT) as (_, code):
        await code.run("secret = 'mine'\nimport json\njson.loads = None")
        async with asyncio.TaskGroup() as group:
            others = [group.create_task(code.run("secret")) for _ in range(4)]
        assert all("NameError" in error_of(other.result())[1] for other in others)
        assert (await code.run("import json\njson.loads('1')")).result == 1
