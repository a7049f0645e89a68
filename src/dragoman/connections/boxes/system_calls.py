"""Which system calls a boxed program may not make: a seccomp filter as bytes. Pure.

A call that is refused fails with EPERM, or as if the kernel did not know it, so that programs which have
another way take it. What is not listed stays open: a program of the world needs most of the rest.
"""

import errno
import platform
import struct
from functools import cache

_CLONE_NEW = 0x7E020000 | 0x00000080  # every CLONE_NEW… flag, that of time included
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: typing into somebody else's terminal
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

# Names with their numbers on x86_64 and aarch64; None where there is none.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
}
# Memory, queues and semaphores that any process of the machine finds by a number.
_SHARED: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
# As on a kernel that is too old for them: libraries go another way, whose flags the filter can read.
_UNKNOWN: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "openat2": (437, 437),  # its mode is where the filter cannot look
}
# Answered as done, and not done: all that a program starts stays in the group by which it is ended.
_PRETENDED: dict[str, tuple[int | None, int | None]] = {
    "setsid": (112, 157),
    "setpgid": (109, 154),
}
# What is done to a process of the same user, by the argument that names it; 0 is who asks.
_OF_OTHERS: dict[str, tuple[int, tuple[int | None, int | None]]] = {
    "prlimit64": (0, (302, 261)),
    "setpriority": (1, (141, 140)),
    "ioprio_set": (1, (251, 30)),
    "sched_setaffinity": (0, (203, 122)),
    "sched_setscheduler": (0, (144, 119)),
    "sched_setparam": (0, (142, 118)),
    "sched_setattr": (0, (314, 274)),
    "migrate_pages": (0, (256, 238)),
    "move_pages": (0, (279, 239)),
}
# What may leave a program that runs as its owner for whoever starts it, by the argument that is its mode.
_WITH_MODE: dict[str, tuple[int, tuple[int | None, int | None]]] = {
    "chmod": (1, (90, None)),
    "fchmod": (1, (91, 52)),
    "fchmodat": (2, (268, 53)),
    "fchmodat2": (2, (452, 452)),
    "creat": (1, (85, None)),
    "mknod": (1, (133, None)),
    "mknodat": (2, (259, 33)),
}
_OPENING: dict[str, tuple[int, tuple[int | None, int | None]]] = {
    "open": (2, (2, None)),
    "openat": (3, (257, 56)),
}
_RUNS_AS_OWNER, _MAKES = 0o4000, 0o20000100  # a file with a name, or without one
_CLONE, _IOCTL, _SOCKET = (56, 220), (16, 29), (41, 198)

_LOAD, _EQUAL, _SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # where they lie in what the filter is shown


def is_known_machine() -> bool:
    """Whether there is a filter for this kind of processor."""
    return platform.machine() in _AUDIT


@cache
def system_call_filter(*, shared: bool = True, internet: bool = True) -> bytes:
    """The filter; `shared` leaves open what leads to others of the machine where no namespace is between."""
    column = list(_AUDIT).index(platform.machine())
    families = [_AF_NETLINK, *([_AF_UNIX] if shared else []), *([_AF_INET, _AF_INET6] if internet else [])]
    program: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _AUDIT[platform.machine()]),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if column == 0:
        program += [(0x35, 0, 1, _X32), _refuse(errno.ENOSYS)]  # at or above: the other numbering
    for numbers in (*_REFUSED.values(), *(() if shared else _SHARED.values())):
        if (number := numbers[column]) is not None:
            program += [(_EQUAL, 0, 1, number), _refuse(errno.EPERM)]
    for numbers in _UNKNOWN.values():
        if (number := numbers[column]) is not None:
            program += [(_EQUAL, 0, 1, number), _refuse(errno.ENOSYS)]
    if not shared:
        for numbers in _PRETENDED.values():
            if (number := numbers[column]) is not None:
                program += [(_EQUAL, 0, 1, number), _refuse(0)]
    for at, numbers in () if shared else _OF_OTHERS.values():
        if (number := numbers[column]) is not None:
            program += _when(number, [(_LOAD, 0, 0, _argument(at)), (_EQUAL, 1, 0, 0), _refuse(errno.EPERM)])
    for at, numbers in _WITH_MODE.values():
        if (number := numbers[column]) is not None:
            program += _when(
                number, [(_LOAD, 0, 0, _argument(at)), (_SET, 0, 1, _RUNS_AS_OWNER), _refuse(errno.EPERM)]
            )
    for at, numbers in _OPENING.values():
        if (number := numbers[column]) is not None:
            makes = [(_LOAD, 0, 0, _argument(at - 1)), (_SET, 0, 3, _MAKES)]
            owner = [(_LOAD, 0, 0, _argument(at)), (_SET, 0, 1, _RUNS_AS_OWNER), _refuse(errno.EPERM)]
            program += _when(number, [*makes, *owner])
    program += [
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST),
        (_SET, 0, 1, _CLONE_NEW),
        _refuse(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    ioctl = [(_LOAD, 0, 0, _SECOND)]
    for request in _TERMINAL:
        ioctl += [(_EQUAL, 0, 1, request), _refuse(errno.EPERM)]
    program += [(_EQUAL, 0, len(ioctl) + 1, _IOCTL[column]), *ioctl, (_RETURN, 0, 0, _ALLOW)]
    socket = [(_LOAD, 0, 0, _FIRST)]
    for family in families:
        socket += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    program += [(_EQUAL, 0, len(socket) + 1, _SOCKET[column]), *socket, _refuse(errno.EAFNOSUPPORT)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in program)


def _when(number: int, lines: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """These lines for one call, which is allowed behind them."""
    return [(_EQUAL, 0, len(lines) + 1, number), *lines, (_RETURN, 0, 0, _ALLOW)]


def _argument(at: int) -> int:
    """Where the lower half of one lies in what the filter is shown."""
    return _FIRST + 8 * at


def _refuse(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERRNO | number)
