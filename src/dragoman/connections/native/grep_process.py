"""Searches files for a pattern, in a process of its own: a pattern that never ends is ended with it.

Runs as a script on the standard library alone. It reads its order from stdin, walks from a directory
descriptor that it inherits, follows no link, and writes what it found to stdout as JSON.
"""

import fnmatch
import json
import os
import re
import resource
import stat
import sys
from collections.abc import Iterator

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MEMORY = 512 * 1024 * 1024


def main() -> None:
    order = json.load(sys.stdin)
    seconds = int(order["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    json.dump(search(order), sys.stdout)


def search(order: dict[str, object]) -> dict[str, object]:
    try:
        pattern = re.compile(str(order["pattern"]))
    except (re.error, RecursionError, OverflowError) as error:
        return {"error": str(error)}
    limit, width = int(str(order["limit"])), int(str(order["width"]))
    budget = int(str(order["bytes"]))
    matches: list[dict[str, object]] = []
    files, skipped = 0, 0
    prefix = str(order["prefix"])
    for path, name, directory in _files(
        int(str(order["descriptor"])), str(order["name"]), str(order["glob"])
    ):
        data = _read(name, directory, min(int(str(order["file_bytes"])), budget))
        if data is None:
            skipped += 1
            continue
        files += 1
        budget -= len(data)
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
            if not pattern.search(line[: width * 16]):
                continue
            if len(matches) == limit:
                return _answer(matches, files, skipped, more=True)
            matches.append(
                {"path": os.path.join(prefix, path), "line": number, "text": line[:width].rstrip("\r")}
            )
        if budget <= 0:
            return _answer(matches, files, skipped, more=True)
    return _answer(matches, files, skipped, more=False)


def _answer(matches: list[dict[str, object]], files: int, skipped: int, *, more: bool) -> dict[str, object]:
    return {"matches": matches, "files": files, "skipped": skipped, "more": more}


def _files(descriptor: int, only: str, glob: str) -> Iterator[tuple[str, str, int]]:
    """Each file as its path, its name and the descriptor of its directory, in a stable order."""
    if only:
        yield only, only, descriptor
        return
    # fwalk compares each directory with what it opened, so none can be swapped for a link.
    for parent, directories, names, opened in os.fwalk(".", dir_fd=descriptor, follow_symlinks=False):
        directories.sort()
        for name in sorted(names):
            path = os.path.normpath(os.path.join(parent, name))
            if not glob or fnmatch.fnmatch(path if "/" in glob else name, glob):
                yield path, name, opened


def _read(name: str, directory: int, most: int) -> bytes | None:
    """The file's beginning; None for what is no regular file, is binary, or is larger than it may be."""
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            return None
        opened = os.open(name, _READ, dir_fd=directory)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        data = file.read(most + 1)
    return None if len(data) > most or b"\0" in data[:8192] else data


if __name__ == "__main__":
    main()
