"""The inputs and arguments that a registry record declares, and the texts they are put into. Pure.

Whatever comes from a record is somebody else's: a `${VAR}` in it would read this machine's environment, so
it is refused; only what a person answers may refer to a variable.
"""

import re
import shlex
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


MAX_ARGUMENTS = 64
# What a record may tell a runner to do. Everything else (another index, a shell, more rights) is refused.
RUNNER_FLAGS: Mapping[str, frozenset[str]] = {
    "npx": frozenset({"-y", "--yes", "-q", "--quiet", "--silent", "--prefer-online", "--prefer-offline"}),
    "uvx": frozenset({"--python", "-p", "-q", "--quiet", "--refresh", "--isolated", "--prerelease"}),
    "docker": frozenset(
        {"run", "-i", "--interactive", "--rm", "--init", "-e", "--env", "--mount", "-v", "--volume", "--pull"}
        | {
            "-p",
            "--publish",
            "--network",
            "--name",
            "--platform",
            "-u",
            "--user",
            "-w",
            "--workdir",
            "--read-only",
        }
    ),
}
_WITHOUT_VALUE = frozenset(
    {
        "run",
        "-i",
        "--interactive",
        "--rm",
        "--init",
        "--read-only",
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "--silent",
    }
    | {"--prefer-online", "--prefer-offline", "--refresh", "--isolated"}
)
_MOUNTS = frozenset({"-v", "--volume", "--mount"})
_WHOLE_MACHINE = ("docker.sock", "source=/,", "src=/,", "source=/etc", "src=/etc")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandArgument:
    """`--flag value`, a bare flag, or a value by itself."""

    flag: str | None = None
    value: InputTemplate | None = None

    @property
    def shown(self) -> str:
        """As one would type it; what may be left out is in brackets."""
        words = [self.flag] if self.flag else []
        if self.value:
            words.append(self.value.shown if self.value.inputs else shlex.quote(self.value.text))
        is_optional = self.value is not None and self.value.inputs and not self.value.is_required
        return f"[{' '.join(words)}]" if is_optional else " ".join(words)

    def filled(self, answers: Mapping[str, str]) -> list[str]:
        if self.value is None:
            return [self.flag] if self.flag else []
        value = self.value.filled(answers)
        if value is None or (self._is_switch and value == "false"):
            return []
        if self._is_switch and value == "true" and self.flag:
            return [self.flag]
        return [self.flag, value] if self.flag else [value]

    @property
    def _is_switch(self) -> bool:
        return bool(self.value and self.flag and any(one.format == "boolean" for one in self.value.inputs))


def read_arguments(raw: Any) -> tuple[CommandArgument, ...]:
    listed = entries(raw)
    if len(listed) > MAX_ARGUMENTS:
        raise InvalidConfig(
            f"it has {len(listed)} arguments; no honest server needs more than {MAX_ARGUMENTS}"
        )
    return tuple(_read(table(item), number) for number, item in enumerate(listed, 1))


def check_runner(runner: str, arguments: tuple[CommandArgument, ...]) -> None:
    """`InvalidConfig` when a record would make the runner do more than run the package."""
    allowed = RUNNER_FLAGS[runner]
    follows: str | None = None
    for argument in arguments:
        words = [argument.flag] if argument.flag else []
        words += [argument.value.text] if argument.value else []
        for word in words:
            flag, _, value = word.partition("=")
            if follows is None and flag not in allowed:
                raise InvalidConfig(
                    f"it wants to run {runner} with {flag[:60]!r}, which Dragoman does not allow"
                )
            if follows in _MOUNTS or flag in _MOUNTS:
                _check_mount(value if flag in _MOUNTS else word)
            is_complete = follows is not None or "=" in word or flag in _WITHOUT_VALUE
            follows = None if is_complete else flag


def _check_mount(mount: str) -> None:
    if mount.startswith(("/:", "/etc")) or any(part in mount for part in _WHOLE_MACHINE):
        raise InvalidConfig("it wants to see this machine's own files, which Dragoman does not allow")


def _read(facts: dict[str, Any], number: int) -> CommandArgument:
    kind = facts.get("type", "positional")
    if kind == "positional":
        hint = text(facts, "valueHint") or f"argument_{number}"
        return CommandArgument(value=read_template(facts, hint))
    if kind != "named":
        raise InvalidConfig(f"argument {number} is neither positional nor named")
    flag = checked(str(facts.get("name") or ""))
    if not flag.strip("-") or any(sign.isspace() for sign in flag):
        raise InvalidConfig(f"argument {number} has no proper name")
    flag = flag if flag.startswith("-") else f"--{flag}"
    is_bare = text(facts, "value") is None and text(facts, "default") is None and not _asks(facts)
    if is_bare and flag in _WITHOUT_VALUE:
        return CommandArgument(flag=flag)
    return CommandArgument(flag=flag, value=read_template(facts, flag.lstrip("-")))


def _asks(facts: dict[str, Any]) -> bool:
    return bool(pick(facts, "valueHint") or pick(facts, "isRequired") or facts.get("choices"))
