"""The inputs that a registry record declares, and the texts they are put into. Pure.

Whatever comes from a record is somebody else's: a `${VAR}` in it would read this machine's environment, so
it is refused; only what a person answers may refer to a variable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from dragoman.errors import InvalidConfig

MAX_WORD = 2048
_BRACES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryInput:
    """One value that a person is asked for."""

    name: str
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    format: str = "string"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTemplate:
    """A text with `{name}` where the inputs go. `is_required` says that it cannot be left out."""

    text: str
    inputs: tuple[RegistryInput, ...] = ()
    is_required: bool = True

    @property
    def is_secret(self) -> bool:
        return any(one.is_secret for one in self.inputs)

    @property
    def shown(self) -> str:
        """With the name of each input in angle brackets."""
        return _put(self.text, {one.name: f"<{one.name}>" for one in self.inputs})

    def filled(self, answers: Mapping[str, str]) -> str | None:
        """None when it is optional and has no value; `InvalidConfig` when a value is missing or wrong."""
        values: dict[str, str] = {}
        for one in self.inputs:
            value = answers.get(one.name) or one.default
            if value is None:
                if self.is_required:
                    raise InvalidConfig(
                        f"{one.name} is needed: {one.description or 'the server asks for it'}"
                    )
                return None
            if one.choices and value not in one.choices:
                raise InvalidConfig(f"{one.name} must be one of {', '.join(one.choices)}")
            if _CONTROL.search(value):
                raise InvalidConfig(f"{one.name} must be one line of text")
            values[one.name] = value
        return _put(self.text, values)


def read_template(facts: Table, name: str) -> InputTemplate:
    """A fixed value, a value with variables, or one that is asked for under `name`."""
    is_required = pick(facts, "isRequired") is True
    value = text(facts, "value")
    if value is None:
        asked = _read_input(name, facts)
        return InputTemplate(text=f"{{{asked.name}}}", inputs=(asked,), is_required=is_required)
    variables = table(facts.get("variables"))
    used = dict.fromkeys(word for word in _BRACES.findall(value) if word in variables)
    inputs = tuple(_read_input(word, table(variables[word])) for word in used)
    is_needed = is_required or not inputs or any(one.is_required for one in inputs)
    return InputTemplate(text=value, inputs=inputs, is_required=is_needed)


def _read_input(name: str, facts: Table) -> RegistryInput:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "value"
    choices = pick(facts, "choices")
    return RegistryInput(
        name=name if name[0].isalpha() or name[0] == "_" else f"_{name}",
        description=plain(pick(facts, "description")),
        is_required=pick(facts, "isRequired") is True,
        is_secret=pick(facts, "isSecret") is True,
        default=text(facts, "default"),
        choices=tuple(checked(str(item)) for item in entries(choices)[:50]),
        format=plain(pick(facts, "format")) or "string",
    )


def pick(facts: Table, name: str) -> Any:
    """Records are written in camelCase, older ones in snake_case."""
    if name in facts:
        return facts[name]
    return facts.get(re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name))


def text(facts: Table, name: str) -> str | None:
    value = pick(facts, name)
    if isinstance(value, bool):
        value = str(value).lower()
    return None if value is None or value == "" else checked(str(value))


def checked(word: str) -> str:
    """The word itself; `InvalidConfig` for what no honest record has."""
    if len(word) > MAX_WORD:
        raise InvalidConfig(f"a value is longer than {MAX_WORD} characters")
    if _CONTROL.search(word):
        raise InvalidConfig("a value holds control characters")
    if "${" in word:
        raise InvalidConfig("a value refers to a variable of this machine's environment")
    return word


def plain(value: Any, limit: int = 500) -> str:
    """Text for people: one line, no control characters, not without end."""
    return " ".join(_CONTROL.sub(" ", str(value)).split())[:limit] if isinstance(value, str) else ""


def table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}


def entries(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _put(template: str, values: Mapping[str, str]) -> str:
    return _BRACES.sub(lambda match: values.get(match[1], match[0]), template)
