"""Security schemes and servers, as a document of either version declares them, for `operation_plan`."""

import re
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from dragoman.connections.openapi.operation_plan import SecurityScheme
from dragoman.connections.openapi.parsing import OpenApiDocument
from dragoman.connections.openapi.references import References
from dragoman.connections.openapi.untrusted_json import (
    Object,
    OperationFault,
    as_list,
    as_object,
    as_text,
    is_list,
)

_BEARERS = frozenset({"oauth2", "openidconnect"})
Choices = tuple[tuple[SecurityScheme, ...], ...]


class SecuritySchemes:
    """Of one document: which credentials an operation wants."""

    def __init__(self, document: OpenApiDocument, references: References) -> None:
        root = document.root
        declared = root.get("securityDefinitions") or as_object(root.get("components")).get("securitySchemes")
        self._known: dict[str, SecurityScheme] = {}
        for name, raw in as_object(declared).items():
            try:
                scheme = _scheme(references.followed(raw))
            except OperationFault:
                continue
            if scheme is not None:
                self._known[name] = scheme
        self._general = root.get("security")

    def choices(self, operation: Object) -> tuple[Choices, bool]:
        """Sets of schemes of which one must be fulfilled, and whether the document insists on one.

        Where a document declares schemes but never says what needs them, any of them may be meant.
        """
        said = operation.get("security", self._general)
        if not is_list(said):
            return tuple((scheme,) for scheme in self._known.values()), False
        found = [
            tuple(self._known[name] for name in as_object(choice) if name in self._known) for choice in said
        ]
        return tuple(choice for choice in found if choice), bool(found) and all(found)

    def covered(self, choices: Choices) -> frozenset[str]:
        """Parameters that are credentials: they are not asked of a caller."""
        return frozenset(
            f"{one.place}:{one.name}" for choice in choices for one in choice if one.kind == "apikey"
        )


def _scheme(raw: Object) -> SecurityScheme | None:
    kind, scheme = as_text(raw.get("type")).lower(), as_text(raw.get("scheme")).lower()
    if kind == "apikey" and as_text(raw.get("name")):
        place = raw.get("in")
        if place == "query":
            return SecurityScheme(kind="apikey", place="query", name=raw["name"])
        return SecurityScheme(
            kind="apikey", place="cookie" if place == "cookie" else "header", name=raw["name"]
        )
    if kind == "basic" or (kind == "http" and scheme == "basic"):
        return SecurityScheme(kind="basic")
    if kind in _BEARERS or (kind == "http" and scheme == "bearer"):
        return SecurityScheme(kind="bearer")
    return None


class ServiceServers:
    """Of one document: where an operation is."""

    def __init__(self, document: OpenApiDocument, source: str | None) -> None:
        self._document = document
        self._source = source

    def server_of(self, item: Object, operation: Object) -> str | None:
        """The nearest declaration, its variables filled in, relative as it stands; None without one."""
        if self._document.version == "2.0":
            return self._swagger(operation)
        for holder in (operation, item, self._document.root):
            if servers := as_list(holder.get("servers")):
                return _filled(as_object(servers[0]))
        return None

    def _swagger(self, operation: Object) -> str | None:
        root = self._document.root
        host, path = as_text(root.get("host")), as_text(root.get("basePath"))
        if not host:
            return path or None
        schemes = [
            one
            for one in as_list(operation.get("schemes") or root.get("schemes"))
            if one in ("http", "https")
        ]
        return f"{_best_scheme(schemes, self._source)}://{host}/{path.lstrip('/')}"


def resolved(server: str | None, base: str | None, configured: str | None) -> str | None:
    """The address that paths are added to; None when nothing says where the service is.

    What is configured is where the service is, whatever the document says. Where it names a host and no path,
    the path is that of the document's relative server.
    """
    if configured is not None:
        is_relative = server is not None and not urlsplit(server).netloc
        names_path = urlsplit(configured).path.strip("/") != ""
        takes_path = is_relative and server and not names_path
        return (urljoin(configured, server) if takes_path else configured).rstrip("/")
    if server is not None and urlsplit(server).netloc and urlsplit(server).scheme:
        return server.rstrip("/")
    if base is None:
        return None
    return urljoin(base, server or "").rstrip("/")


def _filled(server: Object) -> str:
    variables = as_object(server.get("variables"))

    def value(match: re.Match[str]) -> str:
        variable = as_object(variables.get(match[1]))
        choices: Sequence[object] = as_list(variable.get("enum"))
        return str(variable.get("default", choices[0] if choices else match[0]))

    return re.sub(r"\{([^{}]+)\}", value, as_text(server.get("url")).strip())


def _best_scheme(schemes: list[str], source: str | None) -> str:
    """As the document itself was fetched, where it allows that; else the safer one."""
    own = urlsplit(source).scheme if source else ""
    if own in schemes or (not schemes and own):
        return own
    return "https" if "https" in schemes or not schemes else schemes[0]
