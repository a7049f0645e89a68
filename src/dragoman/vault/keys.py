"""The master key: where it comes from (a file, a value, a command), and the ring that holds keys by id.

Keys that were replaced stay beside the file as `<name>.<id>` until somebody forgets them on purpose.
"""

import asyncio
import os
import re
import shlex
import stat
from base64 import b64decode
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes

from dragoman.errors import KeyFault
from dragoman.private_files import make_private_directory, write_draft

KEY_BYTES = 32
_RESTORE = "restore it from a backup; a new key cannot open what the old one has sealed"


@dataclass(frozen=True, slots=True)
class Key:
    """One key for AES-256. Its id says which key sealed a value and tells nothing of the key itself."""

    material: bytes = field(repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if len(self.material) != KEY_BYTES:
            raise KeyFault(f"a master key has {KEY_BYTES} bytes, this one has {len(self.material)}")
        object.__setattr__(self, "id", sha256(self.material).hexdigest()[:8])


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The key that seals, and older ones that may still open."""

    current: Key
    older: tuple[Key, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset({self.current.id, *(key.id for key in self.older)})

    def get(self, key_id: str) -> Key:
        for key in (self.current, *self.older):
            if key.id == key_id:
                return key
        raise KeyFault(
            f"this secret was sealed with another master key ({key_id}, not {self.current.id})",
            hint="bring back the key that belongs to this database",
        )


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Where the master key is kept. Never overwritten, whatever is found there."""

    path: Path

    def get_or_make(self) -> Key:
        """The key in the file; a new one where there is no file. Two processes end with the same key."""
        try:
            if not self.path.exists():
                self._make()
            return self.get()
        except OSError as error:
            raise KeyFault(
                f"the key file {self.path} cannot be used: {error.strerror}",
                hint="check who owns the file and its directory",
            ) from None

    def get(self) -> Key:
        """`KeyFault` when the file is missing, has the wrong length or can be read by others."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise KeyFault(f"there is no key file {self.path}", hint=_RESTORE) from None
        with open(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise KeyFault(f"the key file {self.path} is no file", hint=_RESTORE)
            if mode & 0o077:
                raise KeyFault(
                    f"others can read the key file {self.path} (mode {stat.S_IMODE(mode):o})",
                    hint=f"chmod 600 {self.path}",
                )
            material = file.read(KEY_BYTES + 1)
            size = os.fstat(descriptor).st_size
        if len(material) != KEY_BYTES:
            raise KeyFault(f"the key file {self.path} has {size} bytes instead of {KEY_BYTES}", hint=_RESTORE)
        return Key(material)

    def ring(self) -> KeyRing:
        """The key of the file, made where there is none, and those that it replaced."""
        current = self.get_or_make()
        older = (KeyFile(path).get() for path in self._older_files())
        return KeyRing(current, tuple(key for key in older if key.id != current.id))

    def replace(self) -> KeyRing:
        """A new key in the file, the old one beside it. A crash at any moment leaves both findable."""
        before = self.get()
        beside = self.path.with_name(f"{self.path.name}.{before.id}")
        try:
            if not beside.exists():
                os.link(self.path, beside)
            draft = write_draft(self.path, token_bytes(KEY_BYTES))
            _sync_directory(self.path.parent)  # the old key is safe before its place is taken
            draft.replace(self.path)
            _sync_directory(self.path.parent)
        except OSError as error:
            raise KeyFault(
                f"no new key could be written beside {self.path}: {error.strerror}",
                hint="check who owns the directory; the old key is still in force",
            ) from None
        return self.ring()

    def forget_older(self) -> tuple[str, ...]:
        """Deletes the replaced keys; returns their ids. Whatever is still sealed with them is lost."""
        current = self.get()
        forgotten: list[str] = []
        for path in self._older_files():
            key = KeyFile(path).get()
            path.unlink()
            if key.id != current.id:
                forgotten.append(key.id)
        return tuple(forgotten)

    def _older_files(self) -> list[Path]:
        beside = re.compile(re.escape(self.path.name) + r"\.[0-9a-f]{8}")
        return sorted(path for path in self.path.parent.iterdir() if beside.fullmatch(path.name))

    def _make(self) -> None:
        """Appears complete or not at all: written beside its place, then linked there unless one exists."""
        make_private_directory(self.path.parent)
        draft = write_draft(self.path, token_bytes(KEY_BYTES))
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return  # another process was first: its key is the key
        finally:
            draft.unlink()
        _sync_directory(self.path.parent)


def _sync_directory(path: Path) -> None:
    """A key must not vanish in a power cut after values have been sealed with it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
