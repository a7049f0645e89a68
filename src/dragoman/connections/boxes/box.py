"""One box: what its program sees, reaches and may use, and the command that starts it so.

A plan, not a process: `connections/process.py` spawns what it says and ends it.
"""

import asyncio
import marshal
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.connections.boxes import container, machine
from dragoman.connections.boxes.machine import BoxMode
from dragoman.connections.boxes.network import PROXY, NetworkDecision, NetworkRule, NetworkUse
from dragoman.connections.boxes.system_calls import is_known_machine, system_call_filter
from dragoman.connections.boxes.visible_paths import SYSTEM, Mount, is_seen, lies_in, outermost
from dragoman.connections.boxes.watchdog import BoxWatchdog, LimitedProcess
from dragoman.connector import BoxLimits

MARK = "DRAGOMAN_CONNECTION"
"""The variable by which all that was started for a connection is found, wherever it went."""
_PROGRAM = Path(__file__).with_name("launch_program.py")
_ETC = Path(__file__).with_name("etc")
_NETWORK_ETC = Path(__file__).with_name("network_etc")
_MEGABYTE = 1024 * 1024
_MEMORY_BEYOND = 2048
_TEMPORARY = 512 * _MEGABYTE
# Of /etc what programs look for, and nothing that is secret: no passwords, no keys of TLS.
_SHARED_ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust", "ca-certificates", "ca-certificates.conf"),
    *("resolv.conf", "hosts", "host.conf", "gai.conf", "localtime", "timezone", "mime.types", "services"),
    *(
        "protocols",
        "fonts",
        "npmrc",
        "pip.conf",
        "uv/uv.toml",
        "java-17-openjdk",
        "java-21-openjdk",
        "chromium",
    ),
)
# What tells of the machine, and of the program itself; not what tells of other processes.
_PROC = tuple(
    f"/proc/{name}"
    for name in ("self", "cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "sys")
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_BESIDE_PROXY = {
    "NO_PROXY": "localhost,127.0.0.1",
    "no_proxy": "localhost,127.0.0.1",
    "NODE_USE_ENV_PROXY": "1",
}
_OF_CONTAINERS = ("resolv.conf", "hosts")  # their service makes these
_BEYOND_IN_CONTAINERS = 64
_PROCESSES_BEYOND = 16
_LAUNCHER_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))


@dataclass(frozen=True, slots=True)
class PackageCache:
    """A cache of packages of whoever runs Dragoman: read by the box, which keeps its own writes to itself."""

    shared: str
    written: str
    work: str
    place: str


@dataclass(frozen=True, slots=True)
class Launch:
    """What is executed, with its environment and what it inherits; who spawns it closes the descriptors."""

    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    descriptors: tuple[int, ...] = ()
    first: bytes = b""  # for its input, before anything else


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """With a `rule` it has a network in which it finds our proxy and nothing else; without one that of the
    machine, or none. `hidden` is empty inside, whatever is mounted around it. `tell` hears what the proxy
    decides, `use` counts what passes it, `watchdog` holds the program to its limits.
    """

    mode: BoxMode
    home: Path
    hidden: str
    read: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    caches: tuple[PackageCache, ...] = ()
    has_network: bool = True
    rule: NetworkRule | None = None
    limits: BoxLimits = field(default_factory=BoxLimits)
    tell: Callable[[NetworkDecision], None] = lambda decision: None
    use: NetworkUse = field(default_factory=NetworkUse)
    watchdog: BoxWatchdog = field(default_factory=BoxWatchdog)

    @property
    def waits(self) -> int:
        """How many processes of the box are not the server's: those that wait for it."""
        return {"bubblewrap": 2, "container": 1}.get(self.mode, 0)

    def watching(self, process: LimitedProcess) -> AbstractContextManager[None]:
        """The processes of a container are not below what was started: its service knows the first."""
        first = (
            partial(machine.first_of_container, _named(process.mark)) if self.mode == "container" else None
        )
        return self.watchdog.watching(process, self.limits, self.home, self.waits, first)

    @property
    def outlives_kills(self) -> bool:
        """Whether it may stay when its processes got SIGKILL: a container that somebody paused."""
        return self.mode == "container"

    async def end_rest(self, mark: str) -> None:
        """By its service, which alone can end one that is paused."""
        await asyncio.to_thread(machine.remove_container, _named(mark))

    @property
    def temporary(self) -> str:
        return str(self.home.parent / "tmp") if self.mode == "landlock" else "/tmp"  # noqa: S108

    def sees(self, path: str) -> bool:
        return is_seen(path, (*self.read, *(mount.path for mount in self.mounts), str(self.home)))

    def launch(
        self,
        program: str,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        *,
        mark: str,
        channel: int | None = None,
    ) -> Launch:
        """`mark` is the start's own, `channel` is where sockets that listen inside are handed over."""
        cwd = cwd if cwd is not None else os.getcwd()
        inside = {**env, "HOME": str(self.home), "TMPDIR": self.temporary, "USER": "box", "LOGNAME": "box"}
        if self.rule is not None:
            inside |= dict.fromkeys(_PROXIES, f"http://{PROXY[0]}:{PROXY[1]}") | _BESIDE_PROXY
        cwd = cwd if self.sees(cwd) or self._is_named_from(cwd, args) else str(self.home)
        spec: dict[str, Any] = {
            "limits": {
                "CORE": 0,
                "NOFILE": self.limits.files,
                "FSIZE": self.limits.disk * _MEGABYTE,
                # The watchdog is first, and says so: this is for what grows faster than it looks.
                "DATA": (self.limits.memory + _MEMORY_BEYOND) * _MEGABYTE,
            },
            "namespaces": self._namespaces(channel),
            "program": [str(word) for word in (program, *args)],  # no subclass: they are not written
            "env": {str(name): str(value) for name, value in inside.items()},
            "cwd": cwd,
            "filter": self._filter(),
            # Sockets without a path belong to the network, and it is that of the machine.
            "scope": self.has_network and self.rule is None,
        }
        if self.mode == "container":
            said = marshal.dumps(spec)
            return Launch(
                words=tuple(self._container(mark)),
                env=container.client_environment(os.environ),
                cwd=str(self.home.parent / "tmp"),  # podman leaves a file where it is when memory ran out
                first=len(said).to_bytes(4, "big") + said,
            )
        if self.mode == "bubblewrap":
            spec["launcher"] = machine.bubblewrap().detail
            spec["bubblewrap"] = self._bubblewrap(inside, cwd)
        else:
            etc = [f"/etc/{name}" for name in (*_SHARED_ETC, "passwd", "group", "nsswitch.conf")]
            written = [mount.path for mount in self.mounts if mount.is_writable]
            spec["read"] = [*SYSTEM, *etc, *_PROC, *self.read, *(mount.path for mount in self.mounts)]
            spec["write"] = [str(self.home), self.temporary, *written, *_DEVICES]
        given = os.memfd_create("box")
        with open(os.dup(given), "wb") as file:
            file.write(marshal.dumps(spec))
        os.lseek(given, 0, os.SEEK_SET)
        return Launch(
            words=(sys.executable, "-I", "-S", str(_PROGRAM), str(given)),
            # Its own variables reach a server inside the box only: one may name code to load.
            env={name: os.environ[name] for name in _LAUNCHER_ENVIRONMENT if name in os.environ},
            descriptors=(given, *(() if channel is None else (channel,))),
        )

    def _is_named_from(self, cwd: str, args: Sequence[str]) -> bool:
        """Whether an argument is the relative name of what is mounted."""
        mounted = [mount.path for mount in self.mounts]
        return any(lies_in(os.path.join(cwd, word), mounted) for word in args if not os.path.isabs(word))

    def _namespaces(self, channel: int | None) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        if self.caches:
            wanted["overlays"] = [(one.shared, one.written, one.work, one.place) for one in self.caches]
        if self.rule is not None and channel is not None:
            wanted |= {"listen": self.rule.listen, "hand_over": channel}
        return wanted

    def _filter(self) -> bytes:
        if not is_known_machine():
            return b""
        # Without namespaces, who may not open a socket reaches no service of the machine and no network.
        has_own = self.mode != "landlock"
        return system_call_filter(shared=has_own, internet=has_own or self.has_network)

    def _container(self, mark: str) -> list[str]:
        etc = [f"/etc/{name}" for name in _SHARED_ETC if name not in _OF_CONTAINERS]
        shown = [*self.read, *(mount.path for mount in self.mounts)]
        mounts = [
            *container.system_mounts((*SYSTEM, *etc)),
            *(container.ContainerMount(str(file), f"/etc/{file.name}") for file in sorted(_ETC.iterdir())),
            container.ContainerMount(str(_PROGRAM), container.LAUNCHER),
            *(container.ContainerMount(path, path) for path in outermost(self.read)),
            *(container.ContainerMount(one.path, one.path, one.is_writable) for one in self.mounts),
            container.ContainerMount(str(self.home), str(self.home), is_writable=True),
        ]
        way = machine.container()
        words = container.run_words(
            way.detail,
            bind_alone=way.bind_alone,
            name=_named(mark),
            has_network=self.has_network,
            has_control_group=way.has_control_group,
            # The watchdog is first here, too.
            memory=self.limits.memory + _BEYOND_IN_CONTAINERS,
            processes=self.limits.processes + _PROCESSES_BEYOND,
            files=self.limits.files,
            mounts={mount.place: mount for mount in mounts}.values(),
            hidden=[self.hidden] if lies_in(self.hidden, shown) else (),
        )
        # By its mark the first process is found as well, and ended where it can end nothing by itself.
        words += [f"--env={MARK}={mark}", container.IMAGE]
        return [*words, machine.own_python(), "-I", "-S", container.LAUNCHER, "-"]

    def _bubblewrap(self, env: Mapping[str, str], cwd: str) -> list[str]:
        words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        words += [] if self.has_network else ["--unshare-net"]
        words += ["--uid", "1000", "--gid", "1000", "--hostname", "box", "--die-with-parent"]
        words += ["--cap-drop", "ALL", "--clearenv"]
        for name, value in env.items():
            words += ["--setenv", name, value]
        for path in SYSTEM:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.exists(path):
                words += ["--ro-bind", path, path]
        for name in _SHARED_ETC:
            if os.path.exists(f"/etc/{name}"):
                words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
        for file in sorted((*_ETC.iterdir(), *(_NETWORK_ETC.iterdir() if self.rule is not None else ()))):
            words += ["--ro-bind", str(file), f"/etc/{file.name}"]
        size = ["--size", str(_TEMPORARY)]
        # /proc read-only: a process of root's, even with no capability, could change the host by /proc/sys.
        words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm"]  # noqa: S108
        words += ["--remount-ro", "/dev", *size, "--tmpfs", "/tmp", "--symlink", "/tmp", "/var/tmp"]  # noqa: S108
        writable = {str(self.home), *(mount.path for mount in self.mounts if mount.is_writable)}
        shown = (*self.read, *(mount.path for mount in self.mounts), str(self.home))
        for path in outermost((*shown, self.hidden)):
            if path == self.hidden:
                words += ["--size", str(_MEGABYTE), "--tmpfs", path]
            else:
                words += ["--bind" if path in writable else "--ro-bind", path, path]
        return [*words, "--chdir", cwd, "--remount-ro", self.hidden, "--remount-ro", "/"]


def _named(mark: str) -> str:
    return f"dragoman-{mark}"
