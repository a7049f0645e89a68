"""MCP over the standard streams of a child process."""

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from mcp_types import RequestId

from dragoman.background_tasks import BackgroundTasks
from dragoman.connections.boxes.box import Box
from dragoman.connections.boxes.boxes import ProgramStart
from dragoman.connections.boxes.network import BoxProxy
from dragoman.connections.inbound_rate import WireLimits
from dragoman.connections.process import ServerProcess, find_program, spawn
from dragoman.connections.start_failures import diagnosed
from dragoman.connections.wire import DuplexWire, Message, encode
from dragoman.connections.wire_faults import WireFault, too_large
from dragoman.connector import Connector

_DRAIN_AFTER_EXIT = 0.2

Boxed = Callable[[ProgramStart], Box | None]
"""The box of a program that is about to be started, or None where it has none."""


class StdioWire(DuplexWire):
    """Lines of JSON in both directions. The process belongs to `open_stdio`."""

    kind = "stdio"

    def __init__(self, process: ServerProcess, slug: str, limits: WireLimits) -> None:
        super().__init__(limits)
        self._process = process
        self._slug = slug
        self.has_spoken = False

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def stderr(self) -> tuple[str, ...]:
        return self._process.stderr

    async def start(self) -> None:
        await self._process.start(self._take_line, self._limit, self._too_long)

    async def _send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        if self._fault is not None:
            raise self._fault.again(sent=False)
        try:
            self._process.write(encode(message) + b"\n")
        except BrokenPipeError:
            # Nobody reads what we write: nothing sent now can ever run. Most often the program has ended,
            # which says more than that it closed its input.
            await _within(_DRAIN_AFTER_EXIT, self._process.exited)
            await _within(_DRAIN_AFTER_EXIT, self._process.output_ended)
            self.lose(fault := self._end())
            raise fault.again(sent=False) from None
        await self._process.drain()

    async def _listen(self) -> None:
        process = self._process
        await _first(process.input_ended, process.output_ended, process.exited)
        # What the server wrote before it died may still be in the pipe; a grandchild may hold it open.
        await _within(_DRAIN_AFTER_EXIT, process.output_ended)
        await _within(_DRAIN_AFTER_EXIT, process.exited)
        self.lose(self._end())

    def lose(self, fault: WireFault) -> None:
        super().lose(fault)
        self._process.stop_reading()

    def cut(self) -> None:
        super().cut()
        self._process.kill()

    def _take_line(self, line: bytes) -> None:
        try:
            if line.strip():
                self._take(line)
            else:
                self._count(1)
        except WireFault:
            return  # by now the wire is lost, and whoever waited knows why

    def _dispatch(self, message: Any, size: int) -> None:
        self.has_spoken = True
        super()._dispatch(message, size)

    def _too_long(self) -> None:
        self.lose(too_large(f"a message of more than {self._limit:,} bytes"))

    def _forget_request(self, request_id: RequestId) -> None:
        if self._fault is None:
            message = {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": request_id},
            }
            try:
                self._process.write(encode(message) + b"\n")
            except BrokenPipeError:
                return

    def _end(self) -> WireFault:
        """Why no more will come. What failed before it was a server may fail in the same way for ever."""
        process = self._process
        if (end := process.ended_by) is not None:
            hint = f"if it may have more: dragoman connectors update {self._slug} --limit {end.limit}=…"
            return WireFault("lost", end.cause, hint=hint)
        code = process.exit_code
        if code is None:
            what = f"the server closed its {'output' if process.output_ended.is_set() else 'input'}"
        elif code < 0:
            what = f"the server was ended by signal {-code}"
        else:
            what = f"the server exited with code {code}"
        failure = diagnosed(self._slug, process.stderr, process.first_error)
        message = f"{what}: {failure.cause}" if failure.cause else what
        if self.has_spoken or not code or code < 0:
            return WireFault("lost", message)
        return WireFault("lost", message, hint=failure.hint, is_permanent=failure.is_permanent)


@asynccontextmanager
async def open_stdio(
    connector: Connector, env: Mapping[str, str], args: tuple[str, ...], boxed: Boxed
) -> AsyncGenerator[StdioWire]:
    """Spawns the server and owns its process: on leaving, nothing that it started is left."""
    configuration = connector.configuration
    assert configuration.command
    began = time.time()
    program = find_program(configuration.command, env, configuration.cwd)
    box = boxed(ProgramStart(program, args, env, configuration.cwd))
    if box is not None:
        await box.watchdog.check_room(connector.slug, box.home, box.limits)
    async with AsyncExitStack() as stack:
        proxy: BoxProxy | None = None
        if box is not None and box.rule is not None:
            proxy = await stack.enter_async_context(BoxProxy(box.rule, box.tell, box.use))
        channel = proxy.channel if proxy is not None else None
        process = spawn(configuration.command, args, env, configuration.cwd, box, channel)
        wire = StdioWire(process, connector.slug, WireLimits.of(configuration))
        try:
            if proxy is not None:
                tasks = await stack.enter_async_context(BackgroundTasks())
                tasks.start(proxy.listen(), "box.network")
            if box is not None:
                stack.enter_context(box.watching(process))
            await wire.start()
            yield wire
        finally:
            wire.lose(WireFault("lost", "the connection was closed"))  # whoever still waits is told
            may_install = configuration.installs_first and not wire.has_spoken
            await process.close(may_install=may_install)
            if may_install:
                home = {} if box is None else {"HOME": str(box.home)}
                await asyncio.to_thread(remove_half_installed, {**env, **home}, began)


async def _first(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _within(seconds: float, event: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def remove_half_installed(env: Mapping[str, str], since: float) -> None:
    """Removes each folder of npx that was written to since then and has not come to its end: with half a
    package it would fail for ever. uv and pip rename when all is there; npx installs in place.

    npm writes its own lock file into `node_modules` when everything else is there.
    """
    home = env.get("HOME")
    cache = env.get("npm_config_cache") or env.get("NPM_CONFIG_CACHE") or (home and f"{home}/.npm")
    if not cache:
        return
    for folder in _folders(Path(cache) / "_npx"):
        with suppress(OSError):
            is_whole = (folder / "node_modules" / ".package-lock.json").exists()
            if not is_whole and _last_written(folder) >= since:
                shutil.rmtree(folder, ignore_errors=True)


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []


def _last_written(folder: Path) -> float:
    inside = (folder, folder / "node_modules")
    return max(one.stat().st_mtime for one in inside if one.exists())
