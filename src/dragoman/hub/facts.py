"""What people say of a connector, turned into its name, its configuration and its secrets. Writes nothing."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import SecretStr

from dragoman.connections.environment import child_environment
from dragoman.connections.process import find_program
from dragoman.connector import Configuration, split_secrets
from dragoman.errors import InvalidConfig
from dragoman.names import check_slug, slug_from


def named(name: str, aliases: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The slug and aliases of a new connector: `email_mcp` becomes `email-mcp` and stays an alias."""
    if (
        "_" in name
        and name.replace("_", "").replace("-", "").isalnum()
        and name.isascii()
        and name[0].isalpha()
    ):
        return check_slug(slug_from(name)), tuple(dict.fromkeys((name, *aliases)))
    return check_slug(name), tuple(dict.fromkeys(aliases))


def configured(
    facts: Mapping[str, Any], kept: Mapping[str, SecretStr]
) -> tuple[Configuration, dict[str, SecretStr]]:
    """The configuration without its secrets, and the secrets: those kept and those just given."""
    given = {name: value for name, value in facts.items() if value is not None}
    marked = frozenset[str](given.pop("secret", ()))
    bearer, api_key = given.pop("bearer", None), given.pop("api_key", None)
    header = given.pop("api_key_header", None)
    secrets = dict(kept)
    if isinstance(values := given.pop("secrets", None), Mapping):
        secrets |= {name: SecretStr(str(value)) for name, value in cast("Mapping[str, Any]", values).items()}
    if bearer and api_key:
        raise InvalidConfig("give a bearer token or an API key, not both")
    if bearer or api_key:
        given["auth"] = {"kind": "bearer" if bearer else "apikey"} | ({"header": header} if header else {})
        secrets["auth"] = SecretStr(str(bearer or api_key))
    env, headers, found = split_secrets(_words(given, "env"), _words(given, "headers"), marked)
    secrets |= found
    given |= {"env": env, "headers": headers, "secrets": tuple(sorted(secrets))}
    return Configuration.checked(given), secrets


def merged(
    before: Configuration, secrets: Mapping[str, SecretStr], changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, SecretStr]]:
    """The old fields and secrets with the changes over them; in env and headers, None takes a name away.

    A new command takes the place of a url and all that belongs to it, and the other way round.
    """
    facts = before.model_dump(mode="python", exclude_unset=True)
    kept = dict(secrets)
    if (changes.get("url") and before.command) or (changes.get("command") and before.url):
        for field in ("command", "args", "env", "cwd", "url", "headers", "auth", "transport"):
            facts.pop(field, None)
        kept.clear()
    for field, prefix in (("env", "env:"), ("headers", "header:")):
        words: dict[str, str | None] = dict(changes.get(field) or {})
        kept = {name: value for name, value in kept.items() if name.removeprefix(prefix) not in words}
        facts[field] = {
            name: value for name, value in {**facts.get(field, {}), **words}.items() if value is not None
        }
    facts |= {
        name: value for name, value in changes.items() if value is not None and name not in ("env", "headers")
    }
    return facts, kept


def _words(facts: Mapping[str, Any], field: str) -> dict[str, str]:
    value: Any = facts.get(field) or {}
    if not isinstance(value, dict):
        raise InvalidConfig(f"{field} must be a table of names and values")
    return {str(name): str(word) for name, word in cast("dict[Any, Any]", value).items()}


def check_program(configuration: Configuration) -> None:
    """`InvalidConfig` when there is no such program here."""
    if configuration.command:
        find_program(
            configuration.command, child_environment(os.environ, configuration.env), configuration.cwd
        )
