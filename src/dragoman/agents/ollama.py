"""Which models a local Ollama has, and which of them call tools. Asks in no time, remembers for seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
from aiohttp import ClientError, ClientSession, ClientTimeout

DEFAULT_URL = "http://127.0.0.1:11434"
# One that is there takes a connection at once; on a busy machine its answer may take longer.
_PATIENCE = ClientTimeout(total=1.0, sock_connect=0.3)
_REMEMBERED = 10.0
_MOST_MODELS = 30


@dataclass(frozen=True, slots=True)
class LocalModel:
    name: str
    calls_tools: bool


class Ollama:
    """One Ollama at `url`; an empty `url` is none. A machine that does not answer has no models."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = anyio.Lock()
        self._asked_at: float | None = None
        self._found: tuple[LocalModel, ...] | None = None

    async def find(self) -> tuple[LocalModel, ...] | None:
        """Its models, the last used or pulled first; None when nobody answers."""
        async with self._lock:
            if self._asked_at is None or monotonic() - self._asked_at > _REMEMBERED:
                self._found = await self._ask() if self.url else None
                self._asked_at = monotonic()
            return self._found

    async def _ask(self) -> tuple[LocalModel, ...] | None:
        try:
            async with ClientSession(timeout=_PATIENCE) as session:
                async with session.get(f"{self.url}/api/tags") as answer:
                    names = _names(await answer.json(content_type=None)) if answer.status == 200 else None
                return None if names is None else await self._described(session, names[:_MOST_MODELS])
        except (ClientError, TimeoutError, ValueError, OSError):
            return None

    async def _described(self, session: ClientSession, names: list[str]) -> tuple[LocalModel, ...]:
        able: dict[str, bool] = {}

        async def describe(name: str) -> None:
            try:
                async with session.post(f"{self.url}/api/show", json={"model": name}) as answer:
                    told = await answer.json(content_type=None)
            except (ClientError, TimeoutError, ValueError):
                return
            able[name] = _calls_tools(told)

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(describe, name)
        return tuple(LocalModel(name, able.get(name, False)) for name in names)


def ollama_url(given: str | None, environment: Mapping[str, str]) -> str:
    """Where Ollama is: `given`, else what OLLAMA_BASE_URL or OLLAMA_HOST say in any of their spellings."""
    if given == "":
        return ""
    url = given or environment.get("OLLAMA_BASE_URL") or environment.get("OLLAMA_HOST") or DEFAULT_URL
    url = url if "://" in url else f"http://{url}"
    parts = urlsplit(url)
    host = parts.hostname or "127.0.0.1"
    # What a server listens on is not where a client connects to.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    port = _port(parts.netloc) or (443 if parts.scheme == "https" else 11434)
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/').removesuffix('/v1')}"


def _port(netloc: str) -> int | None:
    _, _, port = netloc.rpartition(":")
    return int(port) if port.isdigit() else None


def _names(told: Any) -> list[str] | None:
    """None when this is no Ollama."""
    if not isinstance(told, dict):
        return None
    models = cast(dict[str, Any], told).get("models")
    if not isinstance(models, list):
        return None
    entries = [cast(dict[str, Any], entry) for entry in cast(list[Any], models) if isinstance(entry, dict)]
    return [name for entry in entries if isinstance(name := entry.get("model") or entry.get("name"), str)]


def _calls_tools(told: Any) -> bool:
    """By what it states; an older Ollama states nothing, but its template speaks of tools or does not."""
    if not isinstance(told, dict):
        return False
    facts = cast(dict[str, Any], told)
    if isinstance(capabilities := facts.get("capabilities"), list):
        return "tools" in capabilities
    return ".Tools" in str(facts.get("template", ""))
