"""A file of any size behind a passphrase: scrypt makes the key, AES-GCM seals it frame by frame.

Each frame is bound to the header, to its place and to whether it is the last: a file that was changed, cut
off or put together from two does not open. Knows nothing of what is inside.
"""

import json
from collections.abc import Iterator
from secrets import token_bytes
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from dragoman.errors import InvalidConfig, KeyFault

MAGIC = b"dragoman backup 1\n"
_FRAME = 1024 * 1024
_TAG_BYTES = 16
_KEY_BYTES = 32
_LONGEST_HEADER = 1024
# A quarter of a second and 128 MB for each guess.
_COST = {"n": 2**17, "r": 8, "p": 1}
# What a header may ask for: a file from elsewhere must not take all memory.
_MOST = {"n": 2**20, "r": 16, "p": 4}


class SealedFileWriter:
    """`close` writes the last frame; without it the file never opens."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        header = {**_COST, "salt": token_bytes(16).hex(), "nonce": token_bytes(7).hex()}
        self._head = MAGIC + json.dumps(header).encode() + b"\n"
        self._frames = _Frames(header, self._head, passphrase)
        self._file = file
        self._waiting = bytearray()
        file.write(self._head)

    def write(self, data: bytes) -> None:
        self._waiting += data
        while len(self._waiting) > _FRAME:
            self._put(bytes(self._waiting[:_FRAME]), is_last=False)
            del self._waiting[:_FRAME]

    def close(self) -> None:
        self._put(bytes(self._waiting), is_last=True)

    def _put(self, data: bytes, *, is_last: bool) -> None:
        sealed = self._frames.sealed(data, is_last)
        self._file.write(len(sealed).to_bytes(4) + sealed)


def read_sealed(file: IO[bytes], passphrase: str) -> Iterator[bytes]:
    """What was written, piece by piece. Only who has come to the end knows that nothing is missing.

    `KeyFault` for another passphrase, `InvalidConfig` for what is no such file or is damaged.
    """
    if file.read(len(MAGIC)) != MAGIC:
        raise InvalidConfig("this is no backup of Dragoman", hint="give a file that a backup wrote")
    line = file.readline(_LONGEST_HEADER)
    frames = _Frames(_header(line), MAGIC + line, passphrase)
    is_last = False
    while not is_last:
        size = int.from_bytes(file.read(4))
        sealed = file.read(size) if _TAG_BYTES <= size <= _FRAME + _TAG_BYTES else b""
        if not sealed or len(sealed) < size:
            raise _damaged("it ends too early")
        is_last = not (after := file.read(1))
        file.seek(-len(after), 1)
        yield frames.opened(sealed, is_last)


class _Frames:
    """Seals or opens one frame after the other."""

    def __init__(self, header: dict[str, Any], head: bytes, passphrase: str) -> None:
        kdf = Scrypt(
            salt=bytes.fromhex(header["salt"]),
            length=_KEY_BYTES,
            n=header["n"],
            r=header["r"],
            p=header["p"],
        )
        self._cipher = AESGCM(kdf.derive(passphrase.encode("utf-8", "surrogatepass")))
        self._prefix = bytes.fromhex(header["nonce"])
        self._head = head
        self._number = 0

    def sealed(self, data: bytes, is_last: bool) -> bytes:
        return self._cipher.encrypt(self._nonce(is_last), data, self._head)

    def opened(self, sealed: bytes, is_last: bool) -> bytes:
        is_first = self._number == 0
        try:
            return self._cipher.decrypt(self._nonce(is_last), sealed, self._head)
        except InvalidTag:
            if is_first:
                raise KeyFault(
                    "this passphrase does not open the backup", hint="try another; or the file is damaged"
                ) from None
            raise _damaged("a part of it was changed or is missing") from None

    def _nonce(self, is_last: bool) -> bytes:
        nonce = self._prefix + self._number.to_bytes(4) + bytes([is_last])
        self._number += 1
        return nonce


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
        costs = {name: int(header[name]) for name in _MOST}
        places = bytes.fromhex(header["salt"]), bytes.fromhex(header["nonce"])
    except (ValueError, KeyError, TypeError):
        raise _damaged("its first lines cannot be read") from None
    is_right = all(0 < costs[name] <= most for name, most in _MOST.items()) and costs["n"].bit_count() == 1
    if not is_right or [len(one) for one in places] != [16, 7]:
        raise _damaged("its first lines cannot be read")
    return header


def _damaged(why: str) -> InvalidConfig:
    return InvalidConfig(f"the backup is damaged: {why}", hint="take another copy of it")
