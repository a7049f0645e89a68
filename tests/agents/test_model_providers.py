"""Keys of model providers that people give: sealed, told to nobody, in force at once, each tenant's own."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman import BoundHub, Caller, Hub
from dragoman.errors import Conflict, Denied, InvalidConfig, NotFound
from dragoman.scope import APP, LOCAL_CALLER
from servers.hubs import open_hub, runtime_of
from servers.scenarios import Reply, Turn
from servers.scripted_models import ScriptedServer, open_scripted_openai

pytestmark = pytest.mark.anyio
KEY, OTHER = "sk-canary-own-55aa77", "sk-canary-app-99bb11"
LAB: dict[str, Any] = {"kind": "openai-compatible", "model": "qwen3"}


def ok(turn: Turn) -> Reply:
    return Reply(text="ok")


@pytest.fixture
async def server() -> AsyncGenerator[ScriptedServer]:
    async with open_scripted_openai(ok) as server:
        yield server


@pytest.fixture(autouse=True)
def no_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")


async def test_a_key_is_given_tested_used_and_taken_away_without_a_restart(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with open_hub(tmp_path / "home") as hub:
        assert (await hub.models.choose()).is_offline
        with pytest.raises(InvalidConfig, match="no language model"):
            await hub.models.test()
        view = await hub.models.set_provider("lab", key=KEY, url=f"{server.base_url}/", **LAB)
        assert (view.has_key, view.url, view.default) == (True, server.base_url, "lab:qwen3")
        assert (await hub.models.choose()).name == "lab:qwen3"
        tested = await hub.models.test()
        assert (tested.works, tested.answer) == (True, "ok")
        run = await hub.messages.ask("what is it?")
        assert (run.status, run.answer, run.model) == ("done", "ok", "lab:qwen3")
        assert {*server.keys} == {KEY}
        assert {request["model"] for request in server.requests} == {"qwen3"}
        # Another key, from the next request on.
        await hub.models.set_provider("lab", key=OTHER)
        assert (await hub.models.test("lab:other")).model == "lab:other"
        assert (server.keys[-1], server.requests[-1]["model"]) == (OTHER, "other")
        # An agent's own choice, and the workspace's.
        await hub.agents.create("clerk", model="lab:small")
        await hub.models.set_default("lab:large")
        assert (await hub.models.choose()).name == "lab:large"
        assert [one.model for one in await hub.models.list() if one.is_default] == ["lab:large"]
        run = await hub.messages.ask("@clerk what is it?")
        assert run.model == "lab:small"
        with pytest.raises(InvalidConfig, match="no provider"):
            await hub.models.set_default("nowhere:x")
        await hub.models.set_default(None)
        await hub.models.remove_provider("lab")
        assert (await hub.models.choose()).is_offline
        with pytest.raises(NotFound):
            await hub.models.get_provider("lab")


async def test_a_key_is_sealed_for_its_address_and_shown_to_nobody(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.models.set_provider("lab", key=KEY, url=server.base_url, **LAB)
        with pytest.raises(InvalidConfig, match="another address"):
            await hub.models.set_provider("lab", url="https://elsewhere.example/v1")
        files = b"".join(one.read_bytes() for one in (tmp_path / "home").rglob("*") if one.is_file())
        assert b"openai-compatible" in files
        assert KEY.encode() not in files
        assert KEY not in repr(await hub.models.providers())
        assert KEY not in repr(await runtime_of(hub).given_providers.of(LOCAL_CALLER.workspace))
        assert hub.without_secrets(f"it was {KEY}") == "it was [hidden]"
        # A row that is moved to another address does not open.
        (row,) = await runtime_of(hub).store.model_providers.list(LOCAL_CALLER.workspace)
        assert row.secret is not None
        before = await hub.credentials.rotate()
        assert before.resealed == 1
        assert (await hub.models.test()).works
        assert server.keys[-1] == KEY
        assert (await hub.credentials.rotate(forget_old=True)).forgotten
    async with open_hub(tmp_path / "home") as hub:
        assert (await hub.models.test()).works


async def test_what_cannot_work_is_refused_and_says_what_to_give(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        given = hub.models.set_provider
        refusals: tuple[tuple[str, dict[str, Any], str], ...] = (
            ("openai", {}, "needs a key"),
            ("opnai", {"key": KEY}, "no kind of provider"),
            ("lab", {"kind": "openai-compatible", "key": KEY}, "needs an address"),
            ("openai", {"kind": "openai-compatible", "url": "https://a.example"}, "cannot be called"),
            ("mine", {"kind": "openai", "key": KEY}, "is called openai"),
            ("groq", {"key": KEY, "url": "https://a.example"}, "own address only"),
            ("lab", {**LAB, "url": "file:///etc/passwd"}, "no address"),
            ("lab", {**LAB, "url": f"https://ann:{KEY}@a.example"}, "more than an address"),
            ("openai", {"key": "two words"}, "cannot be sent"),
            ("openai", {"key": KEY, "model": "a,b"}, "one model"),
        )
        for name, facts, said in refusals:
            with pytest.raises((InvalidConfig, Conflict), match=said) as refused:
                await given(name, **facts)
            assert KEY not in str(refused.value)
        assert not await hub.models.providers()


async def test_a_refused_key_is_told_and_not_repeated(tmp_path: Path) -> None:
    async with open_scripted_openai(ok, key="another") as server, open_hub(tmp_path / "home") as hub:
        await hub.models.set_provider("lab", key=KEY, url=server.base_url, **LAB)
        tested = await hub.models.test()
        assert not tested.works
        assert "refused the key" in (tested.error or "")
        assert KEY not in repr(tested)


async def test_tenants_have_their_own_and_the_apps_and_never_another(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-environment-1")
    async with open_hub(tmp_path / "home", multi_user=True, allowed_networks=("127.0.0.0/8",)) as hub:
        acme, bolt = [await _workspace(hub, name) for name in ("acme", "bolt")]
        member = hub.acting_for(Caller(workspace=acme.caller.workspace, user=acme.caller.user, role="member"))
        await hub.models.set_provider("lab", key=OTHER, url=server.base_url, tier="app", **LAB)
        await acme.models.set_provider("lab", key=KEY, url=server.base_url, **LAB)
        await acme.models.set_provider("ours", url=server.base_url, **LAB)
        assert [(one.name, one.tier) for one in await acme.models.providers()] == [
            *(("lab", "workspace"), ("ours", "workspace"), ("lab", "app"))
        ]
        seen = await bolt.models.providers()
        assert [(one.name, one.tier, one.url, one.may_change) for one in seen] == [
            ("lab", "app", None, False)
        ]
        for whose, key in ((acme, KEY), (bolt, OTHER)):
            assert (await whose.models.test("lab:qwen3")).works
            assert server.keys[-1] == key
        # Nothing of the operator's environment goes to an address that somebody else gave.
        assert (await acme.models.test("ours:qwen3")).works
        assert "environment" not in server.keys[-1]
        with pytest.raises(InvalidConfig, match="no provider"):
            await bolt.models.test("ours:qwen3")
        asked: list[tuple[BoundHub, Literal["workspace", "app"]]] = [(member, "workspace"), (bolt, "app")]
        for who, tier in asked:
            with pytest.raises(Denied):
                await who.models.set_provider("openai", key=KEY, tier=tier)
            with pytest.raises(Denied):
                await who.models.remove_provider("lab", "app")
        agent = hub.acting_for(
            Caller(workspace=APP, user="owner", role="operator", agent="clerk", way="agent")
        )
        with pytest.raises(Denied):
            await agent.models.set_provider("openai", key=KEY, tier="app")
        await hub.people.remove_workspace(acme.caller.workspace)
        assert not await runtime_of(hub).store.model_providers.list(acme.caller.workspace)


async def test_an_address_that_people_give_leads_nowhere_inside(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with open_hub(tmp_path / "home", multi_user=True) as hub:
        acme = await _workspace(hub, "acme")
        for url in (server.base_url, server.base_url.replace("127.0.0.1", "localhost")):
            await acme.models.set_provider("lab", key=KEY, url=url, **LAB)
            tested = await acme.models.test()
            assert not tested.works
            assert "inside the network" in (tested.error or "")
        assert not server.requests
        # The operator answers for their own.
        await hub.models.set_provider("lab", key=KEY, url=server.base_url, tier="app", **LAB)
        await acme.models.remove_provider("lab", "workspace")
        assert (await acme.models.test()).works


async def _workspace(hub: Hub, name: str) -> BoundHub:
    """The hub as an admin of a new workspace has it."""
    made = await hub.people.add_workspace(name)
    user = await hub.people.add_user("ann", workspace=made.id, role="admin")
    return hub.acting_for(Caller(workspace=made.id, user=user.id, role="admin"))
