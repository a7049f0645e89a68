"""A box made by podman or docker: the words that run it. Who runs them is elsewhere.

Its image is empty. The box shows the machine's own system and runtimes, read-only, as the other modes do, so
that nothing is fetched for it. The first process inside is `launch_program.py`, which is told by its input
what to start, and which ends with all that it started when nobody holds the other end of that input.
"""

import os
import resource
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from dragoman.errors import InvalidConfig

IMAGE = "localhost/dragoman-box:1"
LAUNCHER = "/.box/launch.py"
_MEGABYTE = 1024 * 1024
_TEMPORARY = 512
_PROCESSES = 16384
# What tells the client where its service and its files are.
_CLIENT_ENVIRONMENT = (
    *("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
)


@dataclass(frozen=True, slots=True)
class ContainerMount:
    source: str
    place: str
    is_writable: bool = False


def client_environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in _CLIENT_ENVIRONMENT if name in env}


def ways_to_bind_alone(program: str) -> tuple[str, ...]:
    """How to say that what is mounted below a path is not shown: docker says otherwise since 25."""
    before = "bind-nonrecursive=true"
    return (before,) if _is_podman(program) else ("bind-recursive=disabled", before)


def run_words(
    program: str,
    *,
    bind_alone: str,
    name: str,
    has_network: bool,
    memory: int,
    processes: int,
    has_control_group: bool,
    files: int,
    mounts: Iterable[ContainerMount],
    hidden: Iterable[str] = (),
) -> list[str]:
    """`program` with its options, to be followed by what runs inside. `memory` is in megabytes; it is held
    by a control group alone, as are most processes.
    """
    uid, gid = os.getuid(), os.getgid()
    has_own_users = _is_podman(program) and uid != 0
    words = [program, "run", "--rm", "--interactive", f"--name={name}", "--pull=never", "--log-driver=none"]
    words += ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    words += ["--security-opt=label=disable", "--hostname=box", "--cgroupns=private", f"--user={uid}:{gid}"]
    words += ["--userns=keep-id"] if has_own_users else []
    words += [f"--network={'host' if has_network else 'none'}", "--ulimit=core=0:0"]
    words += [f"--ulimit=nofile={files}:{files}"]
    # Their services ask for more than a client without rights may give. All of one user's processes count:
    # those of the box alone only where the user is its own.
    most = min(processes, _most_processes()) if has_own_users else _most_processes()
    words += [f"--ulimit=nproc={most}:{most}"]
    if has_control_group:
        words += [f"--memory={memory}m", f"--memory-swap={memory}m", f"--pids-limit={processes}"]
    words += [f"--tmpfs=/tmp:rw,nosuid,nodev,size={_TEMPORARY}m,mode=1777", f"--shm-size={_TEMPORARY}m"]
    for path in hidden:
        words += ["--mount", f"type=tmpfs,{_field('destination', path)},tmpfs-size={_MEGABYTE}"]
    for mount in mounts:
        place = f"type=bind,{_field('source', mount.source)},{_field('destination', mount.place)}"
        # What is mounted below a path that is only read would stay writable: it is not shown.
        words += ["--mount", place if mount.is_writable else f"{place},readonly,{bind_alone}"]
    return words


def _most_processes() -> int:
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return _PROCESSES if most == resource.RLIM_INFINITY else min(most, _PROCESSES)


def system_mounts(paths: Sequence[str]) -> list[ContainerMount]:
    """Each that there is, at its own place; a link is shown as what it leads to."""
    return [ContainerMount(os.path.realpath(path), path) for path in paths if os.path.exists(path)]


def _is_podman(program: str) -> bool:
    return PurePath(program).name.startswith("podman")


def _field(name: str, path: str) -> str:
    if "," in path or '"' in path or "\n" in path:
        raise InvalidConfig(
            f"a container cannot show {path!r}: its name has a comma or a quotation mark",
            hint="leave sandbox at auto, or rename it",
        )
    return f"{name}={path}"
