"""What people may add and change in multi-user mode, and how much of it. Pure rules.

What the operator or the app's files give is trusted, as is everything where there is one user only.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import SecretStr

from dragoman.access.approval_policies import is_person
from dragoman.connections.environment import has_reference
from dragoman.connections.openapi.document_reader import is_address
from dragoman.connector import Configuration, Connector, Origin, Pin, Policy
from dragoman.errors import Denied, InvalidConfig, LimitReached
from dragoman.scope import Caller
from dragoman.tool import Tool

MOST_CONNECTORS = 200
_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 10_000
_LONGEST_URL = 2_000
_LONGEST_VALUE = 8 * 1024
_MOST_ARGS = 200
_MOST_VALUES = 100


Stricter = Callable[[Any, Any], bool]
"""Whether the second of two values allows no more than the first."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """Who changes a field of a connector, beside the operator, who changes all of them.

    `operator`: nobody. `owner`: whoever it belongs to. `narrow`: its owner too, and what the operator
    gave, people may make stricter. `leads`: it decides which program or host gets the secrets.
    """

    who: Literal["operator", "owner", "narrow"]
    is_stricter: Stricter | None = None
    leads: bool = False


def _is_lower(before: float | None, after: float | None) -> bool:
    """None is no limit at all."""
    return after is not None and (before is None or after < before)


def _asks_more(before: Policy | None, after: Policy | None) -> bool:
    """None is the policy of the workspace: more than `never` asks and less than `always`, else unknown."""
    return before == "never" or after == "always"


def _pins_more(before: Pin, after: Pin) -> bool:
    return before == "off" or after == "block"


def _is_turned_off(before: bool, after: bool) -> bool:
    return before and not after


def _always(before: Any, after: Any) -> bool:
    return True


_UNLISTED = FieldRule("operator", leads=True)
_OWNER = FieldRule("owner")
_LEADS = FieldRule("owner", leads=True)
_LOWER = FieldRule("narrow", _is_lower)
FIELD_RULES: dict[str, FieldRule] = {
    # The connector itself. What it is called and whether it is there; a description opens nothing.
    "description": FieldRule("narrow", _always),
    "aliases": _OWNER,
    "enabled": FieldRule("narrow", _is_turned_off),
    # Where it leads: whoever may change these has its secrets.
    "kind": _LEADS,
    "transport": _LEADS,
    "command": _LEADS,
    "args": _LEADS,
    "env": _LEADS,
    "cwd": _LEADS,
    "url": _LEADS,
    "headers": _LEADS,
    "auth": _LEADS,
    "openapi": _LEADS,
    "server": _LEADS,
    # What it brings along.
    "secrets": _OWNER,
    "personal": _OWNER,
    # What of it can be used, by whom, and who is asked.
    "select": _OWNER,
    "approval": FieldRule("narrow", _asks_more),
    "pin": FieldRule("narrow", _pins_more),
    "isolation": _OWNER,
    "deferred": _OWNER,
    # How much.
    "connect_timeout": _LOWER,
    "request_timeout": _LOWER,
    "max_servers": _LOWER,
    "max_concurrency": _LOWER,
    "shared_concurrency": _LOWER,
    "calls_per_minute": _LOWER,
    "max_result_bytes": _LOWER,
    "max_message_bytes": _LOWER,
    # How it is kept going.
    "retry": _OWNER,
    "document_ttl": _OWNER,
    "idle_ttl": _OWNER,
    "cache_ttl": _OWNER,
    "health_interval": _OWNER,
    "auto_reconnect": _OWNER,
    "auto_discover": _OWNER,
    "eager": _OWNER,
}
"""Every field. One that has no line is the operator's alone, and may lead anywhere."""


# What is set of a tool counts more than what is set of its connector, so it follows the same rule.
# Of what the operator gave, people change no other setting.
_TOOL_STRICTER: dict[str, Stricter] = {
    "enabled": _is_turned_off,
    "approval": _asks_more,
    "allowed_callers": frozenset[str].__gt__,
    "required_capabilities": frozenset[str].__lt__,
}


def rule_of(field: str) -> FieldRule:
    return FIELD_RULES.get(field, _UNLISTED)


def may_change(field: str, before: object, after: object, *, is_own: bool) -> bool:
    """Whether people change a field so: of what belongs to them, or of what the operator gave."""
    rule = rule_of(field)
    if is_own:
        return rule.who != "operator"
    return rule.is_stricter is not None and rule.is_stricter(before, after)


Kept = tuple[Connector, Mapping[str, SecretStr]]
"""A connector with its shared secrets."""


def leads_elsewhere(before: Kept, after: Kept) -> bool:
    """Whether another program or host may get the secrets now: what users brought was not for that one.

    Variables and headers decide it as much when they are secret.
    """
    (was, had), (is_now, has) = before, after
    wanted = _values(is_now)
    if any(value != wanted[field] and rule_of(field).leads for field, value in _values(was).items()):
        return True
    return _variables_and_headers(had) != _variables_and_headers(has)


def _variables_and_headers(secrets: Mapping[str, SecretStr]) -> dict[str, SecretStr]:
    return {name: value for name, value in secrets.items() if name.startswith(("env:", "header:"))}


@dataclass(frozen=True, slots=True)
class Permissions:
    multi_user: bool

    def check_number(self, caller: Caller, has: int) -> None:
        if self.multi_user and caller.role != "operator" and has >= MOST_CONNECTORS:
            raise LimitReached(
                f"there are {has} connectors already, and there may be no more than {MOST_CONNECTORS}",
                hint="remove one that nobody needs: dragoman connectors remove",
            )

    def check_new(
        self,
        caller: Caller,
        names: Iterable[str],
        description: str,
        configuration: Configuration,
        secrets: Mapping[str, SecretStr],
    ) -> Origin:
        """Who answers for what the caller gives, or why they may not give it."""
        origin = origin_of(caller)
        _check_consent(caller, None, configuration)
        if self.multi_user and origin == "people":
            _check_sizes(names, description, configuration, secrets)
            for field in configuration.model_fields_set:
                if rule_of(field).who == "operator":
                    raise Denied(f"only the operator sets {field}", hint=f"leave {field} out")
            _check_rights(caller, configuration, secrets)
        return origin

    def check_change(
        self, caller: Caller, before: Connector, after: Connector, given: Mapping[str, SecretStr]
    ) -> None:
        """The same for a change. `given` are the secrets of this change; what was kept had its check.

        Changed by the operator, what people gave stays theirs: it was not all written by the operator.
        """
        _check_consent(caller, before.configuration.approval, after.configuration)
        self.check_fields(caller, before, after)
        if not self.multi_user:
            return
        if before.origin == "people":
            _check_sizes((), after.description, after.configuration, given)
            _check_rights(caller, after.configuration, given)
        elif caller.role != "operator":
            _check_sizes((), after.description, after.configuration, {})
            if given:
                raise _given_by_operator(before, "its secrets are theirs to change")

    def check_fields(self, caller: Caller, before: Connector, after: Connector) -> None:
        """Whether the caller, who sees it and runs its tier, may change the fields that differ."""
        if not self.multi_user or caller.role == "operator":
            return
        is_own, wanted = before.origin == "people", _values(after)
        for field, value in _values(before).items():
            if value == wanted[field] or may_change(field, value, wanted[field], is_own=is_own):
                continue
            if is_own:
                raise Denied(f"only the operator changes {field}", hint="ask the operator")
            is_narrow = rule_of(field).who == "narrow"
            raise _given_by_operator(
                before, f"{field} can only be made stricter" if is_narrow else f"{field} is theirs to change"
            )

    def check_tool(
        self, caller: Caller, connector: Connector, tool: Tool, settings: Mapping[str, Any]
    ) -> None:
        """Whether the caller, who runs the connector's tier, may set this of one of its tools."""
        if not self.multi_user or caller.role == "operator" or connector.origin == "people":
            return
        for setting, value in settings.items():
            before, is_stricter = getattr(tool, setting), _TOOL_STRICTER.get(setting)
            if value == before or (is_stricter is not None and is_stricter(before, value)):
                continue
            what = "can only be made stricter" if is_stricter else "is theirs to change"
            raise _given_by_operator(connector, f"{setting} of {tool.name} {what}")


def origin_of(caller: Caller) -> Origin:
    if not caller.user:
        return "files"
    return "operator" if caller.role == "operator" else "people"


def _values(connector: Connector) -> dict[str, Any]:
    """All that can be changed of a connector, by the names in the table."""
    own = {"description": connector.description, "aliases": connector.aliases, "enabled": connector.enabled}
    return own | dict(connector.configuration)


def _given_by_operator(connector: Connector, what: str) -> Denied:
    return Denied(
        f"the operator gave {connector.slug!r}: {what}",
        hint="add a connector of your own, or ask the operator",
    )


def _check_consent(caller: Caller, before: Policy | None, configuration: Configuration) -> None:
    """Whether people are asked is decided by people: an agent must not spare itself the question."""
    if configuration.approval != before and not is_person(caller):
        raise Denied("only a person decides when people are asked", hint="leave approval out")


def _check_rights(caller: Caller, configuration: Configuration, secrets: Mapping[str, SecretStr]) -> None:
    if configuration.command and not caller.is_admin:
        raise Denied(
            "only an admin adds a connector that runs a command",
            hint="ask an admin of your workspace, or give the url of a remote server",
        )
    if any(has_reference(text) for text in _texts(configuration)) or any(
        has_reference(value.get_secret_value()) for value in secrets.values()
    ):
        raise Denied(
            "only the operator refers to variables of the server's environment (${…})",
            hint="write the value itself; what is secret is kept encrypted",
        )
    if configuration.openapi and not is_address(configuration.openapi):
        raise Denied(
            "only the operator gives an OpenAPI document as a file of the server",
            hint="give the http:// or https:// address of the document",
        )
    if configuration.server and not is_address(configuration.server):
        raise InvalidConfig("server must begin with http:// or https://")


def _texts(configuration: Configuration) -> list[str]:
    places = (
        configuration.command,
        configuration.cwd,
        configuration.url,
        configuration.openapi,
        configuration.server,
        configuration.auth.client_id,
        configuration.auth.issuer,
    )
    named = (*configuration.env.items(), *configuration.headers.items())
    words = [word for pair in named for word in pair]
    return [*(place for place in places if place), *configuration.args, *words, *configuration.auth.scopes]


def _check_sizes(
    names: Iterable[str],
    description: str,
    configuration: Configuration,
    secrets: Mapping[str, SecretStr],
) -> None:
    select, auth = configuration.select, configuration.auth
    chosen = (select.tags, select.paths, select.methods, select.include, select.exclude)
    for what, values, most in (
        ("names", tuple(names), _MOST_VALUES),
        ("args", configuration.args, _MOST_ARGS),
        ("env", configuration.env, _MOST_VALUES),
        ("headers", configuration.headers, _MOST_VALUES),
        ("secrets", secrets, 2 * _MOST_VALUES),
        ("personal", configuration.personal, _MOST_VALUES),
        ("scopes", auth.scopes, _MOST_VALUES),
        ("select", [one for part in chosen for one in part], 5 * _MOST_VALUES),
    ):
        if len(values) > most:
            raise InvalidConfig(f"{what} has {len(values):,} entries, and may have at most {most:,}")
        name_limit = _LONGEST_VALUE if what == "args" else _LONGEST_NAME
        _check_length(what, max(map(len, values), default=0), name_limit)
    _check_length("description", len(description), _LONGEST_DESCRIPTION)
    for where in ("url", "openapi", "server"):
        _check_length(where, len(getattr(configuration, where) or ""), _LONGEST_URL)
    for field in ("command", "cwd"):
        _check_length(field, len(getattr(configuration, field) or ""), _LONGEST_VALUE)
    _check_length("auth.header", len(auth.header), _LONGEST_NAME)
    for field in ("env", "headers"):
        _check_length(field, max(map(len, getattr(configuration, field).values()), default=0), _LONGEST_VALUE)
    longest = max((len(value.get_secret_value()) for value in secrets.values()), default=0)
    _check_length("a secret", longest, _LONGEST_VALUE)


def _check_length(what: str, length: int, limit: int) -> None:
    if length > limit:
        raise InvalidConfig(f"{what} has {length:,} characters in one value, and may have at most {limit:,}")
