"""How a noun describes its settings: once, beside the field, for every door.

    connect_timeout: Annotated[float, Setting("Seconds to connect.", "Connection", "owner")] = 60.0

works in a pydantic model and in a dataclass. The options of a command, the form of the console, the files
people write, the rights and the page of the documentation are made from it. Knows none of them.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

Who = Literal["operator", "owner", "narrow"]
ValueKind = Literal["text", "number", "whole", "switch", "choice", "list", "table"]
_KINDS: dict[Any, ValueKind] = {bool: "switch", int: "whole", float: "number", dict: "table"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field says beside its type and its default.

    `who` may change it: the operator alone, which is also what a field means that says nothing; owners on
    what is theirs; or, with `narrow`, besides those who manage what a tier above gave them, but only to make
    it stricter. `strictness` is what that means: the lower number, the later of these values, or any value.
    One that is `inherited` has, where it has no value, that of the app, which may be any.

    Whoever changes a setting that `leads` somewhere decides where secrets go. `ways` are those by which a
    connector is reached that the setting belongs to, `when` the choices of its model's `kind`; none: all.
    A `secret` is typed and never shown; a `derived` one is written by Dragoman, never by people; an
    `advanced` one is folded away. `words` are what choices are called on a screen, "" that none was made.
    """

    meaning: str
    group: str = "More"
    who: Who = "operator"
    _: dataclasses.KW_ONLY
    label: str = ""
    flag: str = ""
    metavar: str = ""
    example: str = ""
    strictness: Literal["lower", "any"] | tuple[str | bool, ...] = "lower"
    inherited: bool = False
    leads: bool = False
    ways: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    advanced: bool = False
    secret: bool = False
    derived: bool = False
    words: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "description": self.meaning}


_UNSAID = Setting("", leads=True)  # nobody said that it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One setting of a noun: where it stands, what it says of itself, and what its type says."""

    path: tuple[str, ...]
    setting: Setting
    kind: ValueKind
    choices: tuple[str, ...]
    default: Any

    @property
    def name(self) -> str:
        """As files and `--unset` have it: `retry.tries`."""
        return ".".join(self.path)

    @property
    def key(self) -> str:
        """As a parameter or a form's field can be called."""
        return "_".join(self.path)

    @property
    def label(self) -> str:
        return self.setting.label or self.key.replace("_", " ").capitalize()

    @property
    def flags(self) -> tuple[str, ...]:
        """How a command line spells it; of a switch, also how it is turned off."""
        flag = self.setting.flag or f"--{self.key.replace('_', '-')}"
        if self.kind == "switch" and "/" not in flag:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        return tuple(flag.split("/"))

    def of(self, noun: Any) -> Any:
        """The value that an object of this noun has."""
        for part in self.path:
            noun = getattr(noun, part)
        return noun

    def found_in(self, facts: Mapping[str, Any]) -> Any:
        """The value in a table of such values; None where it is not."""
        found: Any = facts
        for part in self.path:
            found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
        return found

    def is_chosen(self, value: Any) -> bool:
        """Whether a value is another than the default; lists of files and answers are tuples here."""
        value = tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        return value is not None and value != self.default

    def text(self, value: Any) -> str:
        """A value in a line for people."""
        if isinstance(value, Mapping):
            words = cast("Mapping[str, Any]", value)
            return ", ".join(f"{name}={word}" for name, word in words.items())
        if isinstance(value, frozenset):
            return ", ".join(sorted(map(str, cast("frozenset[Any]", value))))
        if isinstance(value, list | tuple):
            return ", ".join(map(str, cast("list[Any]", value)))
        if isinstance(value, bool):
            return "yes" if value else "no"
        return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)

    def is_narrower(self, before: Any, after: Any) -> bool:
        """Whether `after` is as strict as `before` or stricter. No value is as lenient as can be."""
        if after == before:
            return True
        order = self.setting.strictness
        if order == "any":
            return True
        if self.setting.inherited and (before is None or after is None):
            return False
        if order == "lower":
            return after is not None and (before is None or after < before)
        # What no value means is decided elsewhere: only the strictest is surely no wider.
        if before is None or after is None:
            return after == order[-1] or before == order[0]
        return order.index(after) > order.index(before)


@cache
def settings_of(noun: type) -> tuple[Described, ...]:
    """Every setting of a model or a dataclass in the order of its fields, those of the models in it too."""
    return tuple(_walked(noun, (), None))


def default_of(noun: type, name: str) -> Any:
    """What a field is set back to; `KeyError` where it has no default."""
    return _defaults(noun)[name]


def _walked(noun: type, above: tuple[str, ...], holder: Any) -> "list[Described]":
    found: list[Described] = []
    for name, default in _defaults(noun).items():
        hint = get_type_hints(noun, include_extras=True)[name]
        said, kind = _taken_apart(hint)
        default = default if holder is None else getattr(holder, name)
        if _is_noun(kind):
            found += _walked(kind, (*above, name), default)
        else:
            found.append(_described((*above, name), said or _UNSAID, kind, default))
    return found


def _defaults(noun: type) -> dict[str, Any]:
    """The default of each field; None where it has none, or one that is made anew each time and empty."""
    model: Mapping[str, Any] | None = getattr(noun, "model_fields", None)
    if model is not None:
        return {
            name: item.get_default(call_default_factory=True, validated_data={})
            for name, item in model.items()
            if not item.is_required()
        }
    return {
        item.name: item.default if item.default_factory is dataclasses.MISSING else item.default_factory()
        for item in dataclasses.fields(noun)
        if item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
    }


def _is_noun(kind: Any) -> bool:
    return isinstance(kind, type) and (hasattr(kind, "model_fields") or dataclasses.is_dataclass(kind))


def _taken_apart(hint: Any) -> tuple[Setting | None, Any]:
    """What the field says of itself, and its type without `None`."""
    said: Setting | None = None
    while True:
        if get_origin(hint) is Annotated:
            hint, *beside = get_args(hint)
            said = next((one for one in beside if isinstance(one, Setting)), said)
        elif get_origin(hint) in (Union, UnionType):
            (hint, *_) = [one for one in get_args(hint) if one is not NoneType]
        else:
            return said, hint


def _described(path: tuple[str, ...], said: Setting, kind: Any, default: Any) -> Described:
    origin = get_origin(kind) or kind
    choices = tuple(map(str, get_args(kind))) if origin is Literal else ()
    is_list = origin in (tuple, list, frozenset)
    value_kind = "choice" if choices else "list" if is_list else _KINDS.get(origin, "text")
    return Described(path=path, setting=said, kind=value_kind, choices=choices, default=default)
