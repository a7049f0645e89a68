"""Requests and answers of the REST door made from the description of a noun: a field for each setting."""

import dataclasses
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    create_model,
)

from dragoman.setting import Setting, people_set
from dragoman.web.shape import Shape, Sorted, SortedOrNone

# For one version they are also called bounds.
LIMITS_OR_BOUNDS = AliasChoices("limits", "bounds")
_STRICT: dict[Any, Any] = {bool: StrictBool, int: StrictInt, float: StrictFloat}  # "5" is no number


class SettingsRequest(BaseModel):
    """What is left out stays as it is; null sets back to the default."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    described: ClassVar[frozenset[str]] = frozenset()

    def settings(self) -> dict[str, Any]:
        """As the hub takes them: only what was given of what the noun describes."""
        given = {name: getattr(self, name) for name in self.model_fields_set & self.described}
        return {
            name: value.settings() if isinstance(value, SettingsRequest) else value
            for name, value in given.items()
        }


def request_of(noun: type, *only: str) -> type[SettingsRequest]:
    """The base of a request: nothing in it must be given. With `only` it has no other settings."""
    hints = get_type_hints(noun, include_extras=True)
    fields: dict[str, Any] = {}
    for name in only or dict.fromkeys(one.path[0] for one in people_set(noun)):
        said, hint = _without_setting(hints[name])
        alias = LIMITS_OR_BOUNDS if name == "limits" else None
        field = Field(default=None, description=said.meaning, validation_alias=alias)
        fields[name] = (_asked(hint) | None, field)
    made = create_model(f"{noun.__name__}Request", __base__=SettingsRequest, **fields)
    made.described = frozenset(fields)
    return made


def shape_of(noun: type, **before: Any) -> type[Shape]:
    """The base of an answer, with these fields in front of the settings."""
    hints = get_type_hints(noun, include_extras=True)
    names = dict.fromkeys(one.path[0] for one in people_set(noun))
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in before.items()}
    for name in names:
        said, _ = _without_setting(hints[name])
        fields[name] = (_told(hints[name]), Field(description=said.meaning))
    return create_model(f"{noun.__name__}Answer", __base__=Shape, **fields)


def _without_setting(hint: Any) -> tuple[Setting, Any]:
    """What the field says of itself, and its type with the limits of its values but without null."""
    inner, *beside = get_args(hint)
    said = next(one for one in beside if isinstance(one, Setting))
    limits = [one for one in beside if one is not said]
    return said, Annotated[(_not_null(inner), *limits)] if limits else _not_null(inner)


def _not_null(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [one for one in get_args(hint) if one is not NoneType]
    return hint


def _asked(hint: Any) -> Any:
    """As JSON has it: a list for a set, a table for what has settings of its own."""
    if get_origin(hint) is Annotated:
        inner, *beside = get_args(hint)
        return Annotated[(_asked(inner), *beside)]
    if get_origin(hint) is frozenset:
        return list[get_args(hint)[0]]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return request_of(hint)
    return _STRICT.get(hint, hint)


def _told(hint: Any) -> Any:
    """The other way: sets are told as sorted lists."""
    if get_origin(hint) is Annotated:
        return _told(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        told = _told(_not_null(hint))
        return SortedOrNone if told is Sorted else told | None
    if get_origin(hint) is frozenset:
        return Sorted
    return list[_told(get_args(hint)[0])] if get_origin(hint) is tuple else hint
