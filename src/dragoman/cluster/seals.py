"""What nodes say to each other of calls and runs, sealed: who has no master key can neither read nor say it.

Each process seals with a key of its own, made of the master key and its node's id, and numbers what it seals:
no nonce is used twice. A message is bound to the subject it was sent to. Knows no NATS.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Protocol

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dragoman.cluster.messages import Unreadable, load_versioned
from dragoman.errors import KeyFault

_READABLE = frozenset({2})
_VERSION = 2
_MOST_KEYS = 1_000  # of other processes, kept


class MasterKeys(Protocol):
    @property
    def key_ids(self) -> Sequence[str]:
        """The id of the key that seals, then those of the older ones."""
        ...

    def derived_key(self, key_id: str, *purpose: str) -> bytes:
        """A key for one purpose, of the master key with this id. `KeyFault` where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """What the process of `node` said, as its message of this `number`."""

    node: str
    number: int
    message: bytes


class MessageSeal:
    def __init__(self, keys: MasterKeys, prefix: str, node: str) -> None:
        self._keys = keys
        self._node = node
        self._numbers = count(1)

        def cipher(key_id: str, sender: str) -> AESGCM:
            return AESGCM(keys.derived_key(key_id, "messages of nodes", prefix, sender))

        self._cipher: Callable[[str, str], AESGCM] = lru_cache(_MOST_KEYS)(cipher)

    def seal(self, subject: str, message: bytes) -> bytes:
        key_id, number = self._keys.key_ids[0], next(self._numbers)
        head = orjson.dumps({"v": _VERSION, "node": self._node, "key": key_id, "number": number})
        cipher = self._cipher(key_id, self._node)
        return head + b"\n" + cipher.encrypt(_nonce(number), message, _bound(subject, head))

    def open(self, subject: str, sealed: bytes) -> Opened:
        """`Unreadable` where it was not sealed by a node of this installation, for this subject."""
        head, _, rest = sealed.partition(b"\n")
        said = load_versioned(head, _READABLE)
        node, key_id, number = said.get("node"), said.get("key"), said.get("number")
        if not (isinstance(node, str) and isinstance(key_id, str) and isinstance(number, int)):
            raise Unreadable("a sealed message without node, key or number")
        try:
            message = self._cipher(key_id, node).decrypt(_nonce(number), rest, _bound(subject, head))
        except (InvalidTag, KeyFault, ValueError, OverflowError):
            raise Unreadable(f"a message in the name of {node[:40]} that it did not seal") from None
        return Opened(node, number, message)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12)


def _bound(subject: str, head: bytes) -> bytes:
    return subject.encode() + b"\n" + head
