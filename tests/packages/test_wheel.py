"""The wheel, with one extra, with all and with none, does the main job from an empty environment."""

import json
from pathlib import Path
from urllib.request import urlopen

import pytest

from packages.installed import Environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def walk(installed: Environment, folder: Path) -> None:
    where = "from dragoman.examples import examples; print(examples() / 'servers' / 'email_server.py')"
    server = installed.python_output(where).strip()
    program = [str(installed.python), server, "--mailbox", str(folder / "mailbox.json")]
    added = installed.dragoman("connectors", "add", "email", "--", *program)
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
