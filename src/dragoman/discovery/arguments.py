"""Arguments of a command as a registry record declares them. No shell ever sees them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.discovery.inputs import InputTemplate, checked, entries, pick, read_template, table, text
from dragoman.errors import InvalidConfig

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
