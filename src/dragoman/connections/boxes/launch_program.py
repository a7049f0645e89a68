"""Becomes a boxed server: sets limits, leaves what must be left, and executes. Run as a program, without
site-packages; what it does is in an object (of `marshal`) behind the descriptor that its argument names, or,
in a container (`-`), at the beginning of its input, with its size before it.

Nothing of the server runs before the box is closed, and none of its variables are set here before. Every
start waits for what is imported here: a module that only some boxes need is imported where they do.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys

TYPE_CHECKING = False  # as of `typing`, whose import takes longer than all else that is done here
if TYPE_CHECKING:
    import ctypes
    from typing import Any

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY, _SET_SECCOMP, _FILTER = 38, 24, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT = 444, 445, 446
_EXECUTE, _READ_FILE, _READ_DIRECTORY = 1 << 0, 1 << 2, 1 << 3
_AFTER_INPUT = 5000  # milliseconds
_INPUT, _OUTPUT = 8, 9  # a shell names no descriptor above
_WITH_PIPES = ("/bin/sh", "-c", f'exec <&{_INPUT} >&{_OUTPUT} {_INPUT}<&- {_OUTPUT}>&-; exec "$@"', "sh")
_OF_FILES = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)


def main() -> None:
    spec = _told()
    try:
        _limit(spec["limits"])
        if spec["namespaces"]:
            _enter_namespaces(spec["namespaces"])
        if "bubblewrap" in spec:
            _become_bubblewrap(spec)
        if "read" not in spec and (server := os.fork()):
            _keep(server)
        _become_confined(spec)
    except OSError as error:
        sys.stderr.write(f"the box could not be made: {error}\n")
        sys.exit(71)


def _told() -> dict[str, Any]:
    # From who started this, by the same Python.
    if sys.argv[1] != "-":
        with open(int(sys.argv[1]), "rb") as file:
            return marshal.load(file)  # noqa: S302
    return marshal.loads(_input(int.from_bytes(_input(4), "big")))  # noqa: S302


def _input(size: int) -> bytes:
    """Exactly so much of the input: what follows is the server's."""
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit(71)
        data += piece
    return data


def _keep(server: int) -> None:
    """The first process of a container: passes signals on, reaps, and ends with the server. When nobody holds
    the other end of the input any more, it ends soon, and with it everything inside.
    """
    import select
    import signal

    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, _noticed)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(0, 0)  # tells of nothing but its end
    patience: int | None = None
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == server:
                code = os.waitstatus_to_exitcode(ended[1])
                os._exit(code if code >= 0 else 128 - code)
        events = poll.poll(patience)
        if not events:
            os._exit(128 + signal.SIGKILL)
        for descriptor, _ in events:
            if descriptor == 0:
                poll.unregister(0)
                patience = _AFTER_INPUT
            else:
                for number in os.read(woken, 64):
                    if number != signal.SIGCHLD:
                        os.kill(server, number)


def _noticed(number: int, frame: object) -> None:
    """That a signal came is read where it wakes who polls."""


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))


def _enter_namespaces(wanted: dict[str, Any]) -> None:
    """A network with nothing but what is listened on here, and package caches whose writes are its own."""
    import ctypes

    libc = _libc()
    uid, gid = os.getuid(), os.getgid()
    listen, overlays = wanted.get("listen"), wanted.get("overlays", [])
    flags = _NEWUSER | (_NEWNET if listen is not None else 0) | (_NEWNS if overlays else 0)
    _checked(libc.unshare(flags))
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)
    if overlays:
        _checked(libc.mount(b"none", b"/", None, ctypes.c_ulong(0x4000 | 0x40000), None))  # private, all
    for lower, upper, work, place in overlays:
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr".encode()
        _checked(libc.mount(b"overlay", place.encode(), b"overlay", ctypes.c_ulong(0x2 | 0x4), options))
    if listen is not None:
        _hand_over(listen, int(wanted["hand_over"]))


def _hand_over(addresses: list[list[Any]], channel: int) -> None:
    """Sockets that listen in the new network, for who accepts outside of it."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # up, and running
    _own_every_address()
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    sockets: list[socket.socket] = [names]
    for host, port in addresses:
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.bind((host, port))
        one.listen(128)
        sockets.append(one)
    fds = struct.pack(f"{len(sockets)}i", *(one.fileno() for one in sockets))
    with socket.socket(fileno=channel) as out:
        out.sendmsg([b"ready"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    for one in sockets:
        one.close()


def _own_every_address() -> None:
    """`ip route add local 0.0.0.0/0 dev lo`: a connection to anywhere arrives at what listens here."""
    import socket
    import struct

    device = struct.pack("HHI", 8, 4, 1)  # the attribute of the outgoing device: lo is always the first
    route = struct.pack("BBBBBBBBI", socket.AF_INET, 0, 0, 0, 255, 4, 254, 2, 0) + device
    head = struct.pack("IHHII", 16 + len(route), 24, 0x1 | 0x4 | 0x400, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(head + route)
        (number,) = struct.unpack("i", netlink.recv(4096)[16:20])
    if number:
        raise OSError(-number, os.strerror(-number))


def _become_bubblewrap(spec: dict[str, Any]) -> None:
    """Its options, the variables among them, are behind a descriptor: no process list shows them."""
    _put_away_pipes()
    if spec["scope"] and not os.stat(spec["launcher"]).st_mode & 0o4000:
        _scope()
    words: list[str] = [*spec["bubblewrap"]]
    if spec["filter"]:
        words += ["--seccomp", str(_held(spec["filter"]))]
    args = _held(b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words))
    program = spec["launcher"]
    words = [program, "--args", str(args), "--", *_WITH_PIPES, *spec["program"]]
    os.execve(program, words, dict(os.environ))  # noqa: S606


def _put_away_pipes() -> None:
    """Who waits for the server keeps input and output open for as long as it lives, and nothing above them:
    the server gets its own back inside, so that it is noticed when it closes them.
    """
    os.dup2(0, _INPUT)
    os.dup2(1, _OUTPUT)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _become_confined(spec: dict[str, Any]) -> None:
    """The same process, with less: files by landlock, calls by seccomp."""
    import ctypes
    import struct

    libc = _libc()
    os.chdir(spec["cwd"])
    for capability in range(64):  # with nothing left to be given, what it executes has none, root's included
        if libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0) < 0:
            break
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if "read" in spec:
        _landlock(spec["read"], spec["write"])
    elif spec["scope"]:
        _scope()
    if spec["filter"]:
        code: bytes = spec["filter"]
        buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
        _checked(libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))
    os.execve(spec["program"][0], spec["program"], spec["env"])  # noqa: S606


def _scope() -> None:
    """Sockets of others that have no path are not reached, where the kernel can (Linux 6.12)."""
    import ctypes
    import struct

    libc = _libc()
    if libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1) < 6:
        return
    attributes = struct.pack("QQQ", 0, 0, 1)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    _checked(ruleset)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)))
    os.close(ruleset)


def _landlock(read: list[str], write: list[str]) -> None:
    import ctypes
    import struct

    libc = _libc()
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    files = (1 << (16 if version >= 5 else 15 if version >= 3 else 14 if version >= 2 else 13)) - 1
    # Version 6 adds abstract sockets and signals to what does not reach outside.
    attributes = struct.pack("QQQ", files, 0, 3) if version >= 6 else struct.pack("Q", files)
    ruleset = _checked(
        libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    )
    looks = _EXECUTE | _READ_FILE | _READ_DIRECTORY
    for paths, rights in ((read, looks), (write, files)):
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # a system lacks some of them
            allowed = rights if os.path.isdir(path) else rights & _OF_FILES
            rule = struct.pack("=Qi", allowed & files, fd)
            _checked(libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), 1, rule, ctypes.c_uint(0)))
            os.close(fd)
    _checked(libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)))
    os.close(ruleset)


def _held(data: bytes) -> int:
    """A descriptor with these bytes that the next program inherits."""
    fd = os.memfd_create("box", 0)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main()
