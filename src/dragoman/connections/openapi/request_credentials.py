"""Which credentials a request carries, and to which hosts. Incoming headers of a client never come here.

A document may name any server; only those that the person named get credentials: where the document
is from, and the configured `server`.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from urllib.parse import quote

from pydantic import SecretStr
from yarl import URL

from dragoman.connections.environment import expanded
from dragoman.connections.openapi.document_reader import address, is_address
from dragoman.connections.openapi.operation_plan import OperationPlan, SecurityScheme
from dragoman.connections.openapi.requests import Pair, ServiceRequest
from dragoman.connector import Configuration
from dragoman.errors import InvalidConfig, NeedsAuth

_OWN_KEY = "X-API-Key"  # the header of an API key when nobody said which


@dataclass(frozen=True, slots=True)
class ServiceCredentials:
    """Everything secret that one connector has, and whom it may be shown. `repr` shows nothing."""

    kind: str
    token: SecretStr | None
    headers: Mapping[str, SecretStr]
    own: SecurityScheme | None
    hosts: tuple[URL, ...]

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        secrets: Mapping[str, SecretStr],
        environment: Mapping[str, str] | None,
    ) -> "ServiceCredentials":
        headers = {
            name: SecretStr(expanded(value, environment)) for name, value in configuration.headers.items()
        }
        headers |= {
            name.removeprefix("header:"): value
            for name, value in secrets.items()
            if name.startswith("header:")
        }
        named = [expanded(one, environment) for one in (configuration.openapi, configuration.server) if one]
        hosts = [address(one) for one in named if is_address(one)]
        token = secrets.get("auth")
        if token is not None:
            is_ours = "auth" not in configuration.personal
            token = SecretStr(expanded(token.get_secret_value(), environment if is_ours else None))
        return cls(configuration.auth.kind, token, headers, _own_scheme(configuration), tuple(hosts))

    def may_be_shown_to(self, target: URL) -> bool:
        """Same scheme, host and port as one that the person named, or the same host by https."""
        return any(
            target.origin() == host.origin()
            or (
                target.host == host.host
                and target.scheme == "https"
                and host.is_default_port()
                and target.is_default_port()
            )
            for host in self.hosts
        )

    @property
    def is_empty(self) -> bool:
        return self.token is None and not self.headers and self.kind != "oauth"

    def with_headers(self, headers: Mapping[str, str]) -> "ServiceCredentials":
        """The same, with a credential that is in force only now."""
        own = {name: SecretStr(value) for name, value in headers.items()}
        return replace(self, headers={**self.headers, **own}) if own else self

    def addition(self, operation: OperationPlan, target: URL) -> "AddedCredentials":
        """What every request of this operation carries; nothing where the target must not see it."""
        if self.is_empty:
            return AddedCredentials()
        if not self.may_be_shown_to(target):
            if operation.wants_credentials:
                raise NeedsAuth(
                    f"{operation.method} {operation.path} needs a credential, and the document leads to"
                    f" {target.origin()}, which is not where the document is from",
                    hint=f"if that host is meant, set the connector's server to {target.origin()}",
                )
            return AddedCredentials(is_withheld=True)
        request = ServiceRequest("", "")
        for name, value in self.headers.items():
            _set_header(request.headers, name, value.get_secret_value())
        if self.token is not None:
            for scheme in self._schemes(operation):
                _apply(request, scheme, self.token.get_secret_value())
        return AddedCredentials(request.headers, tuple(request.query), tuple(request.cookies))

    def for_document(self) -> tuple[dict[str, str], str]:
        """Headers and query to fetch the document with: the connector's own ways only."""
        request = ServiceRequest("GET", "/")
        for name, value in self.headers.items():
            _set_header(request.headers, name, value.get_secret_value())
        if self.token is not None and self.kind != "none":
            _apply(
                request,
                self.own or SecurityScheme(kind="apikey", name=_OWN_KEY),
                self.token.get_secret_value(),
            )
        if request.cookies:
            request.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in request.cookies)
        return request.headers, "&".join(f"{name}={value}" for name, value in request.query)

    def _schemes(self, operation: OperationPlan) -> Iterable[SecurityScheme]:
        """The connector's own way where it has one; else the document's choice that suits best."""
        if self.own is not None:
            return (self.own,)
        given = {name.lower() for name in self.headers}
        for kind in ("apikey", "bearer", "basic"):
            for choice in operation.security:
                left = [one for one in choice if one.name.lower() not in given or one.place != "header"]
                if any(one.kind == kind for one in left):
                    return left
        return (SecurityScheme(kind="apikey", name=_OWN_KEY),)


@dataclass(frozen=True, slots=True)
class AddedCredentials:
    """Credentials as they stand in a request. `is_withheld` when the target may not see those there are."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    query: tuple[Pair, ...] = field(default=(), repr=False)
    cookies: tuple[Pair, ...] = field(default=(), repr=False)
    is_withheld: bool = False

    def add_to(self, request: ServiceRequest) -> None:
        """Over what arguments may have put in the same places."""
        for name, value in self.headers.items():
            _set_header(request.headers, name, value)
        if self.query:
            request.query = _over(request.query, self.query)
        if self.cookies:
            request.cookies = _over(request.cookies, self.cookies)


def _over(given: list[Pair], own: tuple[Pair, ...]) -> list[Pair]:
    names = {name for name, _ in own}
    return [pair for pair in given if pair[0] not in names] + [*own]


def check_target(target: URL, hosts: tuple[URL, ...]) -> None:
    """A document from elsewhere may not lead to this machine or the network around it."""
    if target.host is None or target.scheme not in ("http", "https"):
        raise InvalidConfig(f"the document leads to {target!s:.200}, which is no address of a service")
    is_foreign = any(not _is_inside(host.host or "") for host in hosts)
    if is_foreign and _is_inside(target.host) and all(target.host != host.host for host in hosts):
        raise InvalidConfig(
            f"the document leads to {target.origin()}, inside the network of this machine",
            hint=f"if that is meant, set the connector's server to {target.origin()}",
        )


def _is_inside(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False


def _own_scheme(configuration: Configuration) -> SecurityScheme | None:
    """None when only the document can say: an API key without a header of its own, or no kind at all."""
    auth = configuration.auth
    if auth.kind == "bearer":
        return SecurityScheme(kind="bearer")
    if auth.kind == "basic":
        return SecurityScheme(kind="basic")
    if auth.kind == "apikey" and (auth.header != _OWN_KEY or auth.place != "header"):
        return SecurityScheme(kind="apikey", place=auth.place, name=auth.header)
    return None


def _apply(request: ServiceRequest, scheme: SecurityScheme, token: str) -> None:
    if scheme.kind == "bearer":
        _set_header(request.headers, "Authorization", f"Bearer {token}")
    elif scheme.kind == "basic":
        pair = token if ":" in token else f"{token}:"  # a key alone is a user without a password
        _set_header(request.headers, "Authorization", f"Basic {b64encode(pair.encode()).decode()}")
    elif scheme.place == "query":
        request.query.append((quote(scheme.name, safe=""), quote(token, safe="")))
    elif scheme.place == "cookie":
        request.cookies.append((scheme.name, quote(token, safe="")))
    else:
        _set_header(request.headers, scheme.name, token)


def _set_header(headers: dict[str, str], name: str, value: str) -> None:
    """Over what an argument may have put there under any spelling of the name."""
    lowered = name.lower()
    for known in [known for known in headers if known.lower() == lowered]:
        del headers[known]
    headers[name] = value
