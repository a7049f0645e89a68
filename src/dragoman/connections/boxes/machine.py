"""What this machine can do to box a program, found out once by trying it."""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from dragoman.connections.boxes import container as containers
from dragoman.connections.boxes.system_calls import is_known_machine
from dragoman.connections.boxes.visible_paths import SYSTEM
from dragoman.errors import InvalidConfig

BoxMode = Literal["none", "bubblewrap", "landlock", "container"]
INSTALL = "install bubblewrap (for example `apt-get install bubblewrap`) and allow user namespaces"
_HINTS: dict[BoxMode, str] = {
    "bubblewrap": INSTALL,
    "container": "install podman (for example `apt-get install podman`), or start the service of docker",
}
_MODES = ("bubblewrap", "landlock", "container")
_OLDEST_LANDLOCK = 3  # before, a file that may not be written could be cut
_TRIAL = 20.0
_HELP = ("See ", "Run ", "Usage:")  # what clients add to a refusal
# Looks and touches nothing: where the box does not hold, this runs on the host.
_PROBE = (
    *("--unshare-user", "--unshare-pid", "--unshare-net"),
    *("--uid", "1000", "--gid", "1000", "--proc", "/proc"),
)


@dataclass(frozen=True, slots=True)
class BoxWay:
    """One mode on this machine. `missing` says why it does not work here."""

    mode: BoxMode
    missing: str | None
    detail: str = ""
    bind_alone: str = ""  # what a container's program calls it


@cache
def bubblewrap() -> BoxWay:
    """It counts only if a program has run in it."""
    program = shutil.which("bwrap")
    if program is None:
        return BoxWay("bubblewrap", "bubblewrap is not installed")
    system = [word for path in ("/usr", "/lib", "/lib64", "/bin") for word in ("--ro-bind-try", path, path)]
    try:
        done = subprocess.run(  # noqa: S603 - found on our own search path
            [program, *_PROBE, *system, "--", "/usr/bin/env", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL,
            env={},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return BoxWay("bubblewrap", str(error))
    if done.returncode == 0:
        return BoxWay("bubblewrap", None, program)
    cause = done.stderr.decode("utf-8", "replace").strip()[-300:]
    return BoxWay("bubblewrap", cause or f"bwrap ended with {done.returncode}")


@cache
def landlock() -> BoxWay:
    if not sys.platform.startswith("linux") or not is_known_machine():
        return BoxWay("landlock", "only Linux on x86_64 and aarch64 has it")
    version = ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if version < 1:
        return BoxWay("landlock", "this kernel has no landlock, or it is not turned on")
    if version < _OLDEST_LANDLOCK:
        return BoxWay("landlock", f"this kernel has version {version} of landlock: 3 (Linux 6.2) is needed")
    return BoxWay("landlock", None, f"version {version}")


@cache
def container() -> BoxWay:
    """It counts only if a program has run in one, with the machine's own system and within limits."""
    if not sys.platform.startswith("linux"):
        return BoxWay("container", "only on Linux does a container show the machine's own programs")
    causes: list[str] = []
    for program in filter(None, map(shutil.which, ("podman", "docker"))):
        cause = ""
        for bind_alone in containers.ways_to_bind_alone(program):
            said = _why_no_container(program, bind_alone)
            if said is None:
                return BoxWay("container", None, program, bind_alone)
            cause = cause or said
        causes.append(f"{os.path.basename(program)}: {cause}")
    return BoxWay("container", "; ".join(causes) or "neither podman nor docker is installed")


def _why_no_container(program: str, bind_alone: str) -> str | None:
    files = min(256, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    trial = containers.run_words(
        program,
        bind_alone=bind_alone,
        name=f"dragoman-trial-{os.getpid()}",
        has_network=False,
        memory=64,
        processes=32,
        files=files,
        mounts=containers.system_mounts(SYSTEM),
    )
    try:
        if _asked([program, "image", "inspect", containers.IMAGE]).returncode:
            made = _asked([program, "import", "-", containers.IMAGE], bytes(10240))  # an archive of nothing
            if made.returncode:
                return _last_line(made)
        done = _asked([*trial, containers.IMAGE, "/usr/bin/env", "true"])
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return _last_line(done) if done.returncode else None


def first_of_container(name: str) -> int | None:
    """Its first process, as this machine numbers it; None before it is there, and where it is elsewhere."""
    try:
        done = _asked([container().detail, "inspect", "--format", "{{.State.Pid}}", name])
        pid = int(done.stdout)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return pid if containers.LAUNCHER.encode() in file.read() else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def own_python() -> str:
    return os.path.realpath(sys.executable)


def _asked(words: Sequence[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 - found on our own search path
        words,
        input=given,
        capture_output=True,
        timeout=_TRIAL,
        env=containers.client_environment(os.environ),
        check=False,
    )


def _last_line(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode("utf-8", "replace").splitlines()
    lines = [line for line in said if line and not line.startswith(_HELP)]
    return lines[-1][-300:] if lines else f"it ended with {done.returncode}"


def _way(sandbox: str) -> BoxWay:
    return {"bubblewrap": bubblewrap, "landlock": landlock, "container": container}[sandbox]()


def ways() -> tuple[BoxWay, ...]:
    """Every mode, in the order in which `auto` takes the first that works."""
    return tuple(map(_way, _MODES))


def chosen(sandbox: str) -> BoxMode:
    """The mode in force for what a connector says: `auto` is the strongest that works here, which may be
    none. `InvalidConfig` for one that does not work here.
    """
    if sandbox == "none":
        return "none"
    if sandbox == "auto":
        working = next((way for way in map(_way, _MODES) if way.missing is None), None)
        return working.mode if working else "none"
    way = _way(sandbox)
    if way.missing is not None:
        raise InvalidConfig(
            f"the sandbox {sandbox!r} does not work on this machine: {way.missing}",
            hint=_HINTS.get(way.mode, "leave sandbox at auto"),
        )
    return way.mode
