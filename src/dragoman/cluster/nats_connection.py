"""The way to NATS: where its servers are, by TLS or in the open, and who this process says it is.

What is secret of it stays here: in no message, no log, no status.
"""

import asyncio
import ssl
from base64 import b32decode, b64encode
from binascii import Error as NotBase32
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.aio.client import Client
from nats.errors import AuthorizationError, Error

from dragoman.errors import ClusterFault
from dragoman.telemetry.logs import get_logger

_FIRST = 8  # seconds for the first connection
_AGAIN: Any = 0.2  # seconds between two attempts; declared as whole ones
LEAVES_WITHIN = 0.5
_OLDEST = (2, 10)  # of the server
_JWT, _SEED = "NATS USER JWT", "USER NKEY SEED"
_SEED_PREFIX = 18 << 3  # of an nkey that is a seed; the seed of a user begins with SU
_FLUSHED = 2.0  # seconds in which the server has heard what was written
Heard = Callable[[], Awaitable[None]]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAddress:
    """Where the servers are, and what is needed to be let in. `prefix` is the installation's.

    A user and a password, or a token, are in the addresses; `credentials` is the path of a .creds file
    instead. `authorities` is the path of certificates that a server's may be signed by, `certificate` that
    of our own with its key, both in PEM. An address with `tls://`, or either path, means: TLS or nothing.
    """

    servers: tuple[str, ...] = field(repr=False)
    prefix: str = "dragoman"
    credentials: str = ""
    authorities: str = ""
    certificate: str = ""

    def __post_init__(self) -> None:
        for server in self.servers:
            if not _is_address(server):
                raise ClusterFault(
                    f"{_without_user(server)[:200]!r} in DRAGOMAN_CLUSTER_URL is no address of NATS",
                    hint="nats://host:4222, or tls://host:4222; several with commas",
                )

    @property
    def shown(self) -> str:
        """Without what is secret."""
        return ", ".join(map(_without_user, self.servers))

    @property
    def secrets(self) -> list[str]:
        """What of the addresses nobody may read in a log."""
        found = [unquote(part) for server in self.servers for part in _user_of(server).split(":", 1)[-1:]]
        return [one for one in found if one]

    @property
    def needs_tls(self) -> bool:
        is_said = any(server.startswith("tls://") for server in self.servers)
        return is_said or bool(self.authorities or self.certificate)


async def heeded(work: Awaitable[Answer]) -> Answer:
    """What is awaited, unless its task is told to end meanwhile: then it ends, also where the library says
    nothing of it. That waits by `asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes
    in one moment with the answer, and swallows one while it writes.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        return await work
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


class NatsClient(Client):
    """Sends nothing in the open that was to go by TLS, whatever the server, or who stands between, says.

    Who waits for it can be cancelled at any moment (`heeded`); all of JetStream goes by `request`.
    """

    needs_tls = False

    def _connect_command(self) -> Any:
        if self.needs_tls and not self._server_info.get("tls_required"):
            raise ssl.SSLError("the server does not offer TLS")
        return super()._connect_command()

    async def request(self, *args: Any, **options: Any) -> Any:
        return await heeded(super().request(*args, **options))

    async def flush(self, timeout: Any = _FLUSHED) -> None:
        await heeded(super().flush(timeout))

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        return await heeded(super()._flush_pending(force_flush))

    async def _process_pong(self) -> None:
        # Who waited for it may have left. The library would take that for a fault of the connection.
        awaited: list[asyncio.Future[bool]] = cast("Any", self)._pongs
        if awaited and awaited[0].done():
            awaited[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()


async def connect(client: NatsClient, address: NatsAddress, reconnected: Heard, disconnected: Heard) -> None:
    """Waits a moment for the first server that answers; later, for as long as it takes."""
    client.needs_tls = address.needs_tls
    options = {**_user(address), **_tls(address)}
    refusals, is_in = 0, False

    async def noted(error: Exception) -> None:
        """What is raised here ends the first attempt to connect."""
        get_logger().debug("cluster.connection", cause=f"{type(error).__name__}: {error}"[:200])
        nonlocal refusals
        fault = None if is_in else _refusal(error, address)
        refusals += fault is not None
        if fault is not None and refusals >= len(address.servers):
            raise fault  # before, another server might be willing

    try:
        async with asyncio.timeout(_FIRST):
            await client.connect(
                [_without_user(server) for server in address.servers],
                name="dragoman",
                connect_timeout=_FIRST,
                reconnect_time_wait=_AGAIN,
                max_reconnect_attempts=-1,
                error_cb=noted,
                reconnected_cb=reconnected,
                disconnected_cb=disconnected,
                ping_interval=2,
                max_outstanding_pings=2,
                **options,
            )
        is_in = True
        _check_version(client, address)
    except (ClusterFault, Error, OSError, TimeoutError) as error:
        # After a handshake that failed, the other side never says that it has closed.
        with suppress(Error, OSError, TimeoutError):
            async with asyncio.timeout(LEAVES_WITHIN):
                await client.close()
        if isinstance(error, ClusterFault):
            raise
        raise ClusterFault(
            f"NATS at {address.shown} does not answer", hint="is DRAGOMAN_CLUSTER_URL right, and does it run?"
        ) from error


def _refusal(error: Exception, address: NatsAddress) -> ClusterFault | None:
    """What trying again does not mend."""
    if isinstance(error, ssl.SSLError):
        said = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.args[-1]
        return ClusterFault(
            f"NATS at {address.shown} cannot be reached by TLS: {said}",
            hint="see DRAGOMAN_CLUSTER_CA, DRAGOMAN_CLUSTER_CERTIFICATE and the server's own certificate",
        )
    is_refused = isinstance(error, AuthorizationError) or "authorization" in str(error).lower()
    if not is_refused:
        return None
    return ClusterFault(
        f"NATS at {address.shown} refused the credentials",
        hint="put them into DRAGOMAN_CLUSTER_URL, or name a file in DRAGOMAN_CLUSTER_CREDENTIALS",
    )


def _check_version(client: NatsClient, address: NatsAddress) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < _OLDEST:
        raise ClusterFault(
            f"NATS at {address.shown} is {version.major}.{version.minor}",
            hint=f"Dragoman needs {_OLDEST[0]}.{_OLDEST[1]} or newer",
        )


# TLS


def _tls(address: NatsAddress) -> dict[str, Any]:
    if not address.needs_tls:
        return {}
    context = ssl.create_default_context()
    try:
        if address.authorities:
            # Those alone: whoever names one trusts no other.
            context = ssl.create_default_context(cafile=address.authorities)
        if address.certificate:
            context.load_cert_chain(address.certificate)
    except OSError as error:
        # Also of OpenSSL, for what is no certificate or no key.
        raise ClusterFault(
            f"the certificates for NATS cannot be read: {error.strerror or type(error).__name__}",
            hint="DRAGOMAN_CLUSTER_CA and DRAGOMAN_CLUSTER_CERTIFICATE name files in PEM",
        ) from None
    return {"tls": context}


# Who this process says it is


def _user(address: NatsAddress) -> dict[str, Any]:
    users = {found for server in address.servers if (found := _user_of(server))}
    if len(users) > 1 or (users and address.credentials):
        raise ClusterFault(
            "NATS is given more than one user", hint="all servers of a cluster know the same: name it once"
        )
    if address.credentials:
        path = Path(address.credentials)
        read_credentials(path)  # what is wrong with it is said at once

        # Read anew with each connection: a file that was replaced counts from then on.
        def jwt() -> bytearray:
            return bytearray(read_credentials(path)[0].encode())

        def signed(nonce: str) -> bytes:
            return b64encode(read_credentials(path)[1].sign(nonce.encode()))

        return {"user_jwt_cb": jwt, "signature_cb": signed}
    if not users:
        return {}
    name, has_password, password = users.pop().partition(":")
    if has_password:
        return {"user": unquote(name), "password": unquote(password)}
    return {"token": unquote(name)}


def read_credentials(path: Path) -> tuple[str, Ed25519PrivateKey]:
    """The JWT of a user, and the key that signs for it."""
    try:
        lines = path.read_text().splitlines()
        return _between(lines, _JWT), _key(_between(lines, _SEED))
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (ValueError, StopIteration):
        reason = "it holds no JWT and seed of a user"
    raise ClusterFault(
        f"the credentials file {path} cannot be used: {reason}",
        hint="DRAGOMAN_CLUSTER_CREDENTIALS names a .creds file, as nsc makes it",
    )


def _between(lines: list[str], name: str) -> str:
    begins = next(number for number, line in enumerate(lines) if f"BEGIN {name}" in line)
    return next(line.strip() for line in lines[begins + 1 :] if line.strip())


def _key(seed: str) -> Ed25519PrivateKey:
    """An nkey's seed: base32 of two bytes that say what it is, 32 of the seed, and two that check them."""
    try:
        raw = b32decode(seed + "=" * (-len(seed) % 8))
    except NotBase32:
        raise ValueError("not an nkey") from None
    if len(raw) != 36 or raw[0] & 0xF8 != _SEED_PREFIX or not seed.startswith("SU"):
        raise ValueError("not the seed of a user")
    return Ed25519PrivateKey.from_private_bytes(raw[2:34])


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server if "://" in server else f"nats://{server}")
        return parts.scheme in ("nats", "tls") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _user_of(server: str) -> str:
    return server.rpartition("://")[2].rpartition("@")[0]


def _without_user(server: str) -> str:
    scheme, sign, rest = server.rpartition("://")
    return scheme + sign + rest.rpartition("@")[2]
