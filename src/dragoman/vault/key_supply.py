"""Where the master key comes from: the home's file, a value, or a command that prints it. Exactly one.

Given from outside, it is one key or a ring: keys with commas between them, of which the first seals.
"""

import asyncio
import shlex
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.errors import KeyFault
from dragoman.vault.keys import KEY_BYTES, Key, KeyFile, KeyRing

_PATIENCE = 30.0
_LARGEST = 64 * 1024
_FORMS = f"give {KEY_BYTES} bytes as base64 or hex, for example from: openssl rand -base64 {KEY_BYTES}"


@dataclass(frozen=True, slots=True)
class KeySupply:
    """`value` and `command` are what the operator gave; neither means the file, which is made at need."""

    file: Path
    value: str | None = field(default=None, repr=False)
    command: str | None = None

    async def ring(self, needed: frozenset[str] = frozenset()) -> KeyRing:
        """`KeyFault` when there are several sources, or the one there is gives no key.

        `needed` are ids of keys that stored secrets were sealed with: then a missing file is not made anew.
        """
        self._check_single()
        if self.value is not None:
            return ring_of(self.value.encode(), "DRAGOMAN_KEY")
        if self.command is not None:
            output = await _printed_by(self.command)
            if len(output) == KEY_BYTES and not output.isascii():
                return KeyRing(Key(output))
            return ring_of(output, "the output of DRAGOMAN_KEY_COMMAND")
        if needed:
            KeyFile(self.file).get()
        return KeyFile(self.file).ring()

    @property
    def is_file(self) -> bool:
        return self.value is None and self.command is None

    def replaced(self) -> KeyRing:
        """The ring after a new key was made."""
        if not self.is_file:
            raise KeyFault(
                "the master key is given from outside, so Dragoman cannot make a new one",
                hint="give both, the new one first (NEW,OLD), start again, and rotate once more",
            )
        return KeyFile(self.file).replace()

    def forget_older(self) -> tuple[str, ...]:
        if not self.is_file:
            return ()  # whoever gives the ring takes the old key off it
        return KeyFile(self.file).forget_older()

    def read_again(self, known: KeyRing) -> KeyRing:
        """What the file says now; what was given from outside does not change while we run."""
        return KeyFile(self.file).ring() if self.is_file else known

    def _check_single(self) -> None:
        sources = [
            name
            for name, is_given in (
                ("DRAGOMAN_KEY", self.value is not None),
                ("DRAGOMAN_KEY_COMMAND", self.command is not None),
                (f"the key file {self.file}", self.file.exists()),
            )
            if is_given
        ]
        if len(sources) > 1:
            raise KeyFault(
                f"the master key has {len(sources)} sources: {', '.join(sources)}",
                hint="keep one; a key file that is not used any more has to be moved away",
            )


def ring_of(text: bytes, source: str) -> KeyRing:
    """The keys in `text`. Its content appears in no message."""
    keys = [_key(part.strip(), source) for part in text.split(b",") if part.strip()]
    if not keys:
        raise KeyFault(f"{source} holds no key", hint=_FORMS)
    return KeyRing(keys[0], tuple(dict.fromkeys(key for key in keys[1:] if key.id != keys[0].id)))


def _key(word: bytes, source: str) -> Key:
    sizes: list[int] = []
    for decode in (_from_hex, _from_base64):
        try:
            material = decode(word)
        except ValueError:
            continue
        if len(material) == KEY_BYTES:
            return Key(material)
        sizes.append(len(material))
    found = f"a key of {sizes[0]} bytes instead of {KEY_BYTES}" if sizes else "no key"
    raise KeyFault(f"{source} holds {found}", hint=_FORMS)


def _from_hex(word: bytes) -> bytes:
    return bytes.fromhex(word.decode("ascii"))


def _from_base64(word: bytes) -> bytes:
    padded = word.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    return b64decode(padded + b"=" * (-len(padded) % 4), validate=True)


async def _printed_by(command: str) -> bytes:
    """What the command prints. Neither that nor its complaints are repeated: they may hold the key."""
    try:
        words = shlex.split(command)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except (OSError, ValueError, IndexError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no command"
        raise KeyFault(f"DRAGOMAN_KEY_COMMAND cannot be run: {reason}", hint="try it in a shell") from None
    try:
        async with asyncio.timeout(_PATIENCE):
            output, _ = await process.communicate()
    except TimeoutError:
        raise KeyFault(
            f"DRAGOMAN_KEY_COMMAND did not end within {_PATIENCE:g} s", hint="try it in a shell"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise KeyFault(f"DRAGOMAN_KEY_COMMAND ended with {process.returncode}", hint="try it in a shell")
    return output[:_LARGEST]
