"""The wheel, with one extra, with all and with none, does the main job from an empty environment."""

import json
import os
from pathlib import Path
from urllib.request import urlopen

import pytest
from mcp import Client, StdioServerParameters

from packages.installed import ROOT, Environment, uvx
from patience import patient
from snippets import snippets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def sample_server(installed: Environment, folder: Path) -> list[str]:
    """The end of the command that adds it."""
    where = "from dragoman.examples import examples; print(examples() / 'servers' / 'email_server.py')"
    server = installed.python_output(where).strip()
    mail = folder / "mail"
    mail.mkdir(exist_ok=True)
    command = [str(installed.python), server, "--mailbox", str(mail / "mailbox.json")]
    return ["--mount", f"{mail}:rw", "--", *command]


def walk(installed: Environment, folder: Path) -> None:
    added = installed.dragoman("connectors", "add", "email", *sample_server(installed, folder))
    assert added.returncode == 0, added.stderr
    with installed.serving() as url:
        assert json.load(urlopen(f"{url}/health"))["status"] == "alive"
        tools = [tool["name"] for tool in installed.answer("tools", "list")["tools"]]
        assert "mcp_email_read-emails" in tools
        called = installed.answer("call", "mcp_email_read-emails", "limit=1")
        assert called["ok"], called
        found = installed.answer("tools", "search", "read my mail")
        assert "mcp_email_read-emails" in str(found["hits"][0])
        assert found["strategy"] == ("hybrid" if installed.extra else "bm25")
        if installed.extra:
            assert installed.answer("ask", "check my 2 latest emails")["status"] == "done"


def test_the_core_alone_goes_from_nothing_to_a_call_and_a_service(core: Environment, tmp_path: Path) -> None:
    walk(core, tmp_path)


@pytest.mark.parametrize("extra", ["agents", "all"])
def test_with_an_extra_agents_answer_too(extra: str, wheel: Path, tmp_path: Path) -> None:
    walk(Environment.make(tmp_path / "environment", wheel, extra), tmp_path)


@pytest.mark.anyio
async def test_three_commands_lead_from_nothing_to_a_call_in_a_client(
    wheel: Path, core: Environment, tmp_path: Path
) -> None:
    """Those of the guide: the first is what `core` did, the second has a server that needs no network."""
    page = snippets(ROOT / "docs" / "guides" / "install.md", "sh")
    (commands,) = (one.text.splitlines() for one in page if "dragoman connect " in one.text)
    install, add, connect = (line.split() for line in commands)
    assert install[:2] == ["pip", "install"]
    own = Environment(core.python, tmp_path / "home", "")
    for line in ([*add[1 : add.index("--")], *sample_server(own, tmp_path)], connect[1:]):
        done = own.dragoman(*line, HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]["dragoman"]
    server = StdioServerParameters(command=written["command"], args=written["args"], env=written["env"])
    async with Client(server, read_timeout_seconds=patient(30)) as client:
        answer = await client.call_tool("mcp_time_read-emails", {"limit": 1})
        assert not answer.is_error, answer


@pytest.mark.real
def test_uvx_serves_what_nobody_has_installed(wheel: Path, tmp_path: Path) -> None:
    nobodys = Environment(tmp_path / "none" / "python", tmp_path / "home", "")
    # As this machine reaches the package index.
    reached = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    with nobodys.serving(*uvx(wheel), **reached) as url:
        assert json.load(urlopen(f"{url}/health"))["status"] == "alive"
