"""The hub's end of the worker process: started when first needed, one document at a time, gone when idle.

Owned by the source's `async with`. A worker that takes too long is ended and the next document gets another.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson

from dragoman.connections.openapi.conversion import DocumentOrigin
from dragoman.connections.openapi.worker import LENGTH, TOOLS
from dragoman.connector import Selection
from dragoman.errors import Internal, InvalidConfig
from dragoman.tool import Annotations, ToolDefinition

_IDLE = 20.0


@dataclass(frozen=True, slots=True)
class Converted:
    """What a document offers, as the worker wrote it: as text it is small and gives the collector no work."""

    frames: tuple[bytes, ...]
    skipped: tuple[str, ...]
    about: dict[str, Any]

    async def definitions(self) -> tuple[ToolDefinition, ...]:
        """Made anew each time; others get their turn in between."""
        found: list[ToolDefinition] = []
        for frame in self.frames:
            found += map(_definition, orjson.loads(frame))
            await asyncio.sleep(0)
        return tuple(found)


class Converter:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._is_closed = True
        await self._end()

    async def convert(
        self, data: bytes, origin: DocumentOrigin, select: Selection, timeout: float
    ) -> Converted:
        """Raises `InvalidConfig` that says what is wrong with the document."""
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            is_whole = False
            try:
                async with asyncio.timeout(timeout):
                    converted = await self._exchange(data, origin, select)
                is_whole = True
                return converted
            except InvalidConfig:
                is_whole = True
                raise
            except TimeoutError:
                raise InvalidConfig(
                    f"the document could not be turned into tools within {timeout:g} s",
                    hint="it may be nested without end; raise connect_timeout if it is only large",
                ) from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise Internal("the process that reads documents ended unexpectedly") from None
            finally:
                if not is_whole or self._is_closed:
                    await self._end()  # half an answer may still be in the pipe
                else:
                    self._idle = asyncio.get_running_loop().call_later(_IDLE, self._leave)

    async def _exchange(self, data: bytes, origin: DocumentOrigin, select: Selection) -> Converted:
        process = await self._running()
        request = orjson.dumps(
            {"size": len(data), "origin": asdict(origin), "wanted": select.model_dump(mode="json")}
        )
        assert process.stdin is not None
        process.stdin.write(LENGTH.pack(len(request)) + request)
        process.stdin.write(data)
        await process.stdin.drain()
        assert process.stdout is not None
        frames: list[bytes] = []
        while True:
            size = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))[0]
            frame = await process.stdout.readexactly(size)
            if frame.startswith(TOOLS):
                frames.append(frame[1:])
                continue
            end = orjson.loads(frame[1:])
            if "fault" in end:
                raise InvalidConfig(end["fault"], hint=end["hint"])
            return Converted(tuple(frames), tuple(end["skipped"]), end["about"])

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            # Nothing of our environment is its business but where Python finds its modules.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "dragoman.connections.openapi.worker"),
                stdin=PIPE,
                stdout=PIPE,
                env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,
            )
        return self._process

    def _leave(self) -> None:
        """Its input ends, and so does it."""
        if self._process is not None and self._process.stdin is not None and not self._turn.locked():
            self._process.stdin.close()

    async def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.communicate()


def _definition(raw: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        original_name=raw["name"],
        title=raw["title"],
        description=raw["description"],
        input_schema=raw["input"],
        output_schema=raw["output"],
        annotations=Annotations(**raw["annotations"]),
        meta=raw["meta"],
    )
