"""Which paths of the machine a boxed program sees beside the system: its runtime, its own files, its mounts.

Pure but for looking at what exists. A path that holds more than a program is never taken whole.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from dragoman.errors import InvalidConfig

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_INTERPRETERS = (
    "python",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "java",
    "sh",
    "bash",
    "tsx",
    "ts-node",
)
_NO_SCRIPT = ("-c", "-m", "-e", "--eval", "-p", "--print")  # what follows are words for the program
_RUNTIMES = ("node", "python3")
_WIDE = ("/", "/home", "/tmp", "/var", "/var/tmp", "/etc", "/opt", "/mnt", "/media", "/srv", "/run", "/root")  # noqa: S108
_REFUSED_PATH = re.compile(
    r"(?:EACCES|EROFS|ENOENT|EPERM|Permission denied|Read-only file system|No such file)[^'\"\n]{0,80}"
    r"['\"](/[^'\"\n]{1,500})['\"]"
)
_NEVER = ("/proc", "/sys", "/dev")
_PRIVATE = (".local", ".config", ".cache", ".ssh", ".gnupg", ".aws", ".local/share")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the machine that is seen in the box at the same place."""

    path: str
    is_writable: bool

    @property
    def text(self) -> str:
        return f"{self.path}:{'rw' if self.is_writable else 'ro'}"


def read_mount(text: str) -> Mount:
    """`~/Documents`, `~/Documents:ro` or `~/Documents:rw`; read-only where nothing is said."""
    path, colon, word = text.rpartition(":")
    if not colon or word not in ("ro", "rw"):
        path, word = text, "ro"
    return Mount(os.path.abspath(os.path.expanduser(path)), word == "rw")


def check_mounts(mounts: Iterable[Mount], kept_out: Path, *, can_hide: bool) -> None:
    """`InvalidConfig` for one that is not there, or that would show what no box may see. One that only lies
    around it is no fault where the box `can_hide` it.
    """
    for mount in mounts:
        real = os.path.realpath(mount.path)
        if not os.path.exists(real):
            raise InvalidConfig(
                f"the mount {mount.path} does not exist", hint="create it, or take it out of mounts"
            )
        if (_contains(real, kept_out) and not can_hide) or _contains(str(kept_out), real):
            raise InvalidConfig(
                f"the mount {mount.path} would show Dragoman's own home, {kept_out}",
                hint="mount the folders in it that the server needs",
            )
        if real == "/" or any(_contains(path, real) for path in _NEVER):
            raise InvalidConfig(f"{mount.path} cannot be mounted", hint="mount the folders that it needs")


def program_paths(program: str, path: str, kept_out: Path) -> list[str]:
    """What a program that was found on the search path needs to run: where it is installed, and the runtimes
    that scripts name.
    """
    found = [folder for folder in path.split(os.pathsep) if folder and os.path.isdir(folder)]
    for one in (program, *filter(None, (shutil.which(name, path=path) for name in _RUNTIMES))):
        for place in dict.fromkeys((one, os.path.realpath(one))):
            found += _installed(place, kept_out)
    return _outside_system(found)


def own_paths(command: str, args: Sequence[str], cwd: str | None, kept_out: Path) -> list[str]:
    """Where the program itself lies: its file, and of an interpreter the script that it is given, each with
    its directory unless that holds more than a program.
    """
    found: list[str] = [cwd] if cwd and not _is_wide(cwd, kept_out) else []
    if not PurePath(command).name.startswith(_INTERPRETERS):
        return _outside_system(found)
    for argument in args:
        if argument in _NO_SCRIPT:
            break
        script = os.path.abspath(os.path.join(cwd or os.getcwd(), os.path.expanduser(argument)))
        if not argument.startswith("-") and os.path.isfile(script):
            folder = os.path.dirname(os.path.realpath(script))
            found += [script, os.path.realpath(script)] if _is_wide(folder, kept_out) else [folder]
            break
    return _outside_system(found)


def certificate_paths(env: Mapping[str, str]) -> list[str]:
    return _outside_system(env[name] for name in _CERTIFICATES if env.get(name))


def unseen_paths(words: Iterable[str], seen: Iterable[str], cwd: str) -> list[str]:
    """Paths among arguments and variables that exist and that the box does not show."""
    shown = [*seen]
    found: list[str] = []
    for part in _parts(words):
        if not ("/" in part or "." in part):
            continue  # a word: that a folder has the same name is chance
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(part)))
        if path != "/" and os.path.exists(path) and not is_seen(path, shown):
            found.append(path)
    return list(dict.fromkeys(found))


def unseen_folders(words: Iterable[str], seen: Iterable[str], kept_out: Path) -> list[str]:
    """Folders of files that are to be, where the box does not show them and they hold no more than that."""
    shown = [*seen]
    paths = (os.path.expanduser(part) for part in _parts(words))
    folders = [os.path.dirname(path) for path in paths if os.path.isabs(path) and not os.path.exists(path)]
    return [
        folder
        for folder in dict.fromkeys(folders)
        if os.path.isdir(folder) and not _is_wide(folder, kept_out) and not is_seen(folder, shown)
    ]


def _parts(words: Iterable[str]) -> Iterator[str]:
    """Each word, and what stands behind its equals sign."""
    for word in words:
        yield from dict.fromkeys((word, word.partition("=")[2]))


def refused_paths(lines: Iterable[str]) -> list[str]:
    """Paths in what a program wrote when it may not open them, or does not find them."""
    found = [match[1] for line in lines for match in _REFUSED_PATH.finditer(line)]
    return list(dict.fromkeys(found))[:5]


def outermost(paths: Iterable[str]) -> list[str]:
    """In the order in which they are mounted: what lies in another comes after it."""
    return sorted(dict.fromkeys(paths), key=lambda path: path.count("/"))


def lies_in(path: str, places: Iterable[str]) -> bool:
    return any(_contains(one, os.path.abspath(path)) for one in places)


def is_seen(path: str, seen: Iterable[str]) -> bool:
    return lies_in(path, (*seen, *SYSTEM))


def _installed(place: str, kept_out: Path) -> Iterator[str]:
    """`X` of `X/bin/program`, with what its Python reads from elsewhere; else the directory of the file."""
    folder = os.path.dirname(place)
    prefix = os.path.dirname(folder)
    if os.path.basename(folder) not in ("bin", "sbin"):
        # npx is a link to …/lib/node_modules/npm/bin/npx-cli.js
        yield place if _is_wide(folder, kept_out) else folder
    elif _is_wide(prefix, kept_out):
        yield folder
        # Of a directory that holds more, what its programs run with; of an environment, what says that it is.
        yield os.path.join(prefix, "lib", "node_modules")
        yield os.path.join(prefix, "pyvenv.cfg")
        yield from (str(library) for library in Path(prefix).glob("lib*/python3*"))
        yield from _linked_packages(prefix)
    else:
        yield prefix
        yield from _linked_packages(prefix)


@lru_cache(maxsize=64)
def _linked_packages(prefix: str) -> tuple[str, ...]:
    """Directories that a virtual environment takes packages from: those installed for editing."""
    found: list[str] = []
    if not os.path.exists(os.path.join(prefix, "pyvenv.cfg")):
        return ()
    for file in Path(prefix).glob("lib/python3*/site-packages/*.pth"):
        lines = file.read_text(errors="replace").splitlines()
        found += [line for line in lines if line.startswith("/") and os.path.isdir(line)]
    return tuple(found)


def _outside_system(paths: Iterable[str]) -> list[str]:
    return [
        path
        for path in dict.fromkeys(paths)
        if os.path.exists(path) and not any(_contains(one, path) for one in SYSTEM)
    ]


def _is_wide(path: str, kept_out: Path) -> bool:
    """Whether a directory holds more than programs: somebody's home, or what is ours."""
    real = os.path.realpath(path)
    home = os.path.realpath(os.path.expanduser("~"))
    private = (home, *(os.path.join(home, name) for name in _PRIVATE))
    if real in _WIDE or real in private or _contains(real, home):
        return True
    return _contains(real, kept_out) or _contains(str(kept_out), real)


def _contains(outer: str, inner: str | Path) -> bool:
    return PurePath(inner).is_relative_to(os.path.realpath(outer)) or PurePath(inner).is_relative_to(outer)
