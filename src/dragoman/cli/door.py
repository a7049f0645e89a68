"""The one way from a command to a hub: the REST shape, over HTTP to a running service or in this process.

Light: what a hub needs is imported only when there is no service to ask.
"""

import fcntl
import http.client
import json
import os
import ssl
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from dragoman import collector
from dragoman.errors import DragomanError, InvalidConfig, Unauthenticated, Unreachable
from dragoman.settings import Settings

_HEALTH_LIMIT = 2.0
_START_LIMIT = 20.0
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class DoorResponse:
    status: int
    content_type: str
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(slots=True)
class Refused(Exception):
    """The door said no. `problem` is the RFC 9457 document."""

    problem: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunningService:
    """Where a service is, and the token for it."""

    url: str
    token: str = field(repr=False)


class Door(Protocol):
    service: RunningService | None

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The JSON of the answer. Raises `Refused` for a problem."""
        ...

    def fetch(self, path: str, **query: Any) -> DoorResponse:
        """The answer as it is, for what is no JSON."""
        ...

    def follow(
        self, path: str, after: int = 0, body: Any = None, **query: Any
    ) -> AbstractContextManager[Iterator[bytes]]:
        """The lines of a stream of events from a number on, until it ends or is closed.

        With a body it is that of a request whose answer is events.
        """
        ...


def path_of(*parts: str) -> str:
    """`/api/…` with every part escaped."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)


def accepted(answer: DoorResponse) -> DoorResponse:
    if answer.status < 400:
        return answer
    try:
        problem = answer.value
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        problem = {"code": "protocol_fault", "detail": f"the service answered with status {answer.status}"}
    raise Refused(problem)  # pyright: ignore[reportUnknownArgumentType]


@contextmanager
def open_door(settings: Settings) -> Generator[Door]:
    if service := find_service(settings):
        yield HttpDoor(service)
    else:
        # The whole stack: only here, so that a command to a service starts at once.
        with collector.paused():
            from dragoman.cli.in_process import open_in_process

        with open_in_process(settings) as door:
            yield door


def find_service(settings: Settings, environment: Mapping[str, str] = os.environ) -> RunningService | None:
    """The service that DRAGOMAN_URL names, or the one that runs for this home."""
    limit = time.monotonic() + _START_LIMIT
    while (service := announced_service(settings, environment)) is None:
        if url := environment.get("DRAGOMAN_URL"):
            raise Unreachable(
                f"no service answers at {url.rstrip('/')}",
                hint="check DRAGOMAN_URL, or unset it to use this home",
            )
        if not _holds_home(settings):
            return None
        # It has the home, but does not answer yet, or does no more: beside it nobody may write.
        if time.monotonic() > limit:
            raise Unreachable(
                f"a service holds {settings.home} but does not answer", hint="wait for it, or stop it"
            )
        time.sleep(0.05)
    return service


def announced_service(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> RunningService | None:
    """The service that can be asked right now; nobody waits for one that is about to be there."""
    if url := environment.get("DRAGOMAN_URL"):
        service = RunningService(url.rstrip("/"), _token(settings, environment))
        return service if is_alive(service) else None
    return _announced(settings, environment)


def _announced(settings: Settings, environment: Mapping[str, str]) -> RunningService | None:
    try:
        facts = json.loads(settings.server_file.read_text())
        service = RunningService(facts["url"], _token(settings, environment))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return service if is_alive(service) else None


def _holds_home(settings: Settings) -> bool:
    """Whether a service lives for this home: its lock is the kernel's and ends with its process."""
    try:
        with settings.server_lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def is_alive(service: RunningService) -> bool:
    try:
        with closing(_connection(service, _HEALTH_LIMIT)) as connection:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


class HttpDoor:
    """`limit` is how many seconds a request waits for its answer.

    Without it there is none: the deadline of a call is the connector's, and Ctrl-C ends the wait.
    """

    def __init__(self, service: RunningService, limit: float | None = None) -> None:
        self.service: RunningService | None = service
        self._url = service.url
        self._made = service
        self._limit = limit

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return accepted(self._exchange(method, path, body, query)).value

    def fetch(self, path: str, **query: Any) -> DoorResponse:
        return accepted(self._exchange("GET", path, None, query))

    @contextmanager
    def follow(self, path: str, after: int = 0, body: Any = None, **query: Any) -> Generator[Iterator[bytes]]:
        headers = _headers(self._made) | ({"Last-Event-ID": str(after)} if after else {})
        headers["Accept"] = EVENTS
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        with closing(_connection(self._made, None)) as connection:
            with self._explained():
                connection.request(method, with_query(path, query), data, headers)
                response = connection.getresponse()
                if response.status >= 400:
                    accepted(DoorResponse(response.status, "", response.read()))
            yield self._lines(response)

    def _lines(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        with self._explained():
            while line := response.readline():
                yield line

    def _exchange(self, method: str, path: str, body: Any, query: Mapping[str, Any]) -> DoorResponse:
        data = None if body is None else json.dumps(body).encode()
        with closing(_connection(self._made, self._limit)) as connection, self._explained():
            connection.request(method, with_query(path, query), data, _headers(self._made))
            response = connection.getresponse()
            return DoorResponse(response.status, response.headers.get("Content-Type", ""), response.read())

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"the service at {self._url} did not answer: {error or type(error).__name__}",
                hint="has it just been stopped? start it again: dragoman serve",
            ) from None


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """What is None is left out; a list is said word by word."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def events_in(lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and data of each event of a stream."""
    kind = ""
    for line in lines:
        if line.startswith(b"event: "):
            kind = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            yield kind, json.loads(line[6:])


def _headers(service: RunningService) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {service.token}",
        "Content-Type": "application/json",
        "Dragoman-Hints": "command",
    }


def _connection(service: RunningService, timeout: float | None) -> http.client.HTTPConnection:
    parts = urlsplit(service.url)
    if parts.scheme == "https" and parts.hostname:
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=ssl.create_default_context()
        )
    if parts.scheme == "http" and parts.hostname:
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    raise InvalidConfig("DRAGOMAN_URL must begin with http:// or https:// and name a host")


def _token(settings: Settings, environment: Mapping[str, str]) -> str:
    """What DRAGOMAN_TOKEN holds (a key will do as well), or the operator's: given, or in the home."""
    if given := environment.get("DRAGOMAN_TOKEN"):
        return given
    if settings.operator_token:
        return settings.operator_token[0]
    try:
        return settings.token_file.read_text().strip()
    except FileNotFoundError:
        raise Unauthenticated(
            "there is no token for the service",
            hint="set DRAGOMAN_TOKEN to an API key, or to the token of the service; a service that was given"
            " DRAGOMAN_OPERATOR_TOKEN has no file of its own",
        ) from None


def problem_of(error: DragomanError) -> dict[str, Any]:
    """An error of this process in the shape of a problem."""
    return {
        "code": error.code,
        "detail": error.message,
        "hint": error.command_hint,
        "cause": error.cause,
        "retryable": error.retryable,
    }
