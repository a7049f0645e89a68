"""Seals secrets, opens them, and brings those of a connector to who needs them.

Each value is bound to its workspace, user, connector and name: moved to another row, it does not open.
"""

from collections.abc import Mapping, Sequence
from secrets import token_bytes

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from dragoman.connector import Connector
from dragoman.errors import KeyFault
from dragoman.store.protocols import ConnectorStore, SealedValues
from dragoman.store.records import SealedSecret
from dragoman.vault.keys import Key, KeyRing, KeySupply

_NONCE_BYTES = 12
_KEY_ID_BYTES = 4
_BATCH = 100
_PURPOSE = "dragoman secret 1"


class Vault:
    """Holds the secrets of the connections. The rows belong to the store, the keys to the ring.

    `supply` is where the ring came from: needed only to replace the key, and to see that another
    process did. `others` are further rows with something sealed, for the rotation.
    """

    def __init__(
        self,
        rows: ConnectorStore,
        keys: KeyRing,
        supply: KeySupply | None = None,
        others: Sequence[SealedValues] = (),
    ) -> None:
        self._rows = rows
        self._all: tuple[SealedValues, ...] = (rows, *others)
        self._keys = keys
        self._supply = supply

    def seal(self, workspace: str, user: str, connector_id: str, name: str, value: SecretStr) -> SealedSecret:
        """A shared secret has the empty user."""
        key = self._keys.current
        nonce = token_bytes(_NONCE_BYTES)
        bound = bound_to(workspace, user, connector_id, name)
        return SealedSecret(
            workspace=workspace,
            user=user,
            connector_id=connector_id,
            name=name,
            key_id=key.id,
            nonce=nonce,
            ciphertext=AESGCM(key.material).encrypt(nonce, _bytes(value.get_secret_value()), bound),
        )

    def open(self, sealed: SealedSecret) -> SecretStr:
        """`KeyFault` when another key sealed it, or when it was not sealed for this very place."""
        key = self._key(sealed.key_id)
        bound = bound_to(sealed.workspace, sealed.user, sealed.connector_id, sealed.name)
        try:
            value = AESGCM(key.material).decrypt(sealed.nonce, sealed.ciphertext, bound)
        except (InvalidTag, ValueError):
            raise KeyFault(
                f"the secret {sealed.name!r} was changed or moved since it was sealed",
                hint="set it again: dragoman credentials set, or dragoman connectors update",
            ) from None
        return SecretStr(value.decode("utf-8", "surrogatepass"))

    def seal_bytes(self, value: bytes, *place: str) -> bytes:
        """Any bytes, bound to the place where they are kept; key id and nonce come first."""
        key, nonce = self._keys.current, token_bytes(_NONCE_BYTES)
        return bytes.fromhex(key.id) + nonce + AESGCM(key.material).encrypt(nonce, value, bound_to(*place))

    def open_bytes(self, sealed: bytes, *place: str) -> bytes:
        """`KeyFault` when another key sealed them, or when they were not sealed for this very place."""
        key = self._key(sealed[:_KEY_ID_BYTES].hex())
        nonce = sealed[_KEY_ID_BYTES : _KEY_ID_BYTES + _NONCE_BYTES]
        try:
            return AESGCM(key.material).decrypt(
                nonce, sealed[_KEY_ID_BYTES + _NONCE_BYTES :], bound_to(*place)
            )
        except (InvalidTag, ValueError):
            raise KeyFault("a sealed value was changed or moved since it was sealed") from None

    def derived_key(self, key_id: str, *purpose: str) -> bytes:
        """A key for one purpose, of the master key with this id, of which it tells nothing."""
        derive = HKDF(SHA256(), length=32, salt=None, info=bound_to(*purpose))
        return derive.derive(self._key(key_id).material)

    async def reveal(
        self, connector: Connector, workspace: str = "", user: str = ""
    ) -> Mapping[str, SecretStr]:
        """By name: the shared secrets of a connector, and those of a user in their place where they exist."""
        sealed = await self._rows.secrets(connector, workspace, user)
        by_name = {one.name: one for one in sorted(sealed, key=lambda one: one.user != "")}
        return {name: self.open(one) for name, one in by_name.items()}

    async def put(
        self,
        connector: Connector,
        holder: tuple[str, str],
        values: Mapping[str, SecretStr],
        removed: Sequence[str] = (),
    ) -> None:
        """Keeps secrets of one holder (workspace and user) and drops the `removed` names, both or nothing."""
        sealed = [self.seal(*holder, connector.id, name, value) for name, value in values.items()]
        await self._rows.put_secrets(connector, holder, sealed, removed)

    async def check(self) -> None:
        """`KeyFault` when stored secrets need a key that is not on the ring: asked once, at start."""
        if missing := await sealing_keys(*self._all) - self._keys.ids:
            raise KeyFault(
                f"the secrets in this database were sealed with another master key"
                f" ({', '.join(sorted(missing))}, not {self._keys.current.id})",
                hint="bring back the key that belongs to this database; nothing was changed",
            )

    # Rotation

    async def needs_resealing(self) -> bool:
        current = self._keys.current.id
        return any([await rows.sealed_with_other(current, 1) for rows in self._all])

    def replace_key(self) -> None:
        """Seals with a new key from now on, where the key is Dragoman's own to replace."""
        if self._supply is None:
            raise KeyFault("there is no place to write a new key to")
        self._keys = self._supply.replaced()

    async def reseal(self) -> int:
        """Seals every secret with the current key and tells how many. Interrupted, it is begun again."""
        count = 0
        for rows in self._all:
            while batch := await rows.sealed_with_other(self._keys.current.id, _BATCH):
                for sealed in batch:
                    place = (sealed.workspace, sealed.user, sealed.connector_id, sealed.name)
                    count += await rows.reseal(sealed, self.seal(*place, self.open(sealed)))
        return count

    async def forget_older_keys(self) -> tuple[str, ...]:
        """Drops the replaced keys once no secret needs them; returns their ids."""
        if await self.needs_resealing():
            raise KeyFault(
                "some secrets are still sealed with an older key", hint="dragoman credentials rotate"
            )
        if self._supply is None:
            return ()
        forgotten = self._supply.forget_older()
        self._keys = KeyRing(self._keys.current)
        return forgotten

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The id of the key that seals, then those of the older ones."""
        return (self._keys.current.id, *(key.id for key in self._keys.older))

    def _key(self, key_id: str) -> Key:
        if key_id not in self._keys.ids and self._supply is not None:
            self._keys = self._supply.read_again(self._keys)  # another process may have replaced the key
        return self._keys.get(key_id)


async def sealing_keys(*rows: SealedValues) -> frozenset[str]:
    """The ids of the keys that anything in these rows is sealed with."""
    return frozenset[str]().union(*[await one.key_ids() for one in rows])


def bound_to(*parts: str) -> bytes:
    """The parts as one sequence of bytes. Lengths come first, so no two different sequences look alike."""
    return b"".join(len(part).to_bytes(8) + part for part in map(_bytes, (_PURPOSE, *parts)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
