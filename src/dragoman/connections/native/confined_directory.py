"""A directory that nothing can be led out of.

Every path is walked one component at a time from the directory's own descriptor, and no link is ever
followed, so nothing that changes the tree meanwhile can lead a walk astray. Hard links cannot be told
from files and are read as files. Each method closes what it opens, except what it yields.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import Denied, InvalidConfig, ToolFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: to open a pipe that nobody writes to would wait for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_root(root: Path) -> Path:
    """The real path of a directory that tools may be confined to, or `InvalidConfig`."""
    try:
        real = root.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise InvalidConfig(f"{root} cannot be opened", hint="create the directory first") from error
    if not real.is_dir():
        raise InvalidConfig(f"{root} is no directory", hint="name the directory that tools may use")
    if real == Path(real.anchor):
        raise InvalidConfig("the whole file system is no confinement", hint="name a directory of its own")
    return real


class ConfinedDirectory:
    """Opens files below one root, and nothing else."""

    def __init__(self, root: Path) -> None:
        self._root = check_root(root)

    @contextmanager
    def open_directory(self, path: str, *, create: bool = False) -> Generator[int]:
        """A descriptor of a directory at or below the root."""
        with self._walk(_parts(path), path, create=create) as descriptor:
            yield descriptor

    def has_directory(self, path: str) -> bool:
        """Whether a path leads to a directory, through no link. What exists may be gone the next moment."""
        parts = _parts(path)
        if not parts:
            return True
        with self._walk(parts[:-1], path) as parent, _explained(path):
            found = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
        return stat.S_ISDIR(found.st_mode)

    @contextmanager
    def open_file(self, path: str) -> Generator[int]:
        """A descriptor to read a regular file; links, pipes, devices and sockets are refused."""
        parts = _file_parts(path)
        with self._walk(parts[:-1], path) as parent:
            _refuse_what_is_no_file(parts[-1], parent, path)
            with _explained(path):
                descriptor = os.open(parts[-1], _READ, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Denied(f"{path!r} is no regular file", hint="only regular files can be read")
            yield descriptor
        finally:
            os.close(descriptor)

    def write_file(self, path: str, data: bytes) -> bool:
        """Writes the whole file or nothing; True if it is new. Parent directories are made on the way."""
        parts = _file_parts(path)
        with self._walk(parts[:-1], path, create=True) as parent:
            mode = _refuse_what_is_no_file(parts[-1], parent, path)
            temporary = f".{secrets.token_hex(8)}.tmp"
            with _explained(path):
                descriptor = os.open(temporary, _CREATE, 0o666, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                # A link that appears here meanwhile is replaced by the rename, not followed.
                os.rename(temporary, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=parent)
                raise _explain(error, path) from error
        return mode is None

    @contextmanager
    def _walk(self, parts: tuple[str, ...], path: str, *, create: bool = False) -> Generator[int]:
        with _explained(path):
            descriptor = os.open(self._root, _DIRECTORY)
        try:
            for part in parts:
                with _explained(path):
                    deeper = _open_part(part, descriptor, create=create)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)


def _open_part(part: str, parent: int, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=parent)
    return os.open(part, _DIRECTORY, dir_fd=parent)


def _parts(path: str) -> tuple[str, ...]:
    if "\0" in path:
        raise Denied("a path cannot contain a null character")
    if path.startswith("/"):
        raise Denied(f"{path[:200]!r} is an absolute path", hint="give a path relative to the directory")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Denied(f"{path[:200]!r} contains '..'", hint="give a path below the directory, without '..'")
    return parts


def _file_parts(path: str) -> tuple[str, ...]:
    parts = _parts(path)
    if not parts or path.endswith("/"):
        raise Denied(f"{path[:200]!r} names no file", hint="give the path of a file")
    return parts


def _refuse_what_is_no_file(name: str, parent: int, path: str) -> int | None:
    """The permissions of a regular file (never set-user-id), or None where there is nothing yet."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _explain(error, path) from error
    if stat.S_ISLNK(found.st_mode):
        raise _link_refused(path)
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{path!r} is a directory", hint="give the path of a file")
    if not stat.S_ISREG(found.st_mode):
        raise Denied(f"{path!r} is no regular file", hint="pipes, devices and sockets are refused")
    return found.st_mode & 0o777


@contextmanager
def _explained(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _explain(error, path) from error


def _explain(error: OSError, path: str) -> Denied | ToolFailed:
    shown = path[:200]
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return _link_refused(shown)
    if error.errno == errno.ENOENT:
        return ToolFailed(f"{shown!r} does not exist", hint="paths are relative to the directory")
    if error.errno == errno.ENOTDIR:
        return Denied(f"{shown!r} leads through a link or a file", hint="links are not followed")
    return ToolFailed(f"{shown!r} cannot be used: {os.strerror(error.errno or 0)}")


def _link_refused(path: str) -> Denied:
    return Denied(f"{path[:200]!r} is a link", hint="links are not followed, not even inside the directory")
