"""`${…}` of every editor, turned into what Dragoman knows: a variable of the environment, or a question.

`${env:VAR}` becomes `${VAR}`, `${userHome}` a folder, `${input:id}` and an unknown `${workspaceFolder}`
become needs. What only an editor can answer is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from dragoman.errors import InvalidConfig
from dragoman.formats.import_plan import FoundConnector, RequiredInput
from dragoman.secret_recognition import PREFIX

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(:-.*)?", re.DOTALL)
_INPUT = "${input:%s}"
_FOLDER = RequiredInput(name="workspaceFolder", description="the folder that this file was written for")
# Only these are expanded when a connection opens; elsewhere a variable is read at import.
_EXPANDED_LATER = frozenset({"args", "env", "url", "headers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFolders:
    """Folders that a file may refer to; None where nobody knows them."""

    folder: str | None = None
    home: str | None = None


@dataclass(slots=True)
class Variables:
    """Translates the placeholders of one entry and collects what must be asked for."""

    places: BaseFolders
    inputs: Mapping[str, RequiredInput] = field(default_factory=dict[str, RequiredInput])
    needs: dict[str, RequiredInput] = field(default_factory=dict[str, RequiredInput])

    def translated(self, text: str, name: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._translate(match[1], name), text)

    def _translate(self, word: str, name: str) -> str:
        places = self.places
        if word.startswith(PREFIX):
            return f"${{{word}}}"  # its value comes beside it, or must be brought
        if word.startswith("input:"):
            return self._asked(self.inputs.get(word[6:]) or RequiredInput(name=word[6:]))
        if word == "userHome":
            if places.home:
                return places.home
            word = "HOME"
        if word == "workspaceFolder":
            return places.folder or self._asked(_FOLDER)
        if word == "workspaceFolderBasename" and places.folder:
            return places.folder.rstrip("/").rpartition("/")[2]
        if word in ("/", "pathSeparator"):
            return "/"
        variable = word.removeprefix("env:")
        if not _PLAIN.fullmatch(variable):
            raise InvalidConfig(
                f"its {name} uses ${{{word[:40]}}}, which only the editor knows: write the value itself"
            )
        if name in _EXPANDED_LATER:
            return f"${{{variable}}}"
        bare, _, default = variable.partition(":-")
        return self._asked(
            RequiredInput(
                name=f"env:{bare}", description=f"its {name} needs this variable", default=default or None
            )
        )

    def _asked(self, need: RequiredInput) -> str:
        self.needs[need.name] = need
        return _INPUT % need.name


def filled(
    found: FoundConnector, values: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[RequiredInput, ...]]:
    """The facts with every answer in its place, and the needs that have no answer.

    A variable or header that holds a secret answer is marked, so that it is encrypted whatever its name.
    """
    known = {need.name: values.get(need.name, need.default) for need in found.needs}
    open_needs = tuple(need for need in found.needs if known[need.name] is None)
    facts = dict(found.facts)
    secret = set(facts.get("secret", ()))
    secrets = [_INPUT % need.name for need in found.needs if need.is_secret]
    for field_name, prefix in (("env", "env"), ("headers", "header")):
        for name, value in facts.get(field_name, {}).items():
            if any(mark in value for mark in secrets):
                secret.add(f"{prefix}:{name}")
    answers = {_INPUT % name: value for name, value in known.items() if value is not None}
    facts = {name: _answered(value, answers) for name, value in facts.items()}
    return facts | ({"secret": tuple(sorted(secret))} if secret else {}), open_needs


def asked_instead(found: FoundConnector) -> FoundConnector:
    """The same entry where every variable of the environment is a question to the person who imports it.

    For people who may not read the environment of the process: what they bring along is theirs to fill in.
    """
    needs = {need.name: need for need in found.needs}

    def question(match: re.Match[str]) -> str:
        name, _, default = match[1].partition(":-")
        need = RequiredInput(
            name=f"env:{name}",
            description="a variable that the file refers to",
            is_secret=True,
            default=default if ":-" in match[1] else None,
        )
        needs.setdefault(need.name, need)
        return _INPUT % need.name

    def asked(value: Any) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(
                lambda match: question(match) if _PLAIN.fullmatch(match[1]) else match[0], value
            )
        if isinstance(value, Mapping):
            return {name: asked(item) for name, item in cast("Mapping[str, Any]", value).items()}
        if isinstance(value, tuple | list):
            return tuple(asked(item) for item in cast("tuple[Any, ...]", value))
        return value

    facts = {name: asked(value) for name, value in found.facts.items()}
    return replace(found, facts=facts, needs=tuple(needs.values()))


def _answered(value: Any, answers: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for mark, answer in answers.items():
            value = value.replace(mark, answer)
        return value
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {name: _answered(item, answers) for name, item in table.items()}
    if isinstance(value, tuple | list):
        return tuple(_answered(item, answers) for item in cast("tuple[Any, ...]", value))
    return value
