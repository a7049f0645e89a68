"""The hub as a program has it: typed settings, declaring what is needed, tools that come and go."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from dragoman import Hub, NotFound, Settings
from servers.processes import stdio

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
RIGHT = 'await hub.connectors.add("time", command="uvx", args=["mcp-server-time"], bearer="x")'
WRONG = 'await hub.connectors.{}("time", comand="uvx")'


@pytest.mark.slow
def test_type_checkers_know_the_settings_of_a_connector(tmp_path: Path) -> None:
    lines = [
        RIGHT,
        'await hub.connectors.update("time", args=("a",), retry={"tries": 2}, url=None)',
        'await hub.connectors.add_or_update("time", bearer=SecretStr("x"), env={"MODE": "a"})',
        WRONG.format("add"),
        WRONG.format("update"),
        WRONG.format("add_or_update"),
        'await hub.connectors.add("time", args=[1])',
        'await hub.connectors.add("time", retry={"trys": 2})',
    ]
    file = tmp_path / "program.py"
    body = "".join(f"    {line}\n" for line in lines)
    head = "from pydantic import SecretStr\nfrom dragoman import Hub\n\nasync def main(hub: Hub) -> None:\n"
    file.write_text(head + body)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(file)],
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    first = head.count("\n")
    assert sorted({one["range"]["start"]["line"] - first for one in found}) == [3, 4, 5, 6, 7]
    assert sum("comand" in one["message"] for one in found) == 3


def test_the_types_of_settings_are_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "settings_page.py"))
    written = (ROOT / "src" / "dragoman" / "hub" / "connector_settings.py").read_text(encoding="utf-8")
    assert script["written_types"]() == written, "write it anew: .venv/bin/python scripts/settings_page.py"


async def test_what_a_program_needs_is_added_once_and_changed_only_when_it_differs(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        first = await hub.connectors.add_or_update("test", **stdio(), bearer=None, description="A test")
        assert (first.change, first.view.status.state) == ("added", "connected")
        again = await hub.connectors.add_or_update("test", **stdio(), description="A test")
        assert again.change == "unchanged"
        assert again.view.connector.revision == first.view.connector.revision
        assert again.view.status.pid == first.view.status.pid
        longer = await hub.connectors.add_or_update("test", request_timeout=5)
        assert longer.change == "updated"
        assert longer.view.connector.configuration.request_timeout == 5
        assert longer.view.connector.configuration.command == first.view.connector.configuration.command
        assert (await hub.connectors.add_or_update("test", description="Another")).change == "updated"


async def test_a_secret_that_differs_is_a_change(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        url = "http://127.0.0.1:9/mcp"
        add = hub.connectors.add_or_update
        assert (await add("notes", url=url, bearer=SecretStr("one"), connect=False)).change == "added"
        assert (await add("notes", url=url, bearer="one", connect=False)).change == "unchanged"
        assert (await add("notes", url=url, bearer="two", connect=False)).change == "updated"


async def test_a_tool_of_this_process_comes_and_goes(tmp_path: Path) -> None:
    hub = Hub(Settings(home=tmp_path))

    @hub.tool
    def early() -> str:
        return "early"

    hub.remove_tool("early")
    async with hub:

        @hub.tool
        def greet(name: str) -> str:
            return f"hello {name}"

        assert (await hub.call("greet", {"name": "Ann"})).result == "hello Ann"
        hub.remove_tool("greet")
        assert [tool.name for tool in hub.tools.list("native")] == []
        output = await hub.call("greet", {"name": "Ann"})
        assert output.error
        assert output.error.code == "not_found"
        with pytest.raises(NotFound):
            hub.remove_tool("greet")


async def test_a_program_is_told_what_to_do_in_python(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        with pytest.raises(NotFound) as caught:
            await hub.runs.get("run_x")
        assert caught.value.hint == "hub.runs.list() shows those there are"
        assert caught.value.command_hint == "dragoman runs list shows those there are"
        await hub.connectors.add("test", **stdio())
        await hub.connectors.disable("test")
        output = await hub.call("mcp_test_echo", {})
        assert output.error
        assert output.error.hint == 'enable it first: hub.connectors.enable("test")'


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "library.py")],
        env={"DRAGOMAN_HOME": str(tmp_path), "PATH": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["added", "unchanged", "Hello, Ann!", "not_found"]
