"""An operating-system sandbox for one command: bubblewrap, or namespaces made with `unshare`.

Inside there are /usr read-only, an /etc of our own, an empty /tmp and one writable directory; no network,
no process, no variable and no capability of the host. A sandbox counts only if a command has run in it.
There is no way to run a command without one.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman.errors import InvalidConfig

WORKSPACE = "/workspace"
_ETC = Path(__file__).with_name("etc")
_SCRIPT = Path(__file__).with_name("sandbox.sh")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Links on usr-merged systems, directories elsewhere.
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SHARED_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_MOST_PROCESSES = 256
_TEMPORARY_BYTES = 256 * 1024 * 1024
_LIMITS = (
    f"--nproc={_MOST_PROCESSES}",
    "--core=0",
    "--nofile=1024",
    f"--fsize={1024**3}",
    f"--data={2 * 1024**3}",
)
_VARIABLES = {"PATH": _PATH, "HOME": WORKSPACE, "LANG": "C.UTF-8", "TERM": "dumb", "USER": "sandbox"}
# Looks, but touches nothing: where the sandbox does not hold, the probe runs on the host.
_PROBE = "test ! -e /etc/shadow && test ! -e /root && test -w /tmp && test ! -w /usr && echo inside"


class CommandSandbox(Protocol):
    """Turns a shell command into the arguments that run it confined to a directory."""

    @property
    def name(self) -> str: ...

    def arguments(self, root: Path, command: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`bwrap` from PATH. For root it runs below a user namespace, where the number of processes is capped."""

    program: str
    name: str = "bubblewrap"

    def arguments(self, root: Path, command: str) -> list[str]:
        binds: list[str] = ["--ro-bind", "/usr", "/usr"]
        for path in _SYSTEM:
            if os.path.islink(path):
                binds += ["--symlink", os.readlink(path), path]
            else:
                binds += ["--ro-bind-try", path, path]
        binds += ["--dir", "/etc"]
        for path in _SHARED_ETC:
            binds += ["--ro-bind-try", path, path]
        for file in sorted(_ETC.iterdir()):
            binds += ["--ro-bind", str(file), f"/etc/{file.name}"]
        size = ["--size", str(_TEMPORARY_BYTES)]
        # /proc read-only: a process of root's, even with no capability, could change the host by /proc/sys.
        binds += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm"]  # noqa: S108
        binds += ["--remount-ro", "/dev", *size, "--tmpfs", "/tmp"]  # noqa: S108
        binds += ["--bind", str(root), WORKSPACE, "--remount-ro", "/", "--chdir", WORKSPACE]
        variables = [word for key, value in _VARIABLES.items() for word in ("--setenv", key, value)]
        return [
            *_process_cap(),
            *(self.program, "--unshare-all", "--unshare-user", "--disable-userns"),
            *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
            *variables,
            *binds,
            "--",
            *_limited_shell(command),
        ]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """`unshare` and our own script: the same place, made with what util-linux brings."""

    program: str
    name: str = "namespaces"

    def arguments(self, root: Path, command: str) -> list[str]:
        etc = [str(path) for path in (*sorted(_ETC.iterdir()), *map(Path, _SHARED_ETC)) if path.exists()]
        return [
            *_dies_with_us(),
            *(self.program, "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts"),
            *("--cgroup", "--fork", "--kill-child=SIGKILL", "--propagation", "private"),
            *("/bin/sh", str(_SCRIPT), str(root), WORKSPACE, _process_ceiling(), str(_TEMPORARY_BYTES)),
            *(" ".join(_SYSTEM), "\n".join(etc), "--"),
            *("env", "-i", *(f"{key}={value}" for key, value in _VARIABLES.items())),
            *_limited_shell(command),
        ]


def get_sandbox(search_path: str = _PATH) -> CommandSandbox:
    """The first sandbox that works here, or `InvalidConfig` with what is wrong with each."""
    causes: list[str] = []
    for sandbox in installed_sandboxes(search_path):
        cause = why_broken(sandbox)
        if cause is None:
            return sandbox
        causes.append(f"{sandbox.name}: {cause}")
    raise InvalidConfig(
        "the terminal needs an operating-system sandbox, and none works here",
        hint="install bubblewrap (for example `apt-get install bubblewrap`) and allow user namespaces",
        cause="; ".join(causes) or "neither bwrap nor unshare is installed",
    )


def installed_sandboxes(search_path: str = _PATH) -> list[CommandSandbox]:
    """Best first. That a program is installed does not mean that it may do its work."""
    needed = [shutil.which(name, path=search_path) for name in ("setpriv", "prlimit")]
    if not all(needed):
        return []
    found: list[CommandSandbox] = []
    if program := shutil.which("bwrap", path=search_path):
        found.append(Bubblewrap(program))
    if program := shutil.which("unshare", path=search_path):
        found.append(Namespaces(program))
    return found


def why_broken(sandbox: CommandSandbox) -> str | None:
    """None if a command ran inside and found itself confined."""
    try:
        done = subprocess.run(  # noqa: S603
            sandbox.arguments(_ETC, _PROBE),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            env={"PATH": _PATH},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0 and done.stdout.strip() == b"inside":
        return None
    return done.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit status {done.returncode}"


def _limited_shell(command: str) -> list[str]:
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    return ["prlimit", *_LIMITS, "--", shell, "-c", command]


def _dies_with_us() -> list[str]:
    return ["setpriv", "--pdeathsig", "KILL", "--"]


def _process_ceiling() -> str:
    """How many process ids the sandbox has, or nothing where the kernel cannot tell it from the host's."""
    return str(_MOST_PROCESSES + 300) if _has_own_process_ceiling() else ""


def _process_cap() -> list[str]:
    # The kernel exempts root from --nproc; below its own pid namespace root can be capped as well.
    if os.geteuid() != 0 or not _has_own_process_ceiling():
        return []
    script = f'echo {_process_ceiling()} > /proc/sys/kernel/pid_max && exec "$@"'
    namespaces = ("--user", "--map-root-user", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
    return [*_dies_with_us(), "unshare", *namespaces, "/bin/sh", "-c", script, "sh"]


def _has_own_process_ceiling() -> bool:
    # Since Linux 6.14 pid_max belongs to the pid namespace. Before, writing it would change the host.
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and (int(version[1]), int(version[2])) >= (6, 14)
