"""Nobody's state reaches anybody else, and a child learns nothing that it was not told."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dragoman import Caller, Hub
from dragoman.scope import Isolation
from servers.hubs import QUICK, listed, open_hub
from servers.processes import HttpProcess, starts, stdio
from servers.toolbox import digest

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
EVERYBODY = Caller(user="")
ANNA = Caller(user="anna")
BERT = Caller(user="bert")
ANNA_ONE = Caller(user="anna", thread="one")
ANNA_TWO = Caller(user="anna", thread="two")


async def count(hub: Hub, caller: Caller) -> int:
    output = await hub.acting_for(caller).call("mcp_a_count", {})
    assert output.ok, output.error
    return output.result["count"]


@pytest.mark.parametrize(
    ("isolation", "counts", "processes"),
    [("shared", [1, 2, 3, 4, 5], 1), ("user", [1, 1, 2, 3, 4], 2), ("thread", [1, 1, 1, 1, 2], 4)],
)
async def test_state_is_shared_exactly_as_far_as_the_connector_says(
    tmp_path: Path, isolation: Isolation, counts: list[int], processes: int
) -> None:
    log = tmp_path / "log"
    async with open_hub(tmp_path) as hub:
        words = stdio("--log", str(log))
        await hub.acting_for(EVERYBODY).connectors.add("a", **words, **QUICK, isolation=isolation)
        await hub.acting_for(EVERYBODY).connectors.disconnect("a")
        before = starts(log)
        callers = [ANNA, BERT, ANNA_ONE, ANNA_TWO, ANNA_TWO]
        assert [await count(hub, caller) for caller in callers] == counts
        assert starts(log) - before == processes


async def test_sessions_of_an_http_server_are_not_shared_between_users(tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "--era", "2025") as server:
        async with open_hub(tmp_path) as hub:
            await hub.acting_for(EVERYBODY).connectors.add("a", url=server.url, **QUICK)
            assert await count(hub, ANNA) == 1
            assert await count(hub, BERT) == 1
            assert await count(hub, ANNA) == 2
            used = {request["headers"].get("Mcp-Session-Id") for request in server.seen("tools/call")}
            assert len(used) == 2


async def test_many_callers_of_two_users_never_mix(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.acting_for(EVERYBODY).connectors.add("a", **stdio(), **QUICK)

        async def pids(caller: Caller) -> set[int]:
            outputs = await asyncio.gather(
                *(hub.acting_for(caller).call("mcp_a_count", {}) for _ in range(20))
            )
            assert sorted(output.result["count"] for output in outputs) == list(range(1, 21))
            return {output.result["pid"] for output in outputs}

        anna, bert = await asyncio.gather(pids(ANNA), pids(BERT))
        assert len(anna) == len(bert) == 1
        assert anna != bert


async def test_another_workspace_does_not_see_the_connector(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("a", **stdio(), **QUICK)
        output = await hub.acting_for(Caller(workspace="elsewhere")).call("mcp_a_echo", {"text": "x"})
        assert output.error is not None
        assert output.error.code == "not_found"


async def test_a_child_gets_the_allow_list_and_what_its_connector_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_TEST_CANARY", "leaked")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaked")
    monkeypatch.setenv("SSL_CERT_FILE", "/certificates/company.pem")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/certificates/company.pem")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("WHERE", "the environment")
    async with open_hub(tmp_path) as hub:
        words = stdio("--label", "${WHERE}")
        await hub.connectors.add(
            "a",
            **words,
            **QUICK,
            env={"COLOUR": "blue", "FROM": "${WHERE}", "API_TOKEN": "a secret"},
            cwd=str(tmp_path),
        )
        facts = (await hub.call("mcp_a_environment", {})).result
        child = facts["env"]
        assert "leaked" not in str(child)
        assert child["COLOUR"] == "blue"
        assert child["FROM"] == "the environment"
        assert facts["digests"]["API_TOKEN"] == digest("a secret")  # the value itself is taken out of results
        assert child["SSL_CERT_FILE"] == "/certificates/company.pem"
        assert child["NODE_EXTRA_CA_CERTS"] == "/certificates/company.pem"
        assert child["HTTPS_PROXY"] == "http://proxy.example:3128"
        assert child["HOME"] == os.environ["HOME"]
        assert child["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
        assert facts["cwd"] == str(tmp_path)
        assert "the environment" in facts["argv"]
        assert "a secret" not in repr(await hub.connectors.get("a"))


async def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("a", **stdio(), **QUICK, env={"X": "${NO_SUCH_VARIABLE_ANYWHERE}"})
        assert view.status.state == "error"
        assert "NO_SUCH_VARIABLE_ANYWHERE" in (view.status.cause or "")
        assert view.status.hint
        assert view.status.next_attempt is None


async def test_credentials_reach_the_server_and_nothing_else(tmp_path: Path) -> None:
    with (
        HttpProcess(tmp_path, "--token", "t0ken") as bearer,
        HttpProcess(tmp_path, "--api-key", "X-Key=k3y") as key,
    ):
        async with open_hub(tmp_path) as hub:
            await hub.connectors.add("a", url=bearer.url, bearer="t0ken", **QUICK)
            await hub.connectors.add("b", url=key.url, api_key="k3y", api_key_header="X-Key", **QUICK)
            assert (await hub.call("mcp_a_echo", {"text": "x"})).ok
            assert (await hub.call("mcp_b_echo", {"text": "x"})).ok
            shown = repr(await listed(hub))
            assert "t0ken" not in shown
            assert "k3y" not in shown
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"t0ken" in content or b"k3y" in content for content in files)
