"""What people say of a connector, turned into its name, its configuration and its secrets. Writes nothing."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from pydantic import SecretStr

from dragoman.connections.environment import child_environment
from dragoman.connections.oauth.clients import is_made_here
from dragoman.connections.process import find_program
from dragoman.connector import Configuration, SplitConfiguration, split_secrets
from dragoman.errors import InvalidConfig
from dragoman.names import check_slug, slug_from
from dragoman.secret_recognition import PREFIX, is_reference, names_in
from dragoman.setting import settings_of

_WAYS = ("command", "url", "openapi")
_OF_ONE_WAY = frozenset(one.path[0] for one in settings_of(Configuration) if one.setting.ways)
_NESTED = frozenset(one.path[0] for one in settings_of(Configuration) if len(one.path) > 1)
_TABLES = {"env": "env:", "headers": "header:"}
_CREDENTIALS = {"bearer": "bearer", "api_key": "apikey", "basic": "basic"}
_OF_OAUTH = frozenset({"flow", "client_id", "issuer", "scopes"})
_WITH_USER = re.compile(
    r"(?P<scheme>https?://)(?P<user>[^/?#\s:@]*):(?P<password>[^/?#\s]+)@(?P<rest>.+)", re.IGNORECASE
)


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


def configured(facts: Mapping[str, Any], kept: Mapping[str, SecretStr]) -> SplitConfiguration:
    """What is kept of what a door was given: the configuration, and the secrets, kept and just given."""
    given = {name: _without_nulls(value) for name, value in facts.items() if value is not None}
    marked = frozenset[str](given.pop("secret", ()))
    secrets = dict(kept)
    if given.get("openapi"):
        given.setdefault("kind", "openapi")
    if isinstance(values := given.pop("secrets", None), Mapping):
        secrets |= {name: SecretStr(str(value)) for name, value in cast("Mapping[str, Any]", values).items()}
    personal = _names(given, "personal")
    secrets = {name: value for name, value in secrets.items() if name not in personal}
    told: list[str] = []
    if _take_user(given, secrets):
        told.append("The password in the URL is kept as a secret")
    if (credential := _taken_credential(given)) is not None:
        secrets["auth"] = credential
    if client_secret := given.pop("oauth_client_secret", None):
        secrets["oauth_client"] = _secret(client_secret)
    if "auth" in personal and given.get("url"):
        given.setdefault("auth", {"kind": "bearer"})
    tables = {name: _words(given, name) for name in _TABLES}
    split = split_secrets(Configuration.checked({**given, **tables}), marked)
    configuration, secrets = split.configuration, secrets | split.secrets
    if both := personal & secrets.keys():
        raise InvalidConfig(
            f"{', '.join(sorted(both))} is given for all and wanted of each user", hint="choose one of them"
        )
    if configuration.kind == "native":
        # A second way to the app's own functions, past what was set for the first.
        raise InvalidConfig("native tools come with the program: nobody adds them", hint="leave kind out")
    gone = {name for name in secrets if name.startswith(PREFIX)} - configuration.wanted_secrets
    secrets = {name: value for name, value in secrets.items() if name not in gone}
    listed = tuple(sorted(name for name in secrets if not is_made_here(name)))
    return SplitConfiguration(configuration.changed({"secrets": listed}), secrets, (*told, *split.told))


def _take_user(given: dict[str, Any], secrets: dict[str, SecretStr]) -> bool:
    """`https://user:password@host` says how to sign in: as clients do, by basic authentication."""
    if any(given.get(name) for name in _CREDENTIALS) or _kind(given.get("auth")) not in ("none", "basic"):
        return False  # two ways at once: refused with the rest
    for name in ("url", "openapi", "server"):
        address = given.get(name)
        match = _WITH_USER.match(address) if isinstance(address, str) else None
        if match and not is_reference(match["password"]) and not names_in((match["password"],)):
            given |= {name: match["scheme"] + match["rest"], "auth": {"kind": "basic"}}
            secrets["auth"] = SecretStr(f"{unquote(match['user'])}:{unquote(match['password'])}")
            return True
    return False


def _taken_credential(given: dict[str, Any]) -> SecretStr | None:
    """Takes `bearer`, `api_key` and `basic` out of what was given; leaves in `auth` how they are sent."""
    found = {kind: value for field, kind in _CREDENTIALS.items() if (value := given.pop(field, None))}
    sent = {"header": given.pop("api_key_header", None), "place": given.pop("api_key_in", None)}
    if len(found) > 1:
        raise InvalidConfig("give one of a bearer token, an API key and a user with a password")
    said: Any = given.get("auth", {})
    if not isinstance(said, Mapping):
        return None  # refused with the rest
    auth = dict(cast("Mapping[str, Any]", said))
    for kind, value in found.items():
        same = auth if auth.get("kind") in (None, kind) else dict[str, Any]()
        given["auth"] = {**same, "kind": kind, **{name: word for name, word in sent.items() if word}}
        return _secret(value)
    if "kind" not in auth and any(auth.get(name) for name in _OF_OAUTH):
        given["auth"] = {**auth, "kind": "oauth"}
    return None


def _secret(value: Any) -> SecretStr:
    return value if isinstance(value, SecretStr) else SecretStr(str(value))


def merged(
    before: Configuration, secrets: Mapping[str, SecretStr], changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, SecretStr]]:
    """The old fields and secrets with the changes over them. None sets back to the default.

    In env, headers and what has fields of its own (auth, retry, select), only what is named changes.
    A new way to reach it (command, url, openapi) takes the place of the old and all that belongs to it.
    """
    facts = before.model_dump(mode="python", exclude_unset=True)
    kept = dict(secrets)
    if any(changes.get(way) and not getattr(before, way) for way in _WAYS):
        facts = {name: value for name, value in facts.items() if name not in _OF_ONE_WAY}
        kept.clear()
    for name, value in changes.items():
        if name in _TABLES:
            gone = _TABLES[name]
            words = _table(changes, name)
            kept = {
                secret: held
                for secret, held in kept.items()
                if not secret.startswith(gone)
                or (value is not None and secret.removeprefix(gone) not in words)
            }
        if name in _CREDENTIALS and value is None:
            kept.pop("auth", None)
        if name == "oauth_client_secret" and value is None:
            kept.pop("oauth_client", None)
        facts[name] = _over(name, facts.get(name), value)
    if before.auth.kind != "none" and _kind(facts.get("auth")) == "none" and "auth" in changes:
        kept = {name: held for name, held in kept.items() if name not in ("auth", "oauth_client")}
    return {name: value for name, value in facts.items() if value is not None}, kept


def _over(name: str, before: Any, change: Any) -> Any:
    """The value after a change; None is none."""
    if change is None or name not in (*_TABLES, *_NESTED) or not isinstance(change, Mapping):
        return change
    words = cast("Mapping[str, Any]", change)
    if name == "auth" and words.get("kind", _kind(before)) != _kind(before):
        before = None  # what belonged to another way to sign in says nothing of this one
    both: dict[str, Any] = {**(before or {}), **words}
    return {key: value for key, value in both.items() if value is not None}


def _kind(auth: Any) -> str:
    return auth.get("kind") or "none" if isinstance(auth, Mapping) else "none"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: one for name, one in cast("Mapping[str, Any]", value).items() if one is not None}


def _table(facts: Mapping[str, Any], field: str) -> dict[str, Any]:
    value: Any = facts.get(field) or {}
    if not isinstance(value, Mapping):
        raise InvalidConfig(f"{field} must be a table of names and values")
    return dict(cast("Mapping[str, Any]", value))


def _names(facts: Mapping[str, Any], field: str) -> frozenset[str]:
    value: Any = facts.get(field) or ()
    if not isinstance(value, list | tuple):
        raise InvalidConfig(f"{field} must be a list of names")
    return frozenset(str(name) for name in cast("list[Any]", value))


def _words(facts: Mapping[str, Any], field: str) -> dict[str, str]:
    """Values as words. A list or a table is no word: a secret inside it would be kept in the open."""
    words = _table(facts, field)
    if wrong := [name for name, word in words.items() if not isinstance(word, str | int | float)]:
        raise InvalidConfig(f"{field}: the value of {str(wrong[0])[:80]!r} must be a text")
    return {str(name): str(word) for name, word in words.items()}


def in_force(configuration: Configuration) -> dict[str, Any]:
    """As it works, not as it was written: a field that says its default is no different from one left out."""
    facts = configuration.model_dump(mode="json", exclude={"secrets"})
    return {**facts, "transport": configuration.wire if configuration.kind == "mcp" else None}


def values_of(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in secrets.items()}


def check_program(configuration: Configuration) -> None:
    """`InvalidConfig` when there is no such program here."""
    if configuration.command:
        find_program(
            configuration.command, child_environment(os.environ, configuration.env), configuration.cwd
        )
