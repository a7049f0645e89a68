"""Being let in by NATS: TLS, passwords, tokens, .creds files; nothing of it is shown to anybody."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import pytest

from cluster.nats_identities import Authority, Realm
from cluster.nats_server import NatsServer
from cluster.nodes import KEY, keys, node
from dragoman import Hub
from dragoman.background_tasks import Supervisor
from dragoman.cluster.nats import open_nats
from dragoman.cluster.nats_connection import NatsAddress
from dragoman.errors import ClusterFault
from dragoman.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
PASSWORD = "p@ss/word:with?signs"
ENCODED = "p%40ss%2Fword%3Awith%3Fsigns"


async def joins(server: str, **address: Any) -> bool:
    given = NatsAddress(servers=(server,), **address)
    async with open_nats(given, node(), {"database": "one"}, Supervisor(), keys()) as cluster:
        return cluster.is_connected


@contextmanager
def refused(*words: str) -> Generator[None]:
    """Whoever may not come in is told so, and no secret is in what they are told or in the log."""
    kept, loggers = BufferingHandler(10_000), [logging.getLogger(name) for name in (None, "dragoman")]
    levels = [logger.level for logger in loggers]
    loggers[0].addHandler(kept)
    try:
        for logger in loggers:
            logger.setLevel(logging.DEBUG)
        with pytest.raises(ClusterFault) as fault:
            yield
    finally:
        loggers[0].removeHandler(kept)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    said = f"{fault.value.message} {fault.value.hint} {[vars(record) for record in kept.buffer]}"
    for word in words:
        assert word in said
    for secret in ("p@ss", "p%40ss", "t0ken", "SUA", "eyJ"):
        assert secret not in said


def tls(certificate: Path, more: str = "") -> str:
    return f'tls {{ cert_file: "{certificate}", key_file: "{certificate}" {more} }}'


async def test_by_tls_and_nothing_goes_in_the_open_that_was_to_go_by_tls(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    certificate, elsewhere = ours.issue("server", "127.0.0.1"), ours.issue("elsewhere", "10.0.0.1")
    async with NatsServer(tmp_path / "nats", lines=tls(certificate)) as server:
        address = server.url.replace("nats://", "tls://")
        assert await joins(address, authorities=str(ours.path))
        assert await joins(server.url, authorities=str(ours.path))
        for wrong in ({"authorities": str(other.path)}, {}):
            with refused("cannot be reached by TLS", "certificate", "DRAGOMAN_CLUSTER_CA"):
                await joins(address, **wrong)
    async with NatsServer(tmp_path / "elsewhere", lines=tls(elsewhere)) as server:
        with refused("cannot be reached by TLS", "not valid for '127.0.0.1'"):
            await joins(server.url, authorities=str(ours.path))
    async with NatsServer(tmp_path / "open", lines='authorization { token: "t0ken" }') as server:
        with refused("cannot be reached by TLS", "does not offer TLS"):
            await joins(server.url.replace("nats://", "tls://t0ken@"))
        with refused("does not offer TLS"):
            await joins(server.url.replace("nats://", "nats://t0ken@"), authorities=str(ours.path))
    for wrong in (tmp_path / "no such file", tmp_path / "nats" / "nats.conf"):
        with refused("certificates for NATS cannot be read"):
            await joins("tls://127.0.0.1:1", authorities=str(wrong))
        with refused("certificates for NATS cannot be read"):
            await joins("tls://127.0.0.1:1", certificate=str(wrong))


async def test_a_server_that_asks_for_a_certificate_gets_ours(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    lines = tls(ours.issue("server", "127.0.0.1"), f', ca_file: "{ours.path}", verify: true')
    async with NatsServer(tmp_path / "nats", lines=lines) as server:
        known = {"authorities": str(ours.path)}
        assert await joins(server.url, **known, certificate=str(ours.issue("node")))
        for wrong in ({}, {"certificate": str(other.issue("stranger"))}):
            with pytest.raises(ClusterFault):
                await joins(server.url, **known, **wrong)


async def test_by_password_or_token_with_any_signs_in_them(tmp_path: Path) -> None:
    lines = f'authorization {{ user: "a:da", password: "{PASSWORD}" }}'
    async with NatsServer(tmp_path / "password", lines=lines) as server:
        assert await joins(server.url.replace("nats://", f"nats://a%3Ada:{ENCODED}@"))
        with refused("refused the credentials", "DRAGOMAN_CLUSTER_CREDENTIALS"):
            await joins(server.url.replace("nats://", f"nats://ada:{ENCODED}@"))
        with refused("refused the credentials"):
            await joins(server.url)
    async with NatsServer(tmp_path / "token", lines='authorization { token: "t0ken/?" }') as server:
        assert await joins(server.url.replace("nats://", "nats://t0ken%2F%3F@"))
        with refused("refused the credentials"):
            await joins(server.url.replace("nats://", "nats://t0ken@"))
    two = NatsAddress(servers=("nats://ada:p%40ss@127.0.0.1:1", "nats://t0ken@127.0.0.1:2"))
    with refused("more than one user"):
        async with open_nats(two, node(), {}, Supervisor(), keys()):
            pass


async def test_by_a_file_of_credentials(tmp_path: Path) -> None:
    ours, other = Realm(), Realm()
    good, stranger = ours.credentials(tmp_path / "good.creds"), other.credentials(tmp_path / "other.creds")
    async with NatsServer(tmp_path / "nats", lines=ours.lines) as server:
        assert await joins(server.url, credentials=str(good))
        with refused("refused the credentials"):
            await joins(server.url, credentials=str(stranger))
        with refused("more than one user"):
            await joins(server.url.replace("nats://", "nats://t0ken@"), credentials=str(good))
    empty, cut = tmp_path / "empty.creds", tmp_path / "cut.creds"
    empty.write_text("nothing")
    cut.write_text(good.read_text().replace("SU", "SA"))
    for wrong, why in ((tmp_path / "none.creds", "No such file"), (empty, "no JWT"), (cut, "no JWT")):
        with refused(why, wrong.name, "DRAGOMAN_CLUSTER_CREDENTIALS"):
            await joins("nats://127.0.0.1:1", credentials=str(wrong))


async def test_a_node_is_let_in_as_its_settings_say_and_shows_no_secret(
    tmp_path: Path, postgres_url: str
) -> None:
    ours = Authority(tmp_path / "ours")
    lines = (
        tls(ours.issue("server", "127.0.0.1")) + f'\nauthorization {{ user: ada, password: "{PASSWORD}" }}'
    )
    async with NatsServer(tmp_path / "nats", lines=lines) as server:
        settings = Settings(
            home=tmp_path / "home",
            key=KEY,
            database_url=postgres_url,
            cluster_url=(server.url.replace("nats://", f"tls://ada:{ENCODED}@"),),
            cluster_ca=str(ours.path),
        )
        async with Hub(settings) as hub:
            status = await hub.cluster.status()
            assert status.is_connected
            assert "p@ss" not in f"{status} {settings}"
            assert "p%40ss" not in f"{status} {settings}"
            assert PASSWORD not in hub.without_secrets(f"it said {PASSWORD}")
