"""Nothing runs that was not shown; what was shown is what is added."""

from pathlib import Path

import pytest

from discovery.registry_server import open_registry, package, server, wrapped
from dragoman import Caller
from dragoman.errors import Conflict, Denied, InvalidConfig
from dragoman.settings import Settings
from servers.hubs import listed, open_hub

pytestmark = pytest.mark.anyio

SECRET = "s3cret-of-the-registry"


async def test_what_was_shown_is_added_with_its_inputs_encrypted(tmp_path: Path) -> None:
    async with open_registry() as peer, open_hub(tmp_path, registry_url=peer.url) as hub:
        page = await hub.discovery.search("tickets")
        way = page.offers[0].ways[0]
        view = await hub.discovery.add(
            page.offers[0].name, shown=way.shown, inputs={"token": SECRET}, connect=False
        )
        configuration = view.connector.configuration
        assert (view.connector.slug, view.connector.description) == ("tickets", "Tickets in the cloud")
        assert configuration.url == "https://tickets.example/mcp"
        assert (configuration.headers, configuration.secrets) == (
            {"X-Region": "eu-1"},
            ("header:Authorization",),
        )


async def test_a_record_that_changed_since_it_was_shown_is_not_added(tmp_path: Path) -> None:
    async with open_registry() as peer, open_hub(tmp_path, registry_url=peer.url) as hub:
        shown = (await hub.discovery.get("io.example/time")).ways[0].shown
        peer.records = [wrapped(server("io.example/time", packages=[package("pypi", "evil-time", "9")]))]
        with pytest.raises(Conflict) as caught:
            await hub.discovery.add("io.example/time", shown=shown)
        assert "uvx evil-time==9" in str(caught.value.hint)
        assert await listed(hub) == []


async def test_a_missing_input_adds_nothing(tmp_path: Path) -> None:
    async with open_registry() as peer, open_hub(tmp_path, registry_url=peer.url) as hub:
        shown = (await hub.discovery.get("io.example/web-search")).ways[0].shown
        with pytest.raises(InvalidConfig, match="SEARCH_API_KEY is needed"):
            await hub.discovery.add("io.example/web-search", shown=shown)
        assert await listed(hub) == []


async def test_an_offer_without_a_way_says_why_it_cannot_be_added(tmp_path: Path) -> None:
    async with open_registry() as peer, open_hub(tmp_path, registry_url=peer.url) as hub:
        with pytest.raises(InvalidConfig, match="npm, PyPI"):
            await hub.discovery.add("io.example/bundle", shown="x")
        with pytest.raises(InvalidConfig, match="no way to reach it"):
            await hub.discovery.add("io.example/nothing", shown="x")


async def test_who_may_search_is_a_setting(tmp_path: Path) -> None:
    person, agent = Caller(), Caller(way="agent")
    async with open_registry() as peer:
        for mode, allowed in (("off", []), ("manual", [person]), ("automatic", [person, agent])):
            async with open_hub(tmp_path, registry_url=peer.url, discovery=mode) as hub:
                for caller in (person, agent):
                    peer.asked.clear()
                    if caller in allowed:
                        assert (await hub.acting_for(caller).discovery.search("time")).offers
                    else:
                        with pytest.raises(Denied):
                            await hub.acting_for(caller).discovery.search("time")
                        assert peer.asked == []
        async with open_hub(tmp_path, registry_url=peer.url, discovery="automatic") as hub:
            with pytest.raises(Denied, match="only a person"):
                await hub.acting_for(agent).discovery.add(
                    "io.example/time", shown="uvx mcp-server-time==0.6.2"
                )


def test_the_settings_come_from_the_environment() -> None:
    settings = Settings.load({"DRAGOMAN_DISCOVERY": "off", "DRAGOMAN_REGISTRY_URL": "http://127.0.0.1:1"})
    assert (settings.discovery, settings.registry_url) == ("off", "http://127.0.0.1:1")
    assert Settings.load({}).discovery == "manual"
    with pytest.raises(InvalidConfig, match="off, manual, automatic"):
        Settings.load({"DRAGOMAN_DISCOVERY": "sometimes"})
