"""One record of a registry (`server.json`) as an offer: what it is, and every way to reach it, exactly.

A way that would not be safe, or that Dragoman cannot go, is listed with the reason and cannot be taken.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from dragoman.discovery.inputs import (
    CommandArgument,
    InputTemplate,
    RegistryInput,
    check_runner,
    checked,
    entries,
    pick,
    plain,
    read_arguments,
    read_template,
    table,
    text,
)
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.names import slug_from

WayKind = Literal["npm", "pypi", "oci", "remote"]
_IDENTIFIERS = {
    "npm": re.compile(r"(@[a-z0-9][a-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]{0,213}"),
    "pypi": re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?"),
    "oci": re.compile(r"[a-z0-9][a-z0-9._/-]{0,200}(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?"),
}
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_!-]{0,99}")
_RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker"}
_ALIKE = {
    "npm": {"node", "npm", "bunx", "pnpx"},
    "pypi": {"python", "python3", "pipx", "uv"},
    "oci": {"podman"},
}
_SEPARATORS = {"npm": "@", "pypi": "==", "oci": ":"}
# The runner asks its own registry, never the one a record names; this only tells whether they are the same.
_HOMES = {"npm": {"npmjs"}, "pypi": {"pypi"}, "oci": {"docker", "ghcr", "quay", "mcr"}}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# These change what runs, not how the server behaves.
_STEERING = re.compile(
    r"(LD_|DYLD_|NPM_CONFIG|UV_|PIP_|DOCKER_|GIT_).*|PATH|NODE_OPTIONS|NODE_PATH|PYTHON(PATH|HOME|STARTUP)|BASH_ENV|ENV"
    r"|SHELL|IFS|HOME|PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS",
    re.IGNORECASE,
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type", "te"})
_TRANSPORTS: Mapping[str, Literal["http", "sse"]] = {"streamable-http": "http", "http": "http", "sse": "sse"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMethod:
    """One way to reach a server. `shown` is the exact command or URL, with `<name>` where an input goes."""

    kind: WayKind
    shown: str
    needs: tuple[RegistryInput, ...] = ()
    command: str | None = None
    args: tuple[CommandArgument, ...] = ()
    url: InputTemplate | None = None
    transport: Literal["http", "sse"] | None = None
    named: tuple[tuple[str, InputTemplate], ...] = ()
    warnings: tuple[str, ...] = ()

    def facts(self, answers: Mapping[str, str]) -> dict[str, Any]:
        """What `hub.connectors.add` takes. `InvalidConfig` names an input that is missing or unknown."""
        if unknown := answers.keys() - {need.name for need in self.needs}:
            raise InvalidConfig(
                f"it does not ask for {', '.join(sorted(unknown))[:200]}",
                hint=f"it asks for {', '.join(need.name for need in self.needs) or 'nothing'}",
            )
        values = {name: template.filled(answers) for name, template in self.named}
        given = {name: value for name, value in values.items() if value is not None}
        secret = [name for name, template in self.named if template.is_secret and name in given]
        if self.command:
            args = [word for argument in self.args for word in argument.filled(answers)]
            facts: dict[str, Any] = {"command": self.command, "args": tuple(args), "env": given}
            return facts | {"secret": tuple(f"env:{name}" for name in secret)}
        assert self.url is not None
        facts = {"url": self.url.filled(answers), "transport": self.transport, "headers": given}
        return facts | {"secret": tuple(f"header:{name}" for name in secret)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryServer:
    """A server as a registry describes it. `refused` tells why a way is not among `ways`."""

    name: str
    title: str = ""
    description: str = ""
    version: str = ""
    status: str = "active"
    is_latest: bool = True
    website: str = ""
    ways: tuple[InstallMethod, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name that a connector made of it gets unless a person chooses another."""
        return slug_from(self.name.rpartition("/")[2])


def read_server(record: Mapping[str, Any]) -> RegistryServer:
    """Both shapes: the record itself, and `{"server": record, "_meta": …}`."""
    facts = table(record.get("server")) or dict(record)
    meta = {**table(facts.get("_meta")), **table(record.get("_meta"))}
    official = table(meta.get("io.modelcontextprotocol.registry/official"))
    name = plain(facts.get("name"), 200)
    if not name:
        raise InvalidConfig("a record has no name")
    ways: list[InstallMethod] = []
    refused: list[str] = []
    readers = [(_read_package, item) for item in entries(facts.get("packages"))[:20]]
    readers += [(_read_remote, item) for item in entries(facts.get("remotes"))[:20]]
    for read, item in readers:
        try:
            ways.append(read(table(item)))
        except DragomanError as error:
            refused.append(f"{_label(table(item))}: {error.message}")
    return RegistryServer(
        name=name,
        title=plain(facts.get("title"), 100),
        description=plain(facts.get("description")),
        version=plain(facts.get("version") or table(pick(facts, "versionDetail")).get("version"), 100),
        status=plain(official.get("status") or facts.get("status"), 20) or "active",
        is_latest=official.get("isLatest", official.get("is_latest")) is not False,
        website=plain(pick(facts, "websiteUrl") or table(facts.get("repository")).get("url"), 300),
        ways=tuple(ways),
        refused=tuple(refused),
    )


def _label(facts: Mapping[str, Any]) -> str:
    return plain(pick(facts, "registryType") or facts.get("type"), 30) or "a way"


def _read_package(facts: dict[str, Any]) -> InstallMethod:
    kind = plain(pick(facts, "registryType") or pick(facts, "registryName"), 30)
    if kind not in ("npm", "pypi", "oci"):
        raise InvalidConfig("Dragoman runs packages of npm, PyPI and container registries")
    transport = table(facts.get("transport")).get("type", "stdio")
    if transport != "stdio":
        raise InvalidConfig(
            f"it starts a server that speaks {plain(transport, 30)}; Dragoman starts stdio servers"
        )
    _check_home(kind, text(facts, "registryBaseUrl"))
    runtime = read_arguments(pick(facts, "runtimeArguments"))
    runner = _runner(kind, text(facts, "runtimeHint"), has_arguments=bool(runtime))
    check_runner(runner, runtime)
    variables = tuple(
        _read_variable(table(item)) for item in entries(pick(facts, "environmentVariables"))[:50]
    )
    package, warnings = _package(kind, facts)
    args = (
        *_standing(kind, runtime, variables),
        *runtime,
        _fixed(package),
        *read_arguments(pick(facts, "packageArguments")),
    )
    return InstallMethod(
        kind=kind,
        shown=" ".join([runner, *(argument.shown for argument in args)]),
        needs=_needs([*(argument.value for argument in args), *(template for _, template in variables)]),
        command=runner,
        args=args,
        named=variables,
        warnings=warnings,
    )


def _package(kind: str, facts: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The package with its exact version, as the runner wants it."""
    identifier = str(facts.get("identifier") or facts.get("name") or "")
    if not _IDENTIFIERS[kind].fullmatch(identifier) or ".." in identifier:
        raise InvalidConfig(f"{plain(identifier, 60)!r} is no name of a package")
    version = text(facts, "version")
    has_tag = kind == "oci" and ":" in identifier.rpartition("/")[2]
    if version is None or version == "latest" or has_tag:
        warnings = () if has_tag else ("no version is given: what runs may change from day to day",)
        return identifier, warnings
    if not _VERSION.fullmatch(version):
        raise InvalidConfig(f"{plain(version, 60)!r} is no exact version")
    return f"{identifier}{_SEPARATORS[kind]}{version}", ()


def _runner(kind: str, hint: str | None, *, has_arguments: bool) -> str:
    """Ours, where the hint names it or one that does the same; arguments are for the one it names."""
    runner = _RUNNERS[kind]
    if hint not in (None, runner) and (has_arguments or hint not in _ALIKE[kind]):
        raise InvalidConfig(f"it wants to be run by {plain(hint, 40)!r}; Dragoman runs it by {runner}")
    return runner


def _check_home(kind: str, base: str | None) -> None:
    if base and not _HOMES[kind] & set((urlsplit(base).hostname or base).split(".")):
        raise InvalidConfig(f"its package comes from another place than {_RUNNERS[kind]} takes it from")


def _standing(
    kind: str, runtime: tuple[CommandArgument, ...], variables: tuple[tuple[str, InputTemplate], ...]
) -> list[CommandArgument]:
    """What a runner always needs and the record does not say."""
    said = {argument.flag or (argument.value.text if argument.value else "") for argument in runtime}
    if kind == "npm":
        return [] if said & {"-y", "--yes"} else [_fixed("-y")]
    if kind == "pypi":
        return []
    words = [] if "run" in said else ["run"]
    words += [] if said & {"-i", "--interactive"} else ["-i"]
    words += [] if "--rm" in said else ["--rm"]
    # By name only: the value stays in the environment, out of the list of processes.
    return [_fixed(word) for word in [*words, *(part for name, _ in variables for part in ("-e", name))]]


def _fixed(word: str) -> CommandArgument:
    return CommandArgument(value=InputTemplate(text=word))


def _read_variable(facts: dict[str, Any]) -> tuple[str, InputTemplate]:
    name = str(facts.get("name") or "")
    if not _VARIABLE.fullmatch(name):
        raise InvalidConfig(f"{plain(name, 60)!r} is no name of a variable")
    if _STEERING.fullmatch(name):
        raise InvalidConfig(f"it wants to set {name}, which would change what runs")
    return name, read_template(facts, name)


def _read_remote(facts: dict[str, Any]) -> InstallMethod:
    transport = _TRANSPORTS.get(str(facts.get("type") or pick(facts, "transportType") or "streamable-http"))
    if transport is None:
        raise InvalidConfig("Dragoman speaks streamable-http and sse")
    url = read_template({**facts, "value": facts.get("url"), "isRequired": True}, "url")
    _check_url(url.text)
    headers = tuple(_read_header(table(item)) for item in entries(facts.get("headers"))[:50])
    return InstallMethod(
        kind="remote",
        shown=url.shown,
        needs=_needs([url, *(template for _, template in headers)]),
        url=url,
        transport=transport,
        named=headers,
    )


def _check_url(url: str) -> None:
    checked(url)
    try:
        parts = urlsplit(re.sub(r"\{[^}]*\}", "x", url))
        host = parts.hostname
    except ValueError:
        raise InvalidConfig("its URL cannot be read") from None
    is_near = host in ("127.0.0.1", "localhost", "::1")
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise InvalidConfig("its URL must begin with https:// and name a host")
    if parts.scheme == "http" and not is_near:
        raise InvalidConfig("its URL is not encrypted (http://)")


def _read_header(facts: dict[str, Any]) -> tuple[str, InputTemplate]:
    name = str(facts.get("name") or "")
    if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
        raise InvalidConfig(f"{plain(name, 60)!r} is no header that a server may ask for")
    return name, read_template(facts, name)


def _needs(templates: list[InputTemplate | None]) -> tuple[RegistryInput, ...]:
    """Every input once; one that is asked for in an optional place is optional."""
    needs: dict[str, RegistryInput] = {}
    for template in templates:
        for one in template.inputs if template else ():
            is_required = template is not None and template.is_required and one.default is None
            needs.setdefault(one.name, replace(one, is_required=is_required))
    return tuple(needs.values())
