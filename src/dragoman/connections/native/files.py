"""`read_file`, `write_file` and `grep`, confined to one directory; links and `..` lead nowhere.

Off until a workspace turns them on. They are plain functions on the same road as anybody's.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import Field, TypeAdapter

from dragoman.connections.native.confined_directory import ConfinedDirectory
from dragoman.connections.native.functions import FunctionTool
from dragoman.connections.native.source import NativeTool
from dragoman.errors import ToolFailed
from dragoman.tool import Annotations

_READ_ONLY = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
_OVERWRITES = Annotations(read_only=False, destructive=True, idempotent=True, open_world=False)
_SEARCH = Path(__file__).with_name("grep_process.py")

RelativePath = Annotated[str, Field(min_length=1, max_length=4096, description="relative to the directory")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """How much one call may read, write and search."""

    read_bytes: int = 256 * 1024
    scan_bytes: int = 64 * 1024 * 1024
    write_bytes: int = 10 * 1024 * 1024
    search_bytes: int = 256 * 1024 * 1024
    search_file_bytes: int = 16 * 1024 * 1024
    search_seconds: float = 10.0
    line_characters: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    path: str
    content: str
    first_line: int
    lines: int
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    path: str
    bytes: int
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepMatch:
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepResult:
    matches: list[GrepMatch]
    files: int
    skipped: int
    more: bool


def standard_tools(root: Path, limits: FileLimits = FileLimits()) -> list[NativeTool]:  # noqa: B008  frozen
    """The file tools over one directory. Raises `InvalidConfig` where that is no directory."""
    files = Files(root, limits)
    return [
        FunctionTool(files.read_file, annotations=_READ_ONLY),
        FunctionTool(files.write_file, annotations=_OVERWRITES),
        FunctionTool(files.grep, annotations=_READ_ONLY),
    ]


class Files:
    def __init__(self, root: Path, limits: FileLimits) -> None:
        self._directory = ConfinedDirectory(root)
        self._limits = limits

    def read_file(
        self,
        path: RelativePath,
        offset: Annotated[int, Field(ge=0, description="lines to skip")] = 0,
        limit: Annotated[int, Field(ge=1, le=100_000, description="most lines to return")] = 2000,
    ) -> FileText:
        """Read lines of a text file. `more` says whether the file goes on; continue with a larger offset."""
        kept: list[bytes] = []
        size, scanned, number, more = 0, 0, 0, False
        with self._directory.open_file(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            while line := file.readline(self._limits.read_bytes):
                scanned += len(line)
                if b"\0" in line:
                    raise ToolFailed(f"{path!r} is no text file")
                if scanned > self._limits.scan_bytes and not kept:
                    raise ToolFailed(f"line {offset} of {path!r} is too far into the file", hint="use grep")
                if number >= offset:
                    if len(kept) == limit or size + len(line) > self._limits.read_bytes:
                        more = True
                        break
                    kept.append(line)
                    size += len(line)
                number += 1
        text = b"".join(kept).decode("utf-8", "replace")
        return FileText(path=path, content=text, first_line=offset + 1, lines=len(kept), more=more)

    def write_file(self, path: RelativePath, content: str) -> WrittenFile:
        """Write a text file, replacing it whole if it exists. Missing directories are made."""
        data = content.encode("utf-8", "surrogateescape")
        if len(data) > self._limits.write_bytes:
            raise ToolFailed(
                f"{len(data)} bytes are more than the {self._limits.write_bytes} that may be written at once",
                hint="write several files",
            )
        created = self._directory.write_file(path, data)
        return WrittenFile(path=path, bytes=len(data), created=created)

    async def grep(
        self,
        pattern: Annotated[str, Field(max_length=1000, description="regular expression, Python syntax")],
        path: Annotated[str, Field(max_length=4096, description="file or directory to search")] = ".",
        glob: Annotated[str, Field(max_length=200, description="only files like this, e.g. *.py")] = "",
        limit: Annotated[int, Field(ge=1, le=1000, description="most matching lines")] = 100,
    ) -> GrepResult:
        """Search text files line by line. Links, binary files and very large files are skipped."""
        folder, name = await asyncio.to_thread(self._place, path)
        with self._directory.open_directory(folder) as descriptor:
            order: dict[str, object] = {
                "pattern": pattern,
                "glob": glob,
                "limit": limit,
                "name": name,
                "prefix": "" if folder in (".", "./") else folder,
                "descriptor": descriptor,
                "width": self._limits.line_characters,
                "bytes": self._limits.search_bytes,
                "file_bytes": self._limits.search_file_bytes,
                "seconds": self._limits.search_seconds,
            }
            answer = await _search(order, descriptor, self._limits.search_seconds)
        if answer.get("error"):
            raise ToolFailed(f"{pattern[:100]!r} is no regular expression: {answer['error']}")
        return _FOUND.validate_python(answer)

    def _place(self, path: str) -> tuple[str, str]:
        """The directory to search, and the one file in it where the path names a file."""
        if self._directory.has_directory(path):
            return path, ""
        with self._directory.open_file(path):
            folder, _, name = path.rpartition("/")
            return folder or ".", name


_FOUND = TypeAdapter(GrepResult)


async def _search(order: dict[str, object], descriptor: int, seconds: float) -> dict[str, object]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-IS",
        str(_SEARCH),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=(descriptor,),
        env={},
    )
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate(orjson.dumps(order))
    except TimeoutError as error:
        raise ToolFailed(
            f"the search took more than {seconds:g} s and was stopped",
            hint="nested repetitions such as (a+)+ may never end; or narrow path and glob",
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ToolFailed(
            "the search used too much memory or time and was stopped", hint="narrow path and glob"
        )
    return orjson.loads(answer)
