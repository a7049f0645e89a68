"""The master key: where it comes from, and how it is replaced while everything goes on."""

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, Hub, Settings
from dragoman.errors import Denied, KeyFault
from dragoman.store import open_store
from servers.hubs import open_hub, quick, runtime_of
from servers.processes import HERE
from servers.toolbox import digest

pytestmark = pytest.mark.anyio
ONE, TWO = b"\xff" * 32, bytes(range(32))
HEX, BASE64 = ONE.hex(), b64encode(TWO).decode()
CANARY = "canary-90b1"


def command(**facts: Any) -> dict[str, Any]:
    return quick(command=sys.executable, args=[str(HERE / "stdio_server.py")], **facts)


async def is_seen(hub: Hub) -> bool:
    """Whether the server has the secret, which it can only show by its digest."""
    return (await hub.call("mcp_test_environment", {})).result["digests"]["API_TOKEN"] == digest(CANARY)


async def test_a_rotation_seals_everything_anew_and_the_old_key_may_go(
    tmp_path: Path, database_url: str
) -> None:
    settings = Settings(home=tmp_path, database_url=database_url)
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **command(env={"API_TOKEN": CANARY}))
        before = settings.key_file.read_bytes()
        rotation = await hub.credentials.rotate()
        assert (rotation.is_new, rotation.resealed, len(rotation.older)) == (True, 1, 1)
        assert settings.key_file.read_bytes() != before
        kept = tmp_path / f"key.{rotation.older[0]}"
        assert kept.read_bytes() == before
        assert kept.stat().st_mode & 0o777 == settings.key_file.stat().st_mode & 0o777 == 0o600
        async with open_store(hub.settings.store_url) as store:
            assert await store.connectors.key_ids() == {rotation.key_id}
        assert await is_seen(hub)
    async with Hub(settings) as hub:
        assert (await hub.credentials.rotate(forget_old=True)).forgotten == rotation.older
        assert not kept.exists()
        await hub.connectors.disconnect("test")
        assert await is_seen(hub)


async def test_a_rotation_that_was_interrupted_is_finished(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=database_url)
    async with Hub(settings) as hub:
        env = {f"API_TOKEN{number}": f"{CANARY}{number}" for number in range(250)}
        await hub.connectors.add("test", **command(env={**env, "API_TOKEN": CANARY}))
        vault = runtime_of(hub).vault
        vault.replace_key()  # and then the power fails
    async with Hub(settings) as hub:
        assert await is_seen(hub), "what is not sealed anew yet still opens"
        with pytest.raises(KeyFault, match="still sealed"):
            await hub.credentials.rotate(forget_old=True)
        rotation = await hub.credentials.rotate()
        assert (rotation.is_new, rotation.resealed) == (False, 251)
        async with open_store(hub.settings.store_url) as store:
            assert len(await store.connectors.key_ids()) == 1


async def test_another_process_sees_the_new_key(tmp_path: Path, sqlite_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=sqlite_url)
    async with Hub(settings) as one:
        await one.connectors.add("test", **command(env={"API_TOKEN": CANARY}))
        async with Hub(settings) as other:
            await one.credentials.rotate()
            assert await is_seen(other)


async def test_only_the_operator_rotates(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        for role in ("member", "admin"):
            with pytest.raises(Denied):
                await hub.acting_for(Caller(role=role)).credentials.rotate()


@pytest.mark.parametrize("given", [HEX, HEX.upper(), BASE64, BASE64.rstrip("=")])
async def test_a_key_from_outside(tmp_path: Path, given: str) -> None:
    async with open_hub(tmp_path, key=given) as hub:
        await hub.connectors.add("test", **command(env={"API_TOKEN": CANARY}))
        assert await is_seen(hub)
        with pytest.raises(KeyFault, match="from outside"):
            await hub.credentials.rotate()
        assert given not in repr(hub.settings)
    assert not (tmp_path / "key").exists()


async def test_a_ring_from_outside_is_rotated_by_its_first_key(tmp_path: Path) -> None:
    async with open_hub(tmp_path, key=HEX) as hub:
        await hub.connectors.add("test", **command(env={"API_TOKEN": CANARY}))
    async with open_hub(tmp_path, key=f"{BASE64}, {HEX}") as hub:
        assert (await hub.credentials.rotate()).resealed == 1
    async with open_hub(tmp_path, key=BASE64) as hub:
        assert await is_seen(hub)
    with pytest.raises(KeyFault, match="another master key"):
        async with open_hub(tmp_path, key=HEX):
            pass


@pytest.mark.parametrize("output", [HEX, f"{BASE64}\\n", "raw"])
async def test_a_key_printed_by_a_command(tmp_path: Path, output: str) -> None:
    words = "import sys; sys.stdout.buffer.write(b'\\xff' * 32)" if output == "raw" else f"print('{output}')"
    script = tmp_path / "print key.py"
    script.write_text(words)
    async with open_hub(tmp_path / "home", key_command=f"{sys.executable} '{script}'") as hub:
        assert runtime_of(hub).vault.key_ids


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"key": "short"}, "holds"),
        ({"key": ONE[:16].hex()}, "16 bytes instead of 32"),
        ({"key": " , "}, "no key"),
        ({"key": f"{HEX},nonsense!"}, "no key"),
        ({"key": HEX, "key_command": "true"}, "2 sources"),
        ({"key_command": "true"}, "no key"),
        ({"key_command": "false"}, "ended with 1"),
        ({"key_command": "no-such-program-at-all"}, "cannot be run"),
        ({"key_command": "'unbalanced"}, "cannot be run"),
    ],
)
async def test_a_key_that_is_none_stops_the_start_and_is_not_repeated(
    tmp_path: Path, facts: dict[str, str], expected: str
) -> None:
    with pytest.raises(KeyFault, match=expected) as caught:
        async with open_hub(tmp_path, **facts):
            pass
    said = f"{caught.value} {caught.value.hint}"
    assert HEX not in said
    assert "nonsense!" not in said
    assert not (tmp_path / "key").exists()


async def test_a_key_file_beside_a_key_from_outside_is_one_source_too_many(tmp_path: Path) -> None:
    async with open_hub(tmp_path):
        pass
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(KeyFault, match="2 sources"):
        async with open_hub(tmp_path, key=HEX):
            pass
    assert (tmp_path / "key").read_bytes() == before


async def test_a_lost_key_file_is_not_made_anew(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path, database_url=database_url)
    async with Hub(settings) as hub:
        await hub.connectors.add("test", **command(env={"API_TOKEN": CANARY}), connect=False)
    settings.key_file.unlink()
    with pytest.raises(KeyFault, match="no key file"):
        async with Hub(settings):
            pass
    assert not settings.key_file.exists()
