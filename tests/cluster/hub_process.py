"""A hub in a process of its own that does what it is told, one line of JSON each: the other of two processes.

`OtherHub` starts it, speaks to it, kills it. Run as a program, this file is that process.
"""

import asyncio
import dataclasses
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

from pydantic import SecretStr

from dragoman import Hub
from dragoman.connector import Configuration
from dragoman.errors import DragomanError
from dragoman.settings import Settings
from patience import patient

_READY = "ready"
_SECRET = "a secret"
_LONGEST_LINE = 64 * 1024 * 1024


class RemoteError(Exception):
    """What went wrong in the other process."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class OtherHub:
    """`await other("connectors.disable", "box")` is `await hub.connectors.disable("box")` over there."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = json.dumps({"box_programs": "people", **settings})
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("DRAGOMAN_")}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            self._settings,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
            env=environment,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(patient(60)):
            line = await self._process.stdout.readline()
        assert line.decode().strip() == _READY, line

    async def __call__(self, path: str, *args: Any, as_user: str | None = None, **kwargs: Any) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        order = {"path": path, "args": args, "kwargs": kwargs, "as_user": as_user}
        async with self._turn, asyncio.timeout(patient(30)):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            answer: dict[str, Any] = json.loads(await process.stdout.readline())
        if "code" in answer:
            raise RemoteError(answer["code"], answer["message"])
        return answer["value"]

    async def kill(self) -> None:
        """As the machine would: nothing is finished, nothing is closed."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            await process.wait()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            await process.wait()


@asynccontextmanager
async def open_other(**settings: Any) -> AsyncGenerator[OtherHub]:
    other = OtherHub(settings)
    await other.start()
    try:
        yield other
    finally:
        await other.stop()


def secret(text: str) -> dict[str, str]:
    """A `SecretStr` over there."""
    return {_SECRET: text}


def _secret(value: dict[str, Any]) -> Any:
    return SecretStr(value[_SECRET]) if _SECRET in value else value


def _plain(value: Any) -> Any:
    if isinstance(value, Configuration):
        return value.model_dump(mode="json", exclude_unset=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)


async def _done(hub: Hub, order: dict[str, Any]) -> Any:
    target: Any = hub if order["as_user"] is None else await hub.as_user(order["as_user"])
    for name in order["path"].split("."):
        target = getattr(target, name)
    found = target(*order["args"], **order["kwargs"])
    return await found if asyncio.iscoroutine(found) else found


async def _serve(settings: dict[str, Any]) -> None:
    settings["home"] = Path(settings["home"])
    async with Hub(Settings(**settings)) as hub:
        print(_READY, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                answer = {"value": _plain(await _done(hub, json.loads(line, object_hook=_secret)))}
            except DragomanError as error:
                answer = {"code": error.code, "message": error.message}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
