"""What people may add and change in multi-user mode, and how much of it. Pure rules.

What the operator or the app's files give is trusted, as is everything where there is one user only.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import SecretStr

from dragoman.access.approvals import is_person
from dragoman.connections.environment import has_reference
from dragoman.connections.oauth.clients import GIVEN_SECRET, is_made_here
from dragoman.connections.openapi.document_reader import is_address
from dragoman.connector import Configuration, Connector, Origin, Policy
from dragoman.errors import Denied, InvalidConfig, LimitReached
from dragoman.scope import Caller
from dragoman.setting import Described, Noun, settings_of
from dragoman.tool import Tool

MOST_CONNECTORS = 200
_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = 10_000
_LONGEST_URL = 2_000
_LONGEST_VALUE = 8 * 1024
_MOST_ARGS = 200
_MOST_VALUES = 100
# Else a text is as long as an address, and a word of a list as a name.
_LONGEST = {
    "command": _LONGEST_VALUE,
    "cwd": _LONGEST_VALUE,
    "args": _LONGEST_VALUE,
    "auth.header": _LONGEST_NAME,
}


_OF_THE_CONNECTOR = tuple(one for one in settings_of(Connector) if one.setting.meaning)
# All that can be changed of a connector: each says itself who may.
CHANGEABLE = (*_OF_THE_CONNECTOR, *settings_of(Configuration))
_BY_NAME = {one.name: one for one in CHANGEABLE}
# What is set of a tool counts more than what is set of its connector, so it follows the same rule.
# Of what the operator gave, people change no other setting.
_TOOL_STRICTER: dict[str, Callable[[Any, Any], bool]] = {
    "enabled": _BY_NAME["enabled"].is_narrower,
    "approval": _BY_NAME["approval"].is_narrower,
    "allowed_callers": frozenset[str].__gt__,
    "required_capabilities": frozenset[str].__lt__,
}


def may_change(one: Described, before: object, after: object, *, is_own: bool) -> bool:
    """Whether people change a setting so: of what belongs to them, or of what the operator gave."""
    if after in one.setting.reserved:
        return False
    if is_own:
        return one.setting.who in ("owner", "narrow")
    return one.setting.who == "narrow" and one.is_narrower(before, after)


Kept = tuple[Connector, Mapping[str, SecretStr]]
"""A connector with its shared secrets."""


def leads_elsewhere(before: Kept, after: Kept) -> bool:
    """Whether another program or host may get the secrets now: what users brought was not for that one.

    Variables, headers and arguments decide it as much when they are secret.
    """
    (was, had), (is_now, has) = before, after
    if was.configuration.leads_elsewhere(is_now.configuration):
        return True
    return _leading(had) != _leading(has)


def _leading(secrets: Mapping[str, SecretStr]) -> dict[str, SecretStr]:
    """All but those that are nothing else than a credential."""
    return {
        name: value
        for name, value in secrets.items()
        if name not in ("auth", GIVEN_SECRET) and not is_made_here(name)
    }


@dataclass(frozen=True, slots=True)
class Permissions:
    """`app` has what a connector that says nothing inherits: whether a value is stricter is then known."""

    multi_user: bool
    app: object

    def check_number(self, caller: Caller, has: int) -> None:
        if self.multi_user and caller.role != "operator" and has >= MOST_CONNECTORS:
            raise LimitReached(
                f"there are {has} connectors already, and there may be no more than {MOST_CONNECTORS}",
                hint="make room: dragoman connectors remove",
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
            for one in CHANGEABLE[len(_OF_THE_CONNECTOR) :]:
                if one.setting.who == "operator" and one.of(configuration) != one.default:
                    raise Denied(f"only the operator sets {one.name}", hint=f"leave {one.name} out")
                if (value := one.of(configuration)) in one.setting.reserved:
                    raise Denied(
                        f"only the operator sets {one.name} to {value}", hint=f"leave {one.name} out"
                    )
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
        is_own = before.origin == "people"
        for one in CHANGEABLE:
            was, is_now = _value(one, before), _value(one, after)
            if was == is_now or may_change(
                one, self._meant(one, was), self._meant(one, is_now), is_own=is_own
            ):
                continue
            if is_own:
                raise Denied(f"only the operator changes {one.name}", hint="ask the operator")
            what = "can only be made stricter" if one.setting.who == "narrow" else "is theirs to change"
            raise _given_by_operator(before, f"{one.name} {what}")

    def _meant(self, one: Described, value: Any) -> Any:
        return getattr(self.app, one.name) if value is None and one.setting.inherited else value

    def check_settings(self, caller: Caller, before: Noun, after: Noun) -> None:
        """Whether the caller, who manages this agent, user, key or workspace, may change what differs."""
        if not self.multi_user or caller.role == "operator":
            return
        allowed = ("owner", "narrow", "admin") if caller.is_admin else ("owner", "narrow")
        for one in settings_of(type(before)):
            if one.of(before) != one.of(after) and one.setting.who not in allowed:
                who = "an admin of the workspace" if one.setting.who == "admin" else "the operator"
                raise Denied(f"only {who} changes {one.name}", hint=f"ask {who}, or leave {one.name} out")

    def check_removal(self, caller: Caller, connector: Connector) -> None:
        """Removing cannot be made stricter: it is for whose tier it is, and for who gave it."""
        if self.is_given(caller, connector) and not connector.owner:
            raise _given_by_operator(connector, "they remove it")

    def check_acceptance(self, caller: Caller, connector: Connector, tool: Tool) -> None:
        """A pin is there so that a change is looked at by whoever answers for the connector.

        A list of one's own is nobody else's to decide on.
        """
        if self.is_given(caller, connector) and not tool.identity:
            raise _given_by_operator(connector, f"they accept the change of {tool.name}")

    def is_given(self, caller: Caller, connector: Connector) -> bool:
        """Whether the operator or the app's files gave it to who asks."""
        return self.multi_user and caller.role != "operator" and connector.origin != "people"

    def check_tool(
        self, caller: Caller, connector: Connector, tool: Tool, settings: Mapping[str, Any]
    ) -> None:
        """Whether the caller, who runs the connector's tier, may set this of one of its tools."""
        if not self.is_given(caller, connector):
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


def _value(one: Described, connector: Connector) -> Any:
    return one.of(connector if one in _OF_THE_CONNECTOR else connector.configuration)


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
    if any(has_reference(text) for text in _texts(configuration.model_dump())) or any(
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


def _texts(value: Any) -> Iterator[str]:
    """Every text in a configuration, wherever it stands: also in settings that nobody thought of here."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in cast("Mapping[str, Any]", value).items():
            yield from (*_texts(name), *_texts(one))
    elif isinstance(value, Iterable):
        for one in cast("Iterable[Any]", value):
            yield from _texts(one)


def _check_sizes(
    names: Iterable[str],
    description: str,
    configuration: Configuration,
    secrets: Mapping[str, SecretStr],
) -> None:
    _check_values("names", tuple(names), _MOST_VALUES, _LONGEST_NAME)
    _check_values("secrets", secrets, 2 * _MOST_VALUES, _LONGEST_NAME)
    _check_length("description", len(description), _LONGEST_DESCRIPTION)
    longest = max((len(value.get_secret_value()) for value in secrets.values()), default=0)
    _check_length("a secret", longest, _LONGEST_VALUE)
    for one in settings_of(Configuration):
        value = one.of(configuration)
        longest = _LONGEST.get(one.name, _LONGEST_URL if one.kind == "text" else _LONGEST_NAME)
        if one.kind in ("list", "table"):
            _check_values(one.name, value, _MOST_ARGS if one.name == "args" else _MOST_VALUES, longest)
        if one.kind == "table":
            _check_length(one.name, max(map(len, value.values()), default=0), _LONGEST_VALUE)
        if one.kind == "text":
            _check_length(one.name, len(value or ""), longest)


def _check_values(what: str, values: Collection[str], most: int, longest: int) -> None:
    if len(values) > most:
        raise InvalidConfig(f"{what} has {len(values):,} entries, and may have at most {most:,}")
    _check_length(what, max(map(len, values), default=0), longest)


def _check_length(what: str, length: int, limit: int) -> None:
    if length > limit:
        raise InvalidConfig(f"{what} has {length:,} characters in one value, and may have at most {limit:,}")
