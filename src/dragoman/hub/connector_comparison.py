"""What a file says of a connector, held against the one that exists. Names what differs, never a value."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import SecretStr

from dragoman.connector import Configuration, Connector
from dragoman.formats import FoundConnector

Configured = tuple[Configuration, Mapping[str, SecretStr]]


def differences(
    existing: Connector, stored: Mapping[str, SecretStr], found: FoundConnector, wanted: Configured
) -> tuple[str, ...]:
    """Fields such as `args`, `env.MODE`, `secret env:TOKEN`. A secret that the file leaves out is none."""
    configuration, secrets = wanted
    differing = [*_fields("", _plain(existing.configuration), _plain(configuration))]
    for name in sorted(stored.keys() | secrets.keys()):
        if name not in found.missing and _value(stored, name) != _value(secrets, name):
            differing.append(f"secret {name}")
    if found.description and found.description != existing.description:
        differing.append("description")
    if found.enabled != existing.enabled:
        differing.append("enabled")
    if not {*found.aliases} <= {existing.slug, *existing.aliases}:
        differing.append("aliases")
    return tuple(differing)


def _plain(configuration: Configuration) -> dict[str, Any]:
    """As it works, not as it was written: a field that says its default is no different from one left out."""
    facts = configuration.model_dump(mode="json", exclude={"secrets"})
    return {**facts, "transport": configuration.wire if configuration.kind == "mcp" else None}


def _fields(prefix: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(one.keys() | other.keys()):
        before, after = one.get(name), other.get(name)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict) and not prefix:
            yield from _fields(f"{name}.", cast("dict[str, Any]", before), cast("dict[str, Any]", after))
        else:
            yield f"{prefix}{name}"


def _value(secrets: Mapping[str, SecretStr], name: str) -> str | None:
    return secrets[name].get_secret_value() if name in secrets else None
