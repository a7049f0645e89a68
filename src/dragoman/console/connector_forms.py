"""The form of a connector: what was typed as facts that the hub takes, and a connector as a form. Pure.

Fields are made from the description of the settings. Only what a form has differently stands here: a command
and its arguments are one line, variables and headers can be secret, and a token is typed, never shown.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from dragoman.connector import SIGN_IN, WHERE, Configuration, Connector
from dragoman.console.setting_forms import FormField, changes_in, form_field
from dragoman.errors import InvalidConfig
from dragoman.setting import Described, settings_of

WAYS = {"command": "Command", "url": "URL", "openapi": "OpenAPI", "paste": "Paste mcpServers"}
_OPEN = (WHERE, SIGN_IN)  # groups that are not folded
_EMPTY = {
    "command": ("the command is empty", "for example: uvx mcp-server-time"),
    "url": ("the URL is empty", "for example: https://mcp.example.com/mcp"),
    "openapi": (
        "the address of the document is empty",
        "for example: https://api.example.com/openapi.json",
    ),
}
_TOKENS = {"bearer": "bearer", "apikey": "api_key", "basic": "basic"}
_SETTINGS = tuple(
    one for one in settings_of(Configuration) if not one.setting.derived and one.name not in ("kind", "args")
)
_PLAIN = tuple(one for one in _SETTINGS if one.kind != "table" and one.name != "command")
_TABLES = {one.key: one for one in _SETTINGS if one.kind == "table"}
_SECRET = "Kept encrypted and never shown again."  # noqa: S105


def way_of(configuration: Configuration) -> str:
    return "openapi" if configuration.openapi else "url" if configuration.url else "command"


# A connector as a form


def groups_of(connector: Connector | None) -> list[tuple[str, bool, list[FormField]]]:
    """The groups of settings with their fields, and whether each is folded away."""
    chosen = _chosen(connector.configuration if connector else None)
    fields = [(one.setting.group, field) for one in _SETTINGS for field in _fields(one, chosen, connector)]
    order = list(dict.fromkeys(group for group, _ in fields))
    fields.sort(key=lambda item: order.index(item[0]))
    return [
        (group, group not in _OPEN, [field for _, field in members])
        for group, members in groupby(fields, key=lambda item: item[0])
    ]


def _fields(one: Described, chosen: Mapping[str, Any], connector: Connector | None) -> list[FormField]:
    if one.name == "command":
        words = [chosen["command"], *chosen.get("args", ())] if chosen.get("command") else []
        return [form_field(one, shlex.join(words) or None)]
    field = form_field(one, one.found_in(chosen))
    if one.name in _TABLES:
        label = f"Secret {field.label.lower()}"
        twin = replace(field, name=f"secret_{one.key}", label=label, hint=_SECRET, value="", placeholder="")
        return [field, twin]
    if one.name == "auth.kind":
        hint = _SECRET if connector is None else f"{_SECRET} Empty keeps the one there is."
        hidden = FormField(name="", label="", hint=hint, value="", kind="password")
        for_token = f"{field.shown_for} when when-bearer when-apikey when-basic"
        for_client = f"{field.shown_for} when when-oauth"
        return [
            field,
            replace(hidden, name="token", label="Token, key, or user:password", shown_for=for_token),
            replace(hidden, name="client_secret", label="OAuth client secret", shown_for=for_client),
        ]
    return [field]


def chosen_settings(connector: Connector) -> list[tuple[str, str]]:
    """The settings that somebody chose, in the words of the form."""
    chosen = _chosen(connector.configuration)
    found: list[tuple[str, str]] = []
    for one in _SETTINGS:
        value = one.found_in(chosen)
        if one.name == "command" and value:
            value = shlex.join([value, *chosen.get("args", ())])
        if not one.is_chosen(value):
            continue
        text = one.text(value)
        label = "Command" if one.name == "command" else one.label
        found.append((label, one.setting.words.get(text, text)))
    return found


def _chosen(configuration: Configuration | None) -> dict[str, Any]:
    return configuration.model_dump(mode="python", exclude_unset=True) if configuration else {}


# What was typed


def facts_of(typed: Mapping[str, str], before: Configuration | None = None) -> dict[str, Any]:
    """What the hub takes: of a new connector all that was typed, of one there is only what differs."""
    way = typed.get("by", "command")
    way = way if way in _EMPTY else "command"
    if not typed.get(way, "").strip():
        message, hint = _EMPTY[way]
        raise InvalidConfig(message, hint=hint)
    kind = typed.get("auth_kind", "") or "none"
    mine = [one for one in _PLAIN if not one.setting.ways or way in one.setting.ways]
    mine = [one for one in mine if not one.setting.when or kind in one.setting.when]
    facts = changes_in(typed, mine, _chosen(before))
    if way == "command":
        facts |= _command(typed, before)
    for name, one in _TABLES.items():
        if way in one.setting.ways:
            facts |= _table(typed, name, getattr(before, name) if before else {}, facts.get("secret", []))
    return facts | ({} if way == "command" else _credential(typed, kind, before))


def _command(typed: Mapping[str, str], before: Configuration | None) -> dict[str, Any]:
    try:
        words = shlex.split(typed["command"])
    except ValueError:
        raise InvalidConfig("a quotation mark of the command is not closed") from None
    if before and words == [before.command, *before.args]:
        return {}
    return {"command": words[0], "args": words[1:]}


def _table(
    typed: Mapping[str, str], name: str, before: Mapping[str, str], marked: list[str]
) -> dict[str, Any]:
    """Variables or headers as the hub takes a change: None takes a name away, a ticked secret too."""
    between, prefix = (":", "header") if name == "headers" else ("=", name)
    secret = _pairs(typed, f"secret_{name}", between)
    start = f"drop:{prefix}:"
    dropped = {key.removeprefix(start): None for key in typed if key.startswith(start)}
    after = _pairs(typed, name, between) if name in typed else before
    gone = dict.fromkeys(before.keys() - after.keys())
    new = {key: value for key, value in after.items() if before.get(key) != value}
    words = {**gone, **new, **dropped, **secret}
    if not words:
        return {}
    marks = [*marked, *(f"{prefix}:{key}" for key in secret)]
    return {name: words} | ({"secret": marks} if marks else {})


def _credential(typed: Mapping[str, str], kind: str, before: Configuration | None) -> dict[str, Any]:
    """An empty token of a kind that it had already keeps the one that is there."""
    if kind == "oauth":
        secret = typed.get("client_secret", "")
        return {"oauth_client_secret": secret} if secret else {}
    if kind == "none":
        return {}
    if kind not in _TOKENS:
        raise InvalidConfig(f"there is no way {kind[:40]!r} to sign in")
    if token := typed.get("token", ""):
        return {_TOKENS[kind]: token}
    had = before.auth.kind if before else "none"
    if had != kind and "auth" not in typed.get("personal", "").replace(",", " ").split():
        raise InvalidConfig("the token is empty", hint="paste it, or choose that nothing is needed")
    return {}


def _pairs(typed: Mapping[str, str], field: str, between: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, line in enumerate(typed.get(field, "").splitlines(), 1):
        if not line.strip():
            continue
        name, found, value = line.partition(between)
        if not found or not name.strip():
            form = f"NAME{between}value" if between == "=" else "Name: value"
            raise InvalidConfig(f"line {number} of {field.replace('_', ' ')} is not {form}")
        pairs[name.strip()] = value.strip()
    return pairs


def typed_of(items: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """What a browser sent, texts only."""
    return {name: value for name, value in items if isinstance(value, str)}
