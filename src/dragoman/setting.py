"""How a noun describes its settings: once, beside the field, for every door.

    connect_timeout: Annotated[float, Setting("Seconds to connect.", "Connection", "owner")] = 60.0

works in a pydantic model and in a dataclass. The options of a command, the form of the console, the files
people write, the rights and the page of the documentation are made from it. Knows none of them.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from dragoman.errors import InvalidArguments
from dragoman.names import did_you_mean

Who = Literal["operator", "admin", "owner", "narrow"]
ValueKind = Literal["text", "number", "whole", "switch", "choice", "list", "table", "moment"]
Noun = TypeVar("Noun")
_KINDS: dict[Any, ValueKind] = {
    bool: "switch",
    int: "whole",
    float: "number",
    dict: "table",
    datetime: "moment",
}
_LISTS = (tuple, list, frozenset)
_NOTHING = "none"
_LONGEST = timedelta(days=100 * 366)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field says beside its type and its default.

    `who` may change it: the operator alone, which is also what a field means that says nothing; `admin`s of
    the workspace that it is in; owners on what is theirs; or, with `narrow`, besides those who manage what a
    tier above gave them, but only to make it stricter. `strictness` is what that means: the lower number,
    the later of these values, or any value. What a field of a field says of `who`, the outer one decides.
    Values that are `reserved` the operator alone gives, whoever else may change the setting.
    One that is `inherited` has, where it has no value, that of the app, which may be any.

    Whoever changes a setting that `leads` somewhere decides where secrets go. `ways` are those by which a
    connector is reached that the setting belongs to, `when` the choices of its model's `kind`; none: all.
    A `secret` is typed and never shown; a `derived` one is written by Dragoman, never by people; an
    `advanced` one is folded away. `words` are what choices are called on a screen, "" that none was made;
    a text of several lines has `rows`, and so has a list with one value in a line.
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
    reserved: tuple[str, ...] = ()
    inherited: bool = False
    leads: bool = False
    ways: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    advanced: bool = False
    secret: bool = False
    derived: bool = False
    rows: int = 0
    words: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "description": self.meaning}


_UNSAID = Setting("", leads=True)  # nobody said that it does not


@dataclass(frozen=True, kw_only=True)
class Described:
    """One setting of a noun: where it stands, what it says of itself, and what its type says.

    `hint` is the annotation of the field, with all that limits its values.
    """

    path: tuple[str, ...]
    setting: Setting
    kind: ValueKind
    choices: tuple[str, ...]
    default: Any
    hint: Any

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
        if isinstance(value, Iterable) and not isinstance(value, str):
            return ", ".join(self.words_of(cast("Iterable[Any]", value)))
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
        return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)

    def words_of(self, values: Iterable[Any]) -> list[str]:
        """The words of a list as people type them: `none` where no word at all is not the default."""
        words = [str(one) for one in values]
        words = sorted(words) if isinstance(values, frozenset) else words
        return words if words or not self._says_nothing else [_NOTHING]

    def read_words(self, words: list[str]) -> list[str]:
        """The other way."""
        return [] if words == [_NOTHING] and self._says_nothing else words

    @property
    def _says_nothing(self) -> bool:
        """Whether a list without a word is something else than the default."""
        return self.default is None or len(self.default) > 0

    def checked(self, value: Any) -> Any:
        """A value as the noun holds it, None as the default. `InvalidArguments` says what is wrong."""
        from pydantic import ValidationError

        if value is None:
            return self.default
        if self.kind == "list" and isinstance(value, Iterable) and not isinstance(value, str | Mapping):
            value = (get_origin(_taken_apart(self.hint)[1]) or tuple)(cast("Iterable[Any]", value))
        try:
            return self._adapter.validate_python(value, strict=True)
        except (ValidationError, TypeError) as error:
            said = (
                what_is_wrong(error.errors()[0])
                if isinstance(error, ValidationError)
                else "is no list of words"
            )
            raise InvalidArguments(f"{self.name}: {said}", hint=self.setting.meaning or None) from None

    @cached_property
    def _adapter(self) -> Any:
        from pydantic import TypeAdapter

        return TypeAdapter(self.hint)

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


def people_set(noun: type) -> tuple[Described, ...]:
    """The settings that people may know of: described, and not written by Dragoman itself."""
    return tuple(one for one in settings_of(noun) if one.setting.meaning and not one.setting.derived)


def changed(noun: Noun, changes: Mapping[str, Any]) -> Noun:
    """A noun with these settings. None sets one back; in one with settings of its own, those named change."""
    kind = type(noun)
    described = {one.path[0]: one for one in people_set(kind)}
    if unknown := sorted(changes.keys() - described.keys()):
        raise InvalidArguments(
            f"there is no setting {unknown[0][:80]!r}",
            hint=did_you_mean(unknown[0][:80], sorted(described)) or f"there are: {', '.join(described)}",
        )
    values: dict[str, Any] = {}
    for name, value in changes.items():
        one, before = described[name], getattr(noun, name)
        if len(one.path) == 1:
            values[name] = one.checked(value)
        elif isinstance(value, Mapping):
            values[name] = changed(before, cast("Mapping[str, Any]", value))
        else:
            whole = {item.name: getattr(value, item.name, None) for item in dataclasses.fields(before)}
            values[name] = changed(before, whole)
    return dataclasses.replace(cast("Any", noun), **values)


def what_is_wrong(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong with a value, as a person says it."""
    limits: Mapping[str, Any] = error.get("ctx") or {}
    match error["type"]:
        case "greater_than_equal":
            return f"must be {limits['ge']} or more"
        case "less_than_equal":
            return f"must be {limits['le']} or less"
        case "greater_than":
            return f"must be more than {limits['gt']}"
        case "less_than":
            return f"must be less than {limits['lt']}"
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not known here"
        case _:
            return str(error["msg"]).removeprefix("Value error, ")


def read_moment(text: str, now: datetime | None = None) -> datetime:
    """When something ends, as people say it: 30m, 12h, 30d or 8w from now, or a date."""
    if match := re.fullmatch(r"(\d{1,9})\s*([smhdw])", text.strip().lower()):
        life = timedelta(**{_UNITS[match[2]]: min(int(match[1]), 1_000_000)})
        return (now or datetime.now(UTC)) + min(life, _LONGEST)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArguments(
            f"{text[:40]!r} is no time", hint="give it as 30m, 12h, 30d or 8w from now, or as 2027-01-31"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def default_of(noun: type, name: str) -> Any:
    """What a field is set back to; `KeyError` where it has no default."""
    return _defaults(noun)[name]


def _walked(noun: type, above: tuple[str, ...], holder: Any) -> "list[Described]":
    found: list[Described] = []
    for name, default in _defaults(noun).items():
        hint = get_type_hints(noun, include_extras=True)[name]
        said, kind = _taken_apart(hint)
        default = default if holder is None else getattr(holder, name)
        # What says nothing of itself and may be missing is a fact, and no group of settings.
        if not _is_noun(kind) or (said is None and default is None):
            found.append(_described((*above, name), said or _UNSAID, hint, default))
            continue
        inner = _walked(kind, (*above, name), default)
        if said:
            outer: dict[str, Any] = {"who": said.who, **({"derived": True} if said.derived else {})}
            inner = [
                dataclasses.replace(one, setting=dataclasses.replace(one.setting, **outer)) for one in inner
            ]
        found += inner
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


def type_of(hint: Any) -> Any:
    """The type of a field, without `None` and without what is said beside it."""
    return _taken_apart(hint)[1]


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


def _described(path: tuple[str, ...], said: Setting, hint: Any, default: Any) -> Described:
    _, kind = _taken_apart(hint)
    origin = get_origin(kind) or kind
    is_list = origin in _LISTS
    _, one = _taken_apart(get_args(kind)[0]) if is_list else (None, kind)
    choices = tuple(map(str, get_args(one))) if get_origin(one) is Literal else ()
    value_kind = "list" if is_list else "choice" if choices else _KINDS.get(origin, "text")
    return Described(path=path, setting=said, kind=value_kind, choices=choices, default=default, hint=hint)
