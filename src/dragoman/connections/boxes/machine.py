"""What this machine can do to box a program, found out once by trying it."""

import ctypes
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Literal

from dragoman.connections.boxes.system_calls import is_known_machine
from dragoman.errors import InvalidConfig

BoxMode = Literal["none", "bubblewrap", "landlock"]
INSTALL = "install bubblewrap (for example `apt-get install bubblewrap`) and allow user namespaces"
_OLDEST_LANDLOCK = 3  # before, a file that may not be written could be cut
_TRIAL = 20.0
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


_WAYS = {"bubblewrap": bubblewrap, "landlock": landlock}


def ways() -> tuple[BoxWay, ...]:
    """Every mode, the strongest first."""
    return tuple(way() for way in _WAYS.values())


def chosen(sandbox: str) -> BoxMode:
    """The mode in force for what a connector says: `auto` is the strongest that works here, which may be
    none. `InvalidConfig` for one that does not work here.
    """
    if sandbox == "none":
        return "none"
    if sandbox == "auto":
        if bubblewrap().missing is None:
            return "bubblewrap"
        return "landlock" if landlock().missing is None else "none"
    way = _WAYS[sandbox]()
    if way.missing is not None:
        raise InvalidConfig(
            f"the sandbox {sandbox!r} does not work on this machine: {way.missing}",
            hint=INSTALL if sandbox == "bubblewrap" else "leave sandbox at auto",
        )
    return way.mode
