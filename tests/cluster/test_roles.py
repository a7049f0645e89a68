"""What a process does for the installation is said by its roles."""

from pathlib import Path

import pytest

from api.live import open_service
from dragoman.errors import InvalidConfig
from dragoman.settings import Settings

pytestmark = pytest.mark.anyio


def test_roles_are_some_of_those_that_are_known() -> None:
    assert Settings.load({}).roles == ("doors", "work", "hold")
    assert Settings.load({"DRAGOMAN_ROLES": " hold,doors "}).roles == ("doors", "hold")
    for wrong in ("dors", "work,cook", ","):
        with pytest.raises(InvalidConfig, match="DRAGOMAN_ROLES must be some of doors, work, hold"):
            Settings.load({"DRAGOMAN_ROLES": wrong})


async def test_a_process_without_doors_answers_those_who_watch_it_and_nobody_else(tmp_path: Path) -> None:
    async with open_service(tmp_path, roles=("work",)) as live:
        for path in ("/health", "/ready", "/metrics"):
            assert (await live.ask("GET", path)).status == 200, path
        for method, path in (("GET", "/api/tools"), ("POST", "/mcp"), ("GET", "/"), ("POST", "/api/call")):
            reply = await live.ask(method, path)
            assert (reply.status, reply.value["code"]) == (404, "not_found"), path
        assert (await live.ask("GET", "/api/tools", Authorization="Bearer wrong")).status == 401
