"""A form made from a tool's JSON schema, and the arguments read back from what was typed. Pure.

A draft is what a browser sends: names of controls and their texts. `v:/a/0` is a value, `n:/a` how many
entries a list has, `has:/a` that an optional part is given, `is:/a` which of several shapes was chosen.
What was never shown is not in the draft. What cannot be a form is typed as JSON.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal, cast

from dragoman.catalog.schema_shapes import MISSING, ValueShape, shape_of

Draft = Mapping[str, str]
Kind = Literal["text", "long", "number", "integer", "date", "moment", "choice", "object", "list", "variant",
               "json", "fixed"]  # fmt: skip

MOST_ENTRIES = 200
_MOST_FIELDS = 400
_DEEPEST = 10
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
_LEFT_OUT = ("", "leave out")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormControl:
    """One control, or a group of them. `value` is what was read from it; `MISSING` where it is left out.

    `text` is what the control shows, `default` what holds where it is left out. Optional groups that are not
    `is_given` show nothing but a way to give them.
    """

    path: str
    name: str
    kind: Kind
    is_required: bool
    shape: ValueShape
    text: str = ""
    options: tuple[tuple[str, str], ...] = ()
    parts: "tuple[FormControl, ...]" = ()
    is_given: bool = True
    value: Any = MISSING
    problem: str = ""

    @property
    def id(self) -> str:
        """Stable while the form changes around it, and a word whatever the property is called."""
        return f"f{sha256(self.path.encode('utf-8', 'replace')).hexdigest()[:10]}"

    @property
    def default(self) -> str:
        default = self.shape.default
        if default in (MISSING, None):
            return ""
        if isinstance(default, bool):
            return "yes" if default else "no"
        return compact(default)

    def walk(self) -> "Iterator[FormControl]":
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class SchemaForm:
    fields: tuple[FormControl, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        return {field.name: field.value for field in self.fields if field.value is not MISSING}

    @property
    def problems(self) -> list[FormControl]:
        return [field for top in self.fields for field in top.walk() if field.problem]


def form_of(schema: Mapping[str, Any], draft: Draft) -> SchemaForm:
    """The form as it stands with this draft; an empty draft gives the form as it is first shown."""
    walk = _Walk(schema, draft)
    return SchemaForm(walk.properties(shape_of(schema, schema), "", 0))


def draft_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """The draft that reads as these arguments; None where the form cannot show all of them."""
    draft: dict[str, str] = {}
    for field in form_of(schema, {}).fields:
        if field.name in arguments:
            draft |= _drafted(schema, field, arguments[field.name])
        elif field.kind not in ("object", "list", "variant"):
            draft[f"v:{field.path}"] = ""
    return draft if form_of(schema, draft).arguments == dict(arguments) else None


def with_entry(draft: Draft, path: str) -> dict[str, str]:
    count = _count(draft.get(f"n:{path}", "0"))
    return {**draft, f"n:{path}": str(min(count + 1, MOST_ENTRIES))}


def without_entry(draft: Draft, path: str, index: int) -> dict[str, str]:
    """The entries behind it move up."""
    changed: dict[str, str] = {}
    for key, text in draft.items():
        kind, _, place = key.partition(":")
        if place.startswith(f"{path}/"):
            word, slash, rest = place[len(path) + 1 :].partition("/")
            number = _count(word)
            if number == index:
                continue
            if number > index:
                key = f"{kind}:{path}/{number - 1}{slash}{rest}"
        changed[key] = text
    changed[f"n:{path}"] = str(max(0, _count(draft.get(f"n:{path}", "0")) - 1))
    return changed


def compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class _Walk:
    """Goes through a schema once, beside what was typed."""

    def __init__(self, root: Mapping[str, Any], draft: Draft) -> None:
        self._root = root
        self._draft = draft
        self._left = _MOST_FIELDS

    def properties(self, shape: ValueShape, path: str, depth: int) -> tuple[FormControl, ...]:
        return tuple(
            self._field(part, f"{path}/{_escaped(name)}", name, name in shape.required, depth + 1)
            for name, part in shape.properties.items()
        )

    def _field(self, schema: Any, path: str, name: str, is_required: bool, depth: int) -> FormControl:
        shape = shape_of(schema, self._root)
        kind = _kind_of(shape, name)
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            kind = "json"
        field = FormControl(path=path, name=name, kind=kind, is_required=is_required, shape=shape)
        field = getattr(self, f"_{kind}")(field, depth)
        if field.value is MISSING and not field.problem and is_required:
            if shape.is_nullable:
                return replace(field, value=None)
            return replace(field, problem=_WANTED.get(kind, "It is needed."))
        return field

    # Groups

    def _object(self, field: FormControl, depth: int) -> FormControl:
        is_given = (field.is_required and not field.shape.is_nullable) or f"has:{field.path}" in self._draft
        if not is_given:
            return replace(field, is_given=False)
        parts = self.properties(field.shape, field.path, depth)
        value = {part.name: part.value for part in parts if part.value is not MISSING}
        return replace(field, parts=parts, value=value)

    def _list(self, field: FormControl, depth: int) -> FormControl:
        first = field.shape.least if field.is_required else 0
        count = min(_count(self._draft.get(f"n:{field.path}", str(first))), MOST_ENTRIES)
        parts = tuple(
            self._field(field.shape.items, f"{field.path}/{index}", f"{index + 1}", True, depth + 1)
            for index in range(count)
        )
        value: Any = [part.value for part in parts if part.value is not MISSING]
        if not count and not (field.is_required and not field.shape.is_nullable):
            value = MISSING
        return replace(field, parts=parts, text=str(count), value=value)

    def _variant(self, field: FormControl, depth: int) -> FormControl:
        may_be_left = not field.is_required or field.shape.is_nullable
        chosen = self._draft.get(f"is:{field.path}", "" if may_be_left else "0")
        labels = tuple((str(index), one.label) for index, one in enumerate(field.shape.variants))
        options = (_LEFT_OUT, *labels) if may_be_left else labels
        field = replace(field, options=options, text=chosen)
        if not chosen.isdigit() or int(chosen) >= len(labels):
            return field
        variant = field.shape.variants[int(chosen)]
        part = self._field(variant.schema, field.path, variant.label, True, depth + 1)
        return replace(field, parts=(part,), value=part.value)

    # Controls

    def _text(self, field: FormControl, depth: int) -> FormControl:
        text = self._typed(field)
        is_left_out = not text and not (field.is_required and not field.shape.is_nullable)
        return replace(field, text=text, value=MISSING if is_left_out else text)

    _long = _text

    def _date(self, field: FormControl, depth: int) -> FormControl:
        text = self._typed(field)
        return replace(field, text=text, value=text or MISSING)

    def _moment(self, field: FormControl, depth: int) -> FormControl:
        """Browsers give no zone, and what JSON calls a date-time has one: people are told that it is UTC."""
        text = self._typed(field).removesuffix("Z")
        if not text:
            return replace(field, text=text)
        if not _MOMENT.fullmatch(text):
            return replace(field, text=text, problem="Give a date and a time.")
        return replace(field, text=text, value=f"{text}:00Z" if _MINUTE.fullmatch(text) else f"{text}Z")

    def _integer(self, field: FormControl, depth: int) -> FormControl:
        text = self._typed(field).strip()
        if not text or _WHOLE.fullmatch(text):
            return replace(field, text=text, value=int(text) if text else MISSING)
        return replace(field, text=text, problem="Give a whole number.")

    def _number(self, field: FormControl, depth: int) -> FormControl:
        text = self._typed(field).strip()
        if not text or _WHOLE.fullmatch(text):
            return replace(field, text=text, value=int(text) if text else MISSING)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return replace(field, text=text, value=number)
        return replace(field, text=text, problem="Give a number.")

    def _choice(self, field: FormControl, depth: int) -> FormControl:
        may_be_left = not field.is_required or field.shape.is_nullable
        first = self._first_choice(field, may_be_left)
        text = self._draft.get(f"v:{field.path}", first)
        labels = tuple((str(index), label) for index, (_, label) in enumerate(field.shape.choices))
        is_chosen = text.isdigit() and int(text) < len(labels)
        value = field.shape.choices[int(text)][0] if is_chosen else MISSING
        options = (_LEFT_OUT, *labels) if may_be_left or not first else labels
        return replace(field, text=text, options=options, value=value)

    def _first_choice(self, field: FormControl, may_be_left: bool) -> str:
        if may_be_left:
            return ""
        for index, (value, _) in enumerate(field.shape.choices):
            if value == field.shape.default and isinstance(value, bool) == isinstance(
                field.shape.default, bool
            ):
                return str(index)
        return ""

    def _fixed(self, field: FormControl, depth: int) -> FormControl:
        return (
            replace(field, text=compact(field.shape.constant), value=field.shape.constant)
            if (field.is_required)
            else field
        )

    def _json(self, field: FormControl, depth: int) -> FormControl:
        default = field.shape.default
        first = (
            json.dumps(default, ensure_ascii=False) if field.is_required and default is not MISSING else ""
        )
        text = self._draft.get(f"v:{field.path}", first)
        if not text.strip():
            return replace(field, text=text)
        try:
            return replace(field, text=text, value=read_json(text))
        except ValueError as error:
            return replace(field, text=text, problem=f"This is not valid JSON: {error}.")

    def _typed(self, field: FormControl) -> str:
        default = field.shape.default
        first = compact(default) if field.is_required and default not in (MISSING, None) else ""
        return self._draft.get(f"v:{field.path}", first)


_WANTED = {"choice": "Choose one.", "date": "Give a date.", "moment": "Give a date and a time."}


def read_json(text: str) -> Any:
    """`ValueError` says what is wrong and where."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _kind_of(shape: ValueShape, name: str) -> Kind:
    if shape.constant is not MISSING:
        return "fixed"
    if shape.choices:
        return "choice"
    if shape.variants:
        return "variant"
    if shape.type == "object" and shape.properties:
        return "object"
    if shape.type == "array" and shape.items is not None:
        return "list"
    if shape.type == "string":
        return _kind_of_string(shape, name)
    return cast("Kind", shape.type) if shape.type in ("integer", "number") else "json"


def _kind_of_string(shape: ValueShape, name: str) -> Kind:
    if shape.format in ("date", "date-time"):
        return "date" if shape.format == "date" else "moment"
    long = {"body", "text", "content", "message", "description", "prompt", "code", "html", "markdown", "sql"}
    return "long" if name.lower() in long or (shape.longest or 0) > 200 else "text"


def _drafted(root: Mapping[str, Any], field: FormControl, value: Any) -> dict[str, str]:
    """What would have to be typed for this value. The caller checks that it reads as the same."""
    path, shape = field.path, field.shape
    if field.kind == "object" and isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        inner = _Walk(root, {}).properties(shape, path, 0)
        draft = {f"has:{path}": "1"}
        for part in inner:
            draft |= _drafted(root, part, given[part.name]) if part.name in given else _left(part)
        return draft
    if field.kind == "list" and isinstance(value, list):
        entries = cast("list[Any]", value)
        draft = {f"n:{path}": str(len(entries))}
        grown = _Walk(root, draft)._list(field, 0)  # pyright: ignore[reportPrivateUsage]
        for part, entry in zip(grown.parts, entries, strict=False):
            draft |= _drafted(root, part, entry)
        return draft
    if field.kind == "variant":
        return _drafted_variant(root, field, value)
    if field.kind == "choice":
        same = [
            str(i) for i, (one, _) in enumerate(shape.choices) if one == value and type(one) is type(value)
        ]
        return {f"v:{path}": same[0] if same else ""}
    if field.kind == "json":
        return {f"v:{path}": json.dumps(value, ensure_ascii=False)}
    return {f"v:{path}": "" if value is None else compact(value)}


def _drafted_variant(root: Mapping[str, Any], field: FormControl, value: Any) -> dict[str, str]:
    for index in range(len(field.shape.variants)):
        draft = {f"is:{field.path}": str(index)}
        (part,) = _Walk(root, draft)._variant(field, 0).parts  # pyright: ignore[reportPrivateUsage]
        draft |= _drafted(root, part, value)
        again = _Walk(root, draft)._variant(field, 0)  # pyright: ignore[reportPrivateUsage]
        if again.value == value and not any(one.problem for one in again.walk()):
            return draft
    return {f"is:{field.path}": ""}


def _left(field: FormControl) -> dict[str, str]:
    return {} if field.kind in ("object", "list", "variant") else {f"v:{field.path}": ""}


def _count(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 6 else 0


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
