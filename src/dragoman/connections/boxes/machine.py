"""What this machine can do to box a program, found out once by trying it."""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
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
    "landlock": "leave sandbox at auto",
    "container": "install podman (for example `apt-get install podman`), or start the service of docker",
}
_ALLOW_NAMESPACES = (
    "allow user namespaces: `sysctl user.max_user_namespaces=10000`, on Ubuntu also "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`; inside a container its runtime must allow them"
)
# What programs say of a machine that is not ready for them, the line that tells most first, and what to do.
_CURES = (
    ("user namespaces are not enabled", _ALLOW_NAMESPACES),
    ("new namespace", _ALLOW_NAMESPACES),
    ("uid map", _ALLOW_NAMESPACES),
    ("cannot clone", _ALLOW_NAMESPACES),
    ("newuidmap", "install newuidmap and newgidmap (for example `apt-get install uidmap`)"),
    (
        "/etc/subuid",
        "give who runs Dragoman ids for its containers: `usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER`, then `podman system migrate` as USER",
    ),
    ("hybrid mode", "mount control groups of version 2 alone, or let podman use runc instead of crun"),
    ("Cannot connect to the Docker daemon", "start the service of docker"),
    ("permission denied while trying to connect", "let who runs Dragoman use docker, or install podman"),
)
_MODES = ("bubblewrap", "landlock", "container")
_OLDEST_LANDLOCK = 3  # before, a file that may not be written could be cut
_TRIAL = 20.0
_HELP = ("See ", "Run ", "Usage:")  # what clients add to a refusal
_TRIAL_MEMORY, _TRIAL_PROCESSES = 64, 37
_GROUPS = "/sys/fs/cgroup"
_TELL_LIMITS = (
    f"cat {_GROUPS}/memory.max {_GROUPS}/memory/memory.limit_in_bytes"
    f" {_GROUPS}/pids.max {_GROUPS}/pids/pids.max 2>/dev/null; true"
)
_UNGROUPED = "no control group for its limits: the watchdog alone holds it to them"
# Looks and touches nothing: where the box does not hold, this runs on the host.
_PROBE = (
    *("--unshare-user", "--unshare-pid", "--unshare-net"),
    *("--uid", "1000", "--gid", "1000", "--proc", "/proc"),
)


@dataclass(frozen=True, slots=True)
class BoxWay:
    """One mode on this machine. `missing` says why it does not work here, `hint` what to do about it, `note`
    what is less than it could be although it works.
    """

    mode: BoxMode
    missing: str | None
    detail: str = ""
    bind_alone: str = ""  # what a container's program calls it
    has_control_group: bool = False  # one that holds a container to its limits
    hint: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        if self.missing is None:
            return f"{self.mode}: works" + (f" ({self.note})" if self.note else "")
        return f"{self.mode}: {self.missing}" + (f" ({self.hint})" if self.hint else "")


@cache
def bubblewrap() -> BoxWay:
    """It counts only if a program has run in it."""
    program = shutil.which("bwrap")
    if program is None:
        return BoxWay("bubblewrap", "bubblewrap is not installed", hint=INSTALL)
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
    cause, hint = _cause(done)
    return BoxWay("bubblewrap", cause, hint=hint)


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
    hints: list[str] = []
    for program in filter(None, map(shutil.which, ("podman", "docker"))):
        refused: _RefusedTrial | None = None
        for bind_alone in containers.ways_to_bind_alone(program):
            try:
                return _tried_container(program, bind_alone)
            except _RefusedTrial as error:
                refused = refused or error
        if refused is not None:
            causes.append(f"{os.path.basename(program)}: {refused.cause}")
            hints += [refused.hint] if refused.hint else []
    if not causes:
        return BoxWay("container", "neither podman nor docker is installed", hint=_HINTS["container"])
    return BoxWay("container", "; ".join(causes), hint=", or ".join(hints))


class _RefusedTrial(Exception):
    def __init__(self, cause: str, hint: str = "") -> None:
        super().__init__(cause)
        self.cause, self.hint = cause, hint


def _tried_container(program: str, bind_alone: str) -> BoxWay:
    """With limits that a control group holds, where there is one for who runs this; else without: the
    watchdog holds them alone. Some runtimes refuse what they cannot hold, others leave it out.
    """
    with_group = _trial(program, bind_alone, has_control_group=True)
    if with_group.returncode == 0 and {b"%d" % _TRIAL_PROCESSES, b"%d" % (_TRIAL_MEMORY << 20)} <= {
        *with_group.stdout.split()
    }:
        return BoxWay("container", None, program, bind_alone, has_control_group=True)
    alone = _trial(program, bind_alone, has_control_group=False)
    if alone.returncode:
        raise _RefusedTrial(*_cause(with_group if with_group.returncode else alone))
    return BoxWay("container", None, program, bind_alone, note=_UNGROUPED)


def _trial(program: str, bind_alone: str, *, has_control_group: bool) -> subprocess.CompletedProcess[bytes]:
    words = containers.run_words(
        program,
        bind_alone=bind_alone,
        name=f"dragoman-trial-{os.getpid()}",
        has_network=False,
        has_control_group=has_control_group,
        memory=_TRIAL_MEMORY,
        processes=_TRIAL_PROCESSES,
        files=min(256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        mounts=containers.system_mounts(SYSTEM),
    )
    try:
        if _asked([program, "image", "inspect", containers.IMAGE]).returncode:
            made = _asked([program, "import", "-", containers.IMAGE], bytes(10240))  # an archive of nothing
            if made.returncode:
                raise _RefusedTrial(*_cause(made))
        return _asked([*words, containers.IMAGE, "/bin/sh", "-c", _TELL_LIMITS])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _RefusedTrial(str(error)) from None


def first_of_container(name: str) -> int | None:
    """Its first process, as this machine numbers it; None before it is there, and where it is elsewhere."""
    try:
        done = _asked([container().detail, "inspect", "--format", "{{.State.Pid}}", name])
        pid = int(done.stdout)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return pid if containers.LAUNCHER.encode() in file.read() else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def remove_container(name: str) -> None:
    """Whatever state it is in: processes of one that is paused end only when its service lets them."""
    with suppress(OSError, subprocess.TimeoutExpired):
        _asked([container().detail, "rm", "--force", name])


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


def _cause(done: subprocess.CompletedProcess[bytes]) -> tuple[str, str]:
    """The line that says why, and what to do, where that is known."""
    said = done.stderr.decode("utf-8", "replace").splitlines()
    lines = [line for line in said if line and not line.startswith(_HELP)]
    for words, cure in _CURES:
        for line in lines:
            if words in line:
                return line[-300:], cure
    return (lines[-1][-300:] if lines else f"it ended with {done.returncode}"), ""


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
            hint=way.hint or _HINTS[way.mode],
        )
    return way.mode
