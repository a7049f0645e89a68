"""Asking a registry, and what it says when it fails."""

import pytest

from discovery.registry_server import HONEST, open_registry, server, wrapped
from dragoman.discovery import McpRegistry
from dragoman.errors import DragomanError, InvalidConfig, NotFound, Unreachable

pytestmark = pytest.mark.anyio


async def test_a_search_finds_both_shapes_of_records() -> None:
    async with open_registry() as peer:
        page = await McpRegistry(peer.url).search("")
        assert [offer.name for offer in page.offers] == [record["name"] for record in HONEST]
        (older,) = (await McpRegistry(peer.url + "/").search("older")).offers
        assert (older.version, [way.kind for way in older.ways]) == ("0.3.0", ["pypi", "remote"])
        assert "search=older" in peer.asked[-1]
        assert "version=latest" in peer.asked[-1]


async def test_pages_follow_each_other() -> None:
    async with open_registry() as peer:
        registry, seen, cursor = McpRegistry(peer.url), [], None
        for _ in range(3):
            page = await registry.search(limit=5, cursor=cursor)
            seen += [offer.name for offer in page.offers]
            cursor = page.next_cursor
        assert cursor is None
        assert seen == [record["name"] for record in HONEST]


async def test_deleted_and_older_versions_are_left_out() -> None:
    records = [
        wrapped(server("a/gone"), "deleted"),
        wrapped(server("a/b", version="1"), is_latest=False),
        wrapped(server("a/b", version="2")),
        wrapped(server("a/c"), "deprecated"),
    ]
    async with open_registry(records) as peer:
        offers = (await McpRegistry(peer.url).search()).offers
        assert [(offer.name, offer.version, offer.status) for offer in offers] == [
            ("a/b", "2", "active"),
            ("a/c", "1.0.2", "deprecated"),
        ]


async def test_one_server_is_found_by_its_name() -> None:
    async with open_registry() as peer:
        offer = await McpRegistry(peer.url).get("io.example/web-search")
        assert (offer.title, offer.slug) == ("Web search", "web-search")
        assert (await McpRegistry(peer.url).get("io.example/older")).version == "0.3.0"


async def test_an_unknown_name_gets_those_that_are_near() -> None:
    async with open_registry() as peer:
        with pytest.raises(NotFound) as caught:
            await McpRegistry(peer.url).get("web-search")
        assert "io.example/web-search" in str(caught.value.hint)
        with pytest.raises(NotFound) as caught:
            await McpRegistry(peer.url).get("zzz")
        assert "hub.discovery.search" in str(caught.value.hint)


async def test_records_that_are_none_are_skipped_with_a_reason() -> None:
    async with open_registry([{"server": {}}, {"x": 1}, wrapped(server("a/b"))]) as peer:
        page = await McpRegistry(peer.url).search()
        assert [offer.name for offer in page.offers] == ["a/b"]
        assert page.skipped == ("record 1: a record has no name", "record 2: a record has no name")


@pytest.mark.parametrize(
    ("misbehaviour", "code", "told"),
    [
        ("500", "server_error", "failed with status 500"),
        ("503", "server_error", "failed with status 503"),
        ("429", "rate_limited", "fewer requests"),
        ("403", "protocol_fault", "refused with status 403"),
        ("404", "protocol_fault", "no /v0/servers"),
        ("html", "protocol_fault", "a web page"),
        ("list", "protocol_fault", "a list of servers"),
        ("other", "protocol_fault", "a list of servers"),
        ("slow", "timeout", "within 0.2 s"),
    ],
)
async def test_a_registry_that_fails_is_told_in_plain_words(misbehaviour: str, code: str, told: str) -> None:
    async with open_registry() as peer:
        peer.misbehaviour = misbehaviour
        with pytest.raises(DragomanError) as caught:
            await McpRegistry(peer.url, timeout=0.2).search("x")
        assert caught.value.code == code
        assert told in caught.value.message
        assert peer.url in caught.value.message
        assert caught.value.hint


async def test_a_registry_that_is_down_is_unreachable() -> None:
    async with open_registry() as peer:
        url = peer.url
    with pytest.raises(Unreachable) as caught:
        await McpRegistry(url).search()
    assert "DRAGOMAN_REGISTRY_URL" in str(caught.value.hint)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "registry.example", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfig):
        McpRegistry(url)
