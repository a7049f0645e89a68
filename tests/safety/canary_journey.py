"""A service in a process of its own, and everything that is said by it and by the command."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from servers.hubs import SERVERS, until

_KEY_FILES = ("key", "token")


class Journey:
    """`said` holds every answer, by what was asked."""

    def __init__(self, home: Path, log: Path, url: str, session: aiohttp.ClientSession) -> None:
        self.home = home
        self.log = log
        self.url = url
        self.said: dict[str, bytes] = {}
        self.token = (home / "token").read_text().strip()
        self._session = session
        self._turns = asyncio.Semaphore(2)

    async def ask(self, method: str, path: str, body: Any = None, *, by: str = "", kept: bool = True) -> Any:
        """`kept=False` for the few answers that are there to tell a secret."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {by or self.token}", "Content-Type": "application/json"}
        headers["Accept"] = "application/json, text/event-stream"
        async with self._session.request(method, self.url + path, data=data, headers=headers) as response:
            text = await response.read()
            if kept:
                told = str(dict(response.headers)).encode() + text
                self.said[f"{len(self.said)} {method} {path} {response.status}"] = told
            is_json = "json" in response.content_type and "ndjson" not in response.content_type
            return json.loads(text) if text and is_json else text

    async def command(
        self, *words: str, by: str = "", given: str = "", kept: bool = True, **environment: str
    ) -> tuple[int, bytes]:
        """One command line, from a home of its own with a key, or as the operator."""
        place = (
            {"DRAGOMAN_URL": self.url, "DRAGOMAN_TOKEN": by, "DRAGOMAN_HOME": str(self.log.parent / "empty")}
            if by
            else {"DRAGOMAN_HOME": str(self.home)}
        )
        async with self._turns:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dragoman", *words),
                env={**os.environ, **place, "DRAGOMAN_LOG_LEVEL": "debug", **environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, errors = await process.communicate(given.encode())
        if kept:
            self.said[f"{len(self.said)} dragoman {' '.join(words[:3])} {process.returncode}"] = out + errors
        return process.returncode or 0, out

    async def browse(self, by: str, *paths: str) -> None:
        """The console as whoever has this key sees it."""
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.url, cookie_jar=jar) as browser:
            async with browser.post("/sign-in", data={"key": by}) as response:
                assert response.status == 200, await response.text()
            for path in paths:
                async with browser.get(path) as response:
                    assert response.status == 200, path
                    self.said[f"{len(self.said)} console {path}"] = await response.read()

    async def follow_events(self, by: str) -> None:
        """Until the service ends."""
        headers = {"Authorization": f"Bearer {by}"}
        async with self._session.get(self.url + "/api/events", headers=headers) as response:
            async for piece in response.content.iter_any():
                self.said["events"] = self.said.get("events", b"") + piece

    def files(self) -> dict[str, bytes]:
        """Every file of the home but those whose content is the secret itself, and the log."""
        kept = {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file() and path.name.split(".")[0] not in _KEY_FILES
        }
        return {**kept, "log": self.log.read_bytes()}


@asynccontextmanager
async def open_journey(folder: Path) -> AsyncGenerator[Journey]:
    home, log = folder / "home", folder / "log"
    home.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")},
        "DRAGOMAN_HOME": str(home),
        "DRAGOMAN_MULTI_USER": "1",
        "DRAGOMAN_BOX_PATHS": str(SERVERS),
        "DRAGOMAN_DISCOVERY": "off",
        "DRAGOMAN_LOG_LEVEL": "debug",
        "DRAGOMAN_LOG_JSON": "1",
        "DRAGOMAN_ALLOWED_NETWORKS": "127.0.0.1/32",
        "DRAGOMAN_APPROVAL_WAIT": "20",
    }
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dragoman", "serve", "--port", "0"),
            env=environment,
            stdout=sink,
            stderr=sink,
        )
        try:
            await until(lambda: (home / "server.json").exists() or process.returncode is not None, 30)
            assert process.returncode is None, log.read_text()
            url = json.loads((home / "server.json").read_text())["url"]
            async with aiohttp.ClientSession() as session:
                yield Journey(home, log, url, session)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
