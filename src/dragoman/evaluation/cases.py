"""The file of an evaluation: connectors, variants to compare, and cases with what is expected of them.

Pure but for reading the file. Whatever is wrong in it is `InvalidConfig` with the line and the field.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from dragoman.agent import Exposure
from dragoman.errors import InvalidConfig

_MOST_TRIALS = 1_000


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Positive = Annotated[float, Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Expectations(_Strict):
    """All that are given must hold. Tools are named `connector__tool`, as in `dragoman call`."""

    status: Literal["done", "failed", "cancelled"] = "done"
    tools: Texts = ()
    no_tools: Texts = ()
    arguments: Mapping[str, Mapping[str, Any]] = {}
    times: Mapping[str, Annotated[int, Field(ge=0)]] = {}
    answer: Texts = ()
    answer_matches: str | None = None
    no_answer: Texts = ()
    approvals: Texts = ()
    questions: Annotated[int, Field(ge=0)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_requests: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost: Positive | None = None
    max_seconds: Positive | None = None

    @property
    def names(self) -> set[str]:
        """Every tool or function that something is said of."""
        return {*self.tools, *self.no_tools, *self.arguments, *self.times, *self.approvals}

    @model_validator(mode="after")
    def _check(self) -> "Expectations":
        if self.answer_matches is not None:
            try:
                re.compile(self.answer_matches)
            except re.error as error:
                raise ValueError(f"answer_matches is no regular expression: {error}") from None
        return self


class Case(_Strict):
    """`message` is what a person writes, several in a row in one thread. `connectors` are active there.

    `approve` is what the person says to approvals: yes to all, to these tools, or, as it is, no.
    `answers` are what they answer to questions, in turn; then they decline.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)]
    message: Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
    connectors: tuple[str, ...] | None = None
    agent: str | None = None
    approve: bool | tuple[str, ...] = False
    answers: tuple[str | Mapping[str, Any], ...] = ()
    repeat: Annotated[int, Field(ge=1, le=_MOST_TRIALS)] | None = None
    timeout: Positive = 300.0
    expect: Expectations

    def approves(self, tool: str) -> bool:
        return self.approve if isinstance(self.approve, bool) else tool in self.approve


class CaseVariant(_Strict):
    """One way to try the cases. What is not set is as this installation has it.

    `instructions` are added to what the assistant is told.
    """

    model: str | None = None
    exposure: Exposure | None = None
    instructions: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """As a message takes them."""
        given = {"model": self.model, "exposure": self.exposure}
        return {name: value for name, value in given.items() if value is not None}


class EvaluationFile(_Strict):
    """`connectors` by name, as `dragoman connectors add` takes them; without any, those of this installation.

    A `service` in one is a program that is started first; the line that it prints is the {url} of the rest.
    """

    repeat: Annotated[int, Field(ge=1, le=_MOST_TRIALS)] = 1
    connectors: Mapping[str, Mapping[str, Any]] = {}
    variants: Mapping[str, CaseVariant] = {}
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "EvaluationFile":
        names = [case.name for case in self.cases]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two cases are named {sorted(twice)[0]!r}")
        for case in self.cases:
            for name in case.connectors or ():
                if self.connectors and name not in self.connectors:
                    raise ValueError(
                        f"the case {case.name!r} wants the connector {name!r}, which is not here"
                    )
        if not self.connectors and any(one.instructions for one in self.variants.values()):
            raise ValueError("a variant with instructions needs connectors in the file: your own stay as is")
        return self

    def with_cases(self, patterns: Sequence[str]) -> "EvaluationFile":
        """Only the cases whose names fit one of the patterns."""
        if not patterns:
            return self
        chosen = [one for one in self.cases if any(fnmatchcase(one.name, pattern) for pattern in patterns)]
        if not chosen:
            names = ", ".join(case.name for case in self.cases[:10])
            raise InvalidConfig(f"no case is named {' or '.join(patterns)}", hint=f"there are: {names}")
        return self.model_copy(update={"cases": tuple(chosen)})


def read_file(path: Path) -> EvaluationFile:
    text = ""
    try:
        text = path.read_text("utf-8")
        return EvaluationFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path}: this is no TOML: {error}", hint=_HINT) from None
    except UnicodeDecodeError:
        raise InvalidConfig(f"{path} is no UTF-8 text", hint=_HINT) from None
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}", hint=_HINT) from None
    except ValidationError as error:
        flaws = [_flaw(path, text, one["loc"], one["msg"]) for one in error.errors()]
        raise InvalidConfig("\n".join(flaws[:5]), hint=_HINT) from None


_HINT = "the guide Evaluate tells all fields; evaluation.toml among the examples is a file that works"


def _flaw(path: Path, text: str, place: Sequence[str | int], message: str) -> str:
    """`cases.toml:12: cases[0].expect.max_cost: …`"""
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
    told = message.removeprefix("Value error, ")
    return f"{path}:{_line(text.splitlines(), place)}: {field + ': ' if field else ''}{told}"


def _line(lines: Sequence[str], place: Sequence[str | int]) -> int:
    """Where the field is written, or the table that it would be in. Line 1 where neither is found."""
    table, *rest = [*place, ""]
    start, end = 0, len(lines)
    if table == "cases" and rest and isinstance(rest[0], int):
        heads = [at for at, line in enumerate(lines) if re.match(r"\s*\[\[\s*cases\s*\]\]", line)]
        start = heads[rest[0]] if rest[0] < len(heads) else 0
        end = next((at for at in heads if at > start), len(lines))
    for step in reversed([one for one in place if isinstance(one, str)]):
        for at in range(start, end):
            if re.search(rf"(?:^|[\s\[.{{,\"']){re.escape(step)}[\"']?\s*[\].=]", lines[at]):
                return at + 1
    return start + 1
