"""The pages of the reference that are made from the code: commands, REST, library, metrics; and the facts
that are put into the pages of errors and events, whose words people write.

Gives Markdown back and writes nothing: `scripts/docs_site.py` puts it into the site.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, Unpack, cast, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel
from pydantic_ai.toolsets import AbstractToolset
from typer.main import get_command

import dragoman
from dragoman.api.operations_app import operations
from dragoman.cli.root import app
from dragoman.errors import DragomanError
from dragoman.events import EventKind
from dragoman.integrations.model_tools import ModelTools
from dragoman.mcp_endpoint.methods import as_rpc
from dragoman.run import RunEventKind
from dragoman.web.problems import TABLE

ROOT = Path(__file__).parent.parent
# In the order of the page: what they have in common first.
INTEGRATIONS = (
    ("model_tools", "ModelTools"),
    ("openai", "ChatTools"),
    ("openai", "ResponsesTools"),
    ("anthropic", "AnthropicTools"),
    ("pydantic_ai", "HubToolset"),
    ("langchain", "langchain_tools"),
)
EVENTS = "text/event-stream"
SNAPSHOTS = ROOT / "tests" / "contract" / "snapshots"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Without the columns that no row fills."""
    heads, rows = list(heads), [list(row) for row in rows]
    shown = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    lines = [[heads[place] for place in shown], ["---"] * len(shown)]
    lines += [[row[place].replace("|", "\\|").replace("\n", " ") for place in shown] for row in rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) if rows else ""


# Commands


def commands_page() -> str:
    text = (
        "# Commands\n\nEvery command and every option. `--json` prints one JSON document on stdout; what is"
        " told beside the data goes to stderr.\nA command ends with 0 when it worked, with 1 when it failed,"
        " with 2 when it was asked wrongly.\n"
    )
    for path, command in walk(get_command(app)):
        text += f"\n{'#' * min(len(path), 3)}# {' '.join(('dragoman', *path))}\n" if path else ""
        text += help_text(command.help or "") if path else ""
        if not getattr(command, "commands", None):
            text += options_of(command)
    return text


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    children = getattr(command, "commands", {})
    for name in command.list_commands(None) if children else ():
        yield from walk(children[name], (*path, name))


def help_text(text: str) -> str:
    """Paragraphs after \\b keep their lines: examples, and lists."""
    made = ""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        bare = inspect.cleandoc(paragraph.removeprefix("\b")).strip()
        if bare.startswith("dragoman ") or "  " in bare:
            made += f"\n```text\n{bare}\n```\n"
        else:
            made += f"\n{bare}\n"
    return made


def options_of(command: Any) -> str:
    rows: list[list[str]] = []
    for one in command.get_params(
        typer.Context(command)
    ):  # some make their options when they are asked for them
        if one.hidden or one.name in ("as_json", "help"):
            continue
        names = " ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
        if one.param_type_name == "argument":
            name = (one.metavar or one.name).upper().rstrip(".…")
            names = f"`{name[1:-1] if name[0] in '[{' else name}`"
        value = "" if getattr(one, "is_flag", False) or one.param_type_name == "argument" else value_of(one)
        default = one.default if one.default not in (None, False, "", (), []) else ""
        notes = with_need(one.help or "", one.required)
        rows.append([names, value, notes, f"`{default}`" if default and not callable(default) else ""])
    return table(["name", "value", "meaning", "default"], rows)


def value_of(option: Any) -> str:
    kind = option.type_descriptor.annotation
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    word = "number" if kind in (int, float) else "text"
    return (f"`{option.metavar}`" if option.metavar else word) + (", several" if option.multiple else "")


# REST


@cache
def openapi() -> dict[str, Any]:
    return operations().openapi()


def rest_page() -> str:
    document = openapi()
    text = (
        "# REST\n\nEvery operation of `dragoman serve`, as [openapi.json](openapi.json) describes it.\n\n"
        "Each request carries `Authorization: Bearer …` with the service's token (`dragoman token`) or an API"
        " key. What goes wrong\nis an RFC 9457 problem with a `code` of the [list of errors](errors.md).\n"
    )
    groups: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            group = operation["tags"][0]
            groups.setdefault(group, f"\n## {group.capitalize()}\n")
            groups[group] += operation_text(method.upper(), path, operation)
    return text + "".join(groups.values())


def operation_text(method: str, path: str, operation: dict[str, Any]) -> str:
    text = f"\n### {method} {path}\n\n{operation['summary'].capitalize()}."
    text += f" {operation['description']}\n" if operation.get("description") else "\n"
    rows = [
        [
            f"`{one['name']}`",
            one["in"],
            kind_of(one["schema"]),
            with_need(one.get("description") or "", one.get("required", False)),
        ]
        for one in operation.get("parameters", ())
    ]
    rows += list(body_rows(operation.get("requestBody")))
    text += table(["field", "in", "value", "meaning"], rows)
    answers = [
        f"`{status}` {answer_of(answer)}".strip()
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    ]
    return f"{text}\nAnswers {' or '.join(answers)}.\n"


def with_need(meaning: str, is_required: bool) -> str:
    sentence = f"{meaning}{'' if not meaning or meaning.endswith(('.', ':')) else '.'} Required."
    return sentence.strip() if is_required else meaning


def answer_of(answer: dict[str, Any]) -> str:
    """By which shape, and whether it is, or can be, a stream."""
    kind = kind_of(schema) if (schema := schema_of(answer)) else ""
    events = "server-sent events" if EVENTS in answer.get("content", {}) else ""
    return " or ".join(word for word in (kind, events) if word)


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    for content in body.get("content", {}).values():
        return content.get("schema")
    return None


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def body_rows(body: dict[str, Any] | None) -> Iterator[list[str]]:
    schema = schema_of(body) if body else None
    if not schema:
        return
    schema = resolved(schema)
    for name, field in schema.get("properties", {}).items():
        meaning = field.get("description") or resolved(field).get("description") or ""
        is_needed = name in schema.get("required", ())
        yield [f"`{name}`", "body", kind_of(field), with_need(meaning, is_needed)]


def kind_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        inner = resolved(schema)
        return ", ".join(f"`{one}`" for one in inner["enum"]) if "enum" in inner else f"{inner['title']}"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if inner := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(kind_of(one) for one in inner if one.get("type") != "null"))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("type") or schema.get("title") or "any")


# Errors, events, metrics


def heard(name: str) -> dict[str, Any]:
    """What a running service says of itself; tests/contract keeps the file true."""
    return json.loads((SNAPSHOTS / f"{name}.json").read_text(encoding="utf-8"))


@cache
def error_facts() -> dict[str, str]:
    """One line for each code."""
    made: dict[str, str] = {}
    for kind in all_below(DragomanError):
        status, title = TABLE.get(kind.code, TABLE["error"])
        public = f" · in Python `{kind.__name__}`" if kind.__name__ in dragoman.__all__ else ""
        again = "retryable" if kind.retryable else "not retryable"
        number = as_rpc(kind("what happened")).code
        # What is below it may go by the same code; the first is the one that the code is named after.
        made.setdefault(kind.code, f"*{title}.* HTTP {status} · JSON-RPC {number} · {again}{public}")
    return made


def all_below(kind: type[DragomanError]) -> list[type[DragomanError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in all_below(child))]


@cache
def event_facts() -> dict[str, str]:
    """The fields of each kind; those that a kind of both sorts has stand in one line each."""
    known = heard("events")
    sorts = {"of an installation": (EventKind, "Data"), "of a run": (RunEventKind, "Data in a run")}
    made: dict[str, str] = {}
    for sort, (kinds, title) in sorts.items():
        for kind in get_args(kinds):
            found = [name for name in known[sort].get(kind, ()) if name.startswith("data.")]
            words = ", ".join(f"`{name.removeprefix('data.')}`" for name in found) or "none"
            made[kind] = made.get(kind, "") + (f"{title}: {words}.\n" if found else "")
    return {kind: text.strip() for kind, text in made.items()}


def metrics_table() -> str:
    rows: list[list[str]] = []
    for family, facts in heard("metrics").items():
        name = f"{family}_total" if facts["type"] == "counter" else family
        labels = sorted({label for one in facts["samples"].values() for label in one} - {"le"})
        rows.append([f"`{name}`", facts["type"], ", ".join(f"`{one}`" for one in labels), facts["help"]])
    return table(["metric", "type", "labels", "what it counts"], rows)


def with_facts(page: str, facts: dict[str, str]) -> str:
    """Puts the facts below the heading of each name."""

    def put(heading: re.Match[str]) -> str:
        return f"{heading[0]}\n\n{facts[heading[1]]}" if facts.get(heading[1]) else heading[0]

    return re.sub(r"^### `([a-z_.]+)`$", put, page, flags=re.MULTILINE)


# Library


def library_page() -> str:
    text = (
        "# Library\n\n`from dragoman import Hub` is the way in. Every name on this page is exported by"
        " `dragoman` and typed.\n[Use it from Python](../guides/python.md) shows how it goes together.\n"
    )
    hub, bound = dragoman.Hub, dragoman.BoundHub
    services = dict(services_of(bound))
    text += f"\n## Hub\n\n{doc(hub)}\n\n```python\n{signature('Hub', hub.__init__)}\n```\n"
    text += "\nFor somebody else it is a `BoundHub`: all of this but what belongs to the installation.\n"
    text += methods_of(hub, skipped=services)
    for name, service in services.items():
        text += f"\n## hub.{name}\n\n`{service.__name__}`. {doc(getattr(bound, name))}\n{methods_of(service)}"
    text += "\n## Values\n\nWhat methods take and give. Frozen, unless they are tables of settings.\n"
    known = {hub, bound, *services.values()}
    for name in dragoman.__all__:
        value = getattr(dragoman, name)
        if inspect.isclass(value) and value not in known and not issubclass(value, Exception):
            text += f"\n### {name}\n\n{doc(value)}\n{fields_of(value)}{methods_of(value, level=4)}"
    text += integrations()
    text += "\n## Errors\n\nA tool's failure is a value (`output.error`); what else goes wrong is raised.\n"
    rows = [
        [f"`{name}`", f"[`{kind.code}`](errors.md#{kind.code})", doc(kind)]
        for name in dragoman.__all__
        if inspect.isclass(kind := getattr(dragoman, name)) and issubclass(kind, DragomanError)
    ]
    return text + table(["class", "code", "what it means"], rows)


def integrations() -> str:
    text = f"\n## Integrations\n\n{doc(import_module('dragoman.integrations'))}\n"
    for module, name in INTEGRATIONS:
        value = getattr(import_module(f"dragoman.integrations.{module}"), name)
        made = value.__init__ if value is ModelTools else value
        given = "" if inspect.isclass(value) and value is not ModelTools else signature(name, made)
        text += f"\n### {name}\n\n`from dragoman.integrations.{module} import {name}`. {doc(value)}\n"
        text += f"\n```python\n{given}\n```\n\n{doc(made)}\n" if given else ""
        if inspect.isclass(value):
            known = dir(AbstractToolset) if value is ModelTools else {*dir(AbstractToolset), *dir(ModelTools)}
            text += methods_of(value, skipped=known, level=4)
    return text


def services_of(hub: type) -> Iterator[tuple[str, type]]:
    for name, member in inspect.getmembers(hub, lambda one: isinstance(one, property)):
        kind = get_type_hints(member.fget).get("return")
        if inspect.isclass(kind) and kind.__name__ in dragoman.__all__ and not is_dataclass(kind):
            yield name, kind


def doc(what: Any) -> str:
    own = what.__doc__ if inspect.isclass(what) else inspect.getdoc(what)
    return inspect.cleandoc(own or "") if not str(own).startswith(f"{getattr(what, '__name__', '')}(") else ""


def methods_of(kind: type, skipped: Iterable[str] = (), level: int = 3) -> str:
    text, is_record = "", is_dataclass(kind)
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in skipped or is_inherited(kind, name):
            continue
        if isinstance(member, property) and not is_record:
            text += f"\n{'#' * level} {name}\n\n{doc(member)}\n"
        elif inspect.isfunction(member):
            text += f"\n{'#' * level} {name}\n\n```python\n{signature(name, member)}\n```\n\n{doc(member)}\n"
    return text


def is_inherited(kind: type, name: str) -> bool:
    """From pydantic and the like: not ours to describe."""
    owner = next(one for one in kind.__mro__ if name in vars(one) or one is object)
    return not owner.__module__.startswith("dragoman")


def signature(name: str, function: Callable[..., Any]) -> str:
    """As one writes it, a parameter a line where it is long."""
    whole = inspect.signature(function)
    parameters = [one for one in whole.parameters.values() if one.name != "self"]
    words = "async def" if inspect.iscoroutinefunction(function) else "def"
    given = "" if name == "Hub" else f" -> {annotation(whole.return_annotation)}"
    parts: list[str] = []
    keyword_only = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is one.empty else f" = {shown_default(one.default)}"
        kind = f": {annotation(one.annotation)}" if one.annotation is not one.empty else ""
        parts.append(f"{star}{one.name}{kind}{default}")
        if one.kind is one.POSITIONAL_ONLY and one is parameters[-1]:
            parts.append("/")
    line = f"{words} {name}({', '.join(parts)}){given}"
    if len(line) <= 88:
        return line
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{words} {name}(\n{inside}){given}"


def shown_default(value: Any) -> str:
    return repr(value) if value is None or type(value) in (str, int, float, bool, tuple) else "…"


def annotation(kind: Any) -> str:
    """A type as one writes it, without what is said of its values."""
    if kind is None or kind is NoneType:
        return "None"
    if kind is ...:
        return "..."
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return f"[{', '.join(map(annotation, cast('list[Any]', kind)))}]"
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Unpack:
        return f"Unpack[{annotation(inner[0])}]"
    if origin is Annotated:
        return annotation(inner[0])
    if origin in (Union, UnionType):
        return " | ".join(map(annotation, inner))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    name = getattr(kind, "__name__", None) or str(kind).rpartition(".")[2]
    return f"{getattr(origin, '__name__', name)}[{', '.join(map(annotation, inner))}]" if inner else name


def fields_of(kind: type) -> str:
    if kind.__name__.endswith("Settings") and not is_dataclass(kind):
        return "\n[Every setting](../settings.md) has its meaning and its default.\n"
    if is_dataclass(kind):
        found = [(one.name, one.type) for one in fields(kind)]
    elif issubclass(kind, BaseModel):
        found = [(name, one.annotation) for name, one in kind.model_fields.items()]
    else:
        return ""
    return table(["field", "type"], ([f"`{name}`", f"`{annotation(hint)}`"] for name, hint in found))
