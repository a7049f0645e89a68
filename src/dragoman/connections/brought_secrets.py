"""What Dragoman brings to a server that nobody else may see: the values, and a redactor that knows them."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import quote, unquote

from pydantic import SecretStr

from dragoman.connections.bearer import Bearer
from dragoman.connections.environment import expanded, has_reference
from dragoman.connections.oauth.clients import GIVEN_SECRET, is_made_here
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig
from dragoman.secret_recognition import Masking, is_secret_name
from dragoman.telemetry.redaction import SHORTEST_IN_RESULTS, Redactor

_SCHEMES = ("bearer", "basic", "token", "apikey")


def redactor_for(
    connector: Connector, secrets: Mapping[str, SecretStr], environment: Mapping[str, str] | None
) -> Redactor:
    """For all that the server of one connection says."""
    redactor = Redactor(SHORTEST_IN_RESULTS)
    redactor.register(brought_values(connector, secrets, environment))
    return redactor


def brought_values(
    connector: Connector, secrets: Mapping[str, SecretStr], environment: Mapping[str, str] | None
) -> Iterable[str]:
    """Every secret value in the words in which a server may give it back."""
    for name, value in secrets.items():
        if not is_made_here(name):
            yield from _telling_parts(connector, name, value.get_secret_value())
            yield from _from_environment(value.get_secret_value(), environment)
    configuration = connector.configuration
    masking = Masking()
    with suppress(InvalidConfig):  # a variable that is not set is told when the connection opens
        masking.words([expanded(word, environment) for word in configuration.args])
        for address in (configuration.url, configuration.openapi, configuration.server):
            masking.text(expanded(address or "", environment))
    for name, text in (*configuration.env.items(), *configuration.headers.items()):
        if is_secret_name(name):
            yield from _from_environment(text, environment)
        else:
            masking.text(text)
    for value in masking.secrets.values():
        yield from _decoded(value.get_secret_value())


class WatchedBearer:
    """Fills `Bearer`: tokens change, and the redactor knows each before a request carries it."""

    def __init__(self, bearer: Bearer, redactor: Redactor) -> None:
        self._bearer = bearer
        self._redactor = redactor
        self._known: Mapping[str, str] = {}

    async def headers(self) -> Mapping[str, str]:
        headers = await self._bearer.headers()
        if headers is not self._known:
            self._known = headers
            self._redactor.register(part for value in headers.values() for part in _of_header(value))
        return headers

    async def rejected(self, headers: Mapping[str, str], challenges: Sequence[str] = ()) -> bool:
        return await self._bearer.rejected(headers, challenges)


def watched(bearer: Bearer | None, redactor: Redactor) -> Bearer | None:
    return None if bearer is None else WatchedBearer(bearer, redactor)


def _from_environment(text: str, environment: Mapping[str, str] | None) -> Iterable[str]:
    if environment is not None and has_reference(text):
        with suppress(InvalidConfig):
            yield from _of_header(expanded(text, environment))


def _telling_parts(connector: Connector, name: str, value: str) -> Iterable[str]:
    """The value, and the part of `Bearer TOKEN` or `user:password` that tells as much by itself."""
    yield from _decoded(value)
    if name.startswith("header:"):
        yield from _of_header(value)
    if name.startswith("env:"):
        masking = Masking()
        masking.text(value)
        yield from (part.get_secret_value() for part in masking.secrets.values())
    if name == "auth" and connector.configuration.auth.kind == "basic":
        yield value.partition(":")[2]
        yield b64encode(value.encode()).decode()  # as it is sent: a server may encode that once more
    if name == GIVEN_SECRET:  # as a token endpoint is told of it, in base64
        yield f"{quote(connector.configuration.auth.client_id or '', safe='')}:{quote(value, safe='')}"


def _of_header(value: str) -> Iterable[str]:
    yield value
    scheme, _, token = value.partition(" ")
    if scheme.lower() in _SCHEMES:
        yield token


def _decoded(value: str) -> Iterable[str]:
    """Also as a server sees what an address holds."""
    yield value
    if "%" in value:
        yield unquote(value)
