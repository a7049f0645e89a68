"""What is new in a namespace is proposed and does not run; what is gone is said; nothing comes twice."""

from pathlib import Path

import pytest

from discovery.registry_server import open_registry, package, server, wrapped
from dragoman.errors import Denied, InvalidConfig
from dragoman.scope import Caller
from patience import until
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
TIME = server("io.example/time", "Tells the time", packages=[package("pypi", "mcp-server-time", "0.6.2")])
OTHERS = server("io.example.others/time", packages=[package("pypi", "others-time", "1")])
ASKING = server(
    "io.example/search",
    packages=[
        package("npm", "@example/search", environmentVariables=[{"name": "SEARCH_KEY", "isRequired": True}])
    ],
)
NOWHERE = server("io.example/nowhere")
FOLLOWING = {"discovery": "automatic", "registry_follow": ("io.example",)}


async def test_what_is_new_is_proposed_and_disabled_and_what_is_gone_is_said(tmp_path: Path) -> None:
    async with open_registry([wrapped(one) for one in (TIME, OTHERS, ASKING, NOWHERE)]) as peer:
        async with open_hub(tmp_path, registry_url=peer.url, **FOLLOWING) as hub:

            async def is_known() -> bool:
                return bool(await hub.discovery.followed())

            await until(is_known)
            found = {one.name: one for one in await hub.discovery.followed()}
            assert {name: one.state for name, one in found.items()} == {
                "io.example/time": "proposed",
                "io.example/search": "listed",
                "io.example/nowhere": "refused",
            }
            assert found["io.example/time"].shown == "uvx mcp-server-time==0.6.2"
            assert found["io.example/search"].asks == ("SEARCH_KEY",)
            [view] = [one for one in await hub.connectors.list() if one.connector.kind != "native"]
            assert (view.connector.slug, view.connector.enabled) == ("time", False)
            assert view.connector.configuration.args == ("mcp-server-time==0.6.2",)
            assert view.status.state == "disabled"

            newer = server("io.example/time", packages=[package("pypi", "mcp-server-time", "0.7.0")])
            peer.records = [wrapped(one) for one in (newer, ASKING)]
            found = {one.name: one for one in await hub.discovery.look()}
            assert found["io.example/time"].offered == "uvx mcp-server-time==0.7.0"
            assert found["io.example/time"].shown == "uvx mcp-server-time==0.6.2"
            assert (await hub.connectors.get("time")).connector.configuration.args == (
                "mcp-server-time==0.6.2",
            ), "what a person may have read is not changed"
            assert found["io.example/nowhere"].is_gone
            await hub.connectors.remove("time")
        async with open_hub(tmp_path, registry_url=peer.url, **FOLLOWING) as hub:
            await hub.discovery.look()
            slugs = [one.connector.slug for one in await hub.connectors.list()]
            assert "time" not in slugs, "what a person removed is not proposed again"
            peer.records = []
            assert all(one.is_gone for one in await hub.discovery.look())
            with pytest.raises(Denied):
                await hub.acting_for(Caller(way="direct", role="member")).discovery.look()


async def test_a_namespace_is_enabled_only_where_the_app_says_so(tmp_path: Path) -> None:
    remote = server("io.example/near", remotes=[{"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"}])
    async with (
        open_registry([wrapped(remote)]) as peer,
        open_hub(
            tmp_path, registry_url=peer.url, discovery="automatic", registry_follow=("io.example enable",)
        ) as hub,
    ):
        [one] = await hub.discovery.look()
        assert (one.state, one.shown, one.connector) == ("enabled", "http://127.0.0.1:9/mcp", "near")
        assert (await hub.connectors.get("near")).connector.enabled


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"registry_follow": ("io.example",)}, "discovery is not automatic"),
        ({"registry_follow": ("io.example/*",), "discovery": "automatic"}, "is no namespace"),
        ({"registry_follow": ("io.example run",), "discovery": "automatic"}, "is no namespace"),
    ],
)
async def test_what_cannot_be_followed_is_said_at_the_start(
    tmp_path: Path, settings: dict[str, object], why: str
) -> None:
    with pytest.raises(InvalidConfig, match=why):
        async with open_hub(tmp_path, **settings):
            pass
