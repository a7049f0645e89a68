"""A typed Python function as a tool: schema from the signature, description from the docstring.

What it returns becomes the content blocks that every source answers with.
"""

import asyncio
import functools
import inspect
import logging
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from inspect import cleandoc
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import anyio
import anyio.to_thread
import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from dragoman.errors import DragomanError, InvalidArguments, InvalidConfig, ToolFailed
from dragoman.hints import worded
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition

_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def result_of(value: Any, *, tool: str, adapter: TypeAdapter[Any] | None = None) -> RawResult:
    """Text as text, bytes as an image or a resource, everything else as JSON and its text."""
    if isinstance(value, RawResult):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return RawResult(content=(text_block(value),))
    if isinstance(value, bytes | bytearray):
        return RawResult(content=(_blob_block(bytes(value), tool),))
    structured = _json_of(value, adapter)
    text = orjson.dumps(structured, option=orjson.OPT_NON_STR_KEYS).decode("utf-8", "replace")
    return RawResult(content=(text_block(text),), structured=structured, has_structured=True)


def failure_of(error: BaseException) -> RawResult:
    """Type and message of what a function raised; where it was raised stays in the log."""
    if isinstance(error, DragomanError):
        hint = worded(error.command_hint, "plain")
        text = f"{error.message} ({hint})" if hint else error.message
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return RawResult(content=(text_block(text),), is_error=True)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json_of(value: Any, adapter: TypeAdapter[Any] | None) -> Any:
    try:
        if adapter is None:
            return to_jsonable_python(value)
        return adapter.dump_python(value, mode="json", by_alias=True, warnings="none")
    except (PydanticSerializationError, ValueError, TypeError) as error:
        raise ToolFailed(
            f"the tool returned a {type(value).__name__}, which cannot be written as JSON",
            hint="return text, bytes, numbers, lists, dictionaries, dataclasses or pydantic models",
        ) from error


def _blob_block(data: bytes, tool: str) -> dict[str, Any]:
    encoded = b64encode(data).decode("ascii")
    if mime := _image_type(data):
        return {"type": "image", "data": encoded, "mimeType": mime}
    resource = {"uri": f"native://{tool}/result", "mimeType": "application/octet-stream", "blob": encoded}
    return {"type": "resource", "resource": resource}


def _image_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _IMAGES if data.startswith(magic)), None)


_GOOGLE = re.compile(r"(Args|Arguments|Parameters):\s*$")
_NUMPY = re.compile(r"Parameters\s*$")
_RULE = re.compile(r"-{3,}\s*$")
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Example|Examples|Note|Notes|See Also):?\s*$"
)
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"(\w+)\s*(?::.*)?$")
_SPHINX_ITEM = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_SPHINX_FIELD = re.compile(r":(param|type|return|returns|rtype|raises?)\b")


@dataclass(frozen=True, slots=True)
class Docstring:
    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def parse_docstring(text: str | None) -> Docstring:
    """The part before the first section, and one line of text for each parameter that is described."""
    lines = cleandoc(text or "").splitlines()
    body = next((index for index, _ in enumerate(lines) if _begins_section(lines, index)), len(lines))
    parameters: dict[str, str] = {}
    for name, words in _items(lines[body:]):
        parameters[name] = " ".join(word for word in words if word)
    return Docstring(
        "\n".join(lines[:body]).strip(), {name: text for name, text in parameters.items() if text}
    )


def _begins_section(lines: list[str], index: int) -> bool:
    line = lines[index]
    if _SPHINX_FIELD.match(line):
        return True
    if not _SECTION.match(line):
        return False
    # "Note:" opens a section; the lone word "Notes" does so only above a rule.
    return line.rstrip().endswith(":") or (index + 1 < len(lines) and bool(_RULE.match(lines[index + 1])))


def _items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        following = lines[index + 1 :]
        if found := _SPHINX_ITEM.match(line):
            yield found[1], [found[2], *_indented(following)]
        elif _GOOGLE.match(line):
            yield from _google_items(following)
        elif _NUMPY.match(line) and following and _RULE.match(following[0]):
            yield from _numpy_items(following[1:])


def _indented(lines: list[str]) -> list[str]:
    """The lines that continue the one before them."""
    end = next((i for i, line in enumerate(lines) if not line.startswith((" ", "\t"))), len(lines))
    return [line.strip() for line in lines[:end]]


def _google_items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    block = [line for line in lines[: _section_end(lines)] if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in block), default=0)
    for index, line in enumerate(block):
        if len(line) - len(line.lstrip()) == indent and (found := _GOOGLE_ITEM.match(line.strip())):
            deeper = [" " * (len(later) - len(later.lstrip()) - indent) + later.strip() for later in block]
            yield found[1], [found[2], *_indented(deeper[index + 1 :])]


def _section_end(lines: list[str]) -> int:
    return next(
        (i for i, line in enumerate(lines) if line.strip() and not line.startswith((" ", "\t"))), len(lines)
    )


def _numpy_items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for index, line in enumerate(lines):
        if index + 1 < len(lines) and _RULE.match(lines[index + 1]):
            return
        if not line.startswith((" ", "\t")) and (found := _NUMPY_ITEM.match(line)):
            yield found[1], _indented(lines[index + 1 :])


_log = logging.getLogger(__name__)
_THREADS_PER_TOOL = 16  # a function that hangs uses up its own threads, never another tool's
_NOT_STRUCTURED = (str, bytes, bytearray, Any, None, NoneType, RawResult)
_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "*{name} has no place in a JSON schema",
    inspect.Parameter.VAR_KEYWORD: "**{name} has no place in a JSON schema",
    inspect.Parameter.POSITIONAL_ONLY: "{name} is positional-only, but tools are called by name",
}


@dataclass(frozen=True, slots=True)
class _Signature:
    """A function as far as its types tell: what goes in, what comes out, who wants to know the caller."""

    arguments: type[BaseModel]
    names: Mapping[str, str]
    caller_names: tuple[str, ...]
    returns: TypeAdapter[Any] | None


class FunctionTool:
    """One function, ready to be called by name with JSON arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        annotations: Annotations = Annotations(),  # noqa: B008  frozen
    ) -> None:
        self._name = name or _name_of(function)
        self._function = function
        doc = parse_docstring(inspect.getdoc(_code_of(function)))
        self._signature = _read_signature(function, self._name, doc)
        self._is_async = inspect.iscoroutinefunction(_code_of(function))
        self._threads = anyio.CapacityLimiter(_THREADS_PER_TOOL)
        self.definition = ToolDefinition(
            original_name=self._name,
            description=doc.description if description is None else description,
            input_schema=_input_schema(self._signature.arguments, self._name),
            output_schema=_output_schema(self._signature.returns),
            annotations=annotations,
        )

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        """Raises `InvalidArguments`; whatever the function itself raises is an answer that says so."""
        values = self._convert(arguments) | dict.fromkeys(self._signature.caller_names, caller)
        try:
            value = await self._run(values)
            return result_of(value, tool=self._name, adapter=self._signature.returns)
        except DragomanError as error:
            return failure_of(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # boundary: the function is not ours
            _log.warning("native tool %s failed", self._name, exc_info=True)
            return failure_of(error)
        except asyncio.CancelledError as error:
            if _is_cancelled_from_outside():
                raise
            return failure_of(error)

    def _convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            model = self._signature.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            problems = [
                f"{_place(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False)
            ]
            message = f"{self._name}: " + "; ".join(problems[:5])
            raise InvalidArguments(message, hint="see the tool's input schema") from error
        return {name: getattr(model, key) for key, name in self._signature.names.items()}

    async def _run(self, values: dict[str, Any]) -> Any:
        if self._is_async:
            return await self._function(**values)
        work = functools.partial(self._function, **values)
        value = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        return await value if inspect.isawaitable(value) else value


def _is_cancelled_from_outside() -> bool:
    """False where a function let the cancellation of some task of its own escape."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(_code_of(function), "__name__", "")
    if name == "__call__":
        name = type(function).__name__
    if not name or name == "<lambda>":
        raise InvalidConfig("a tool needs a name", hint="give name=... for a lambda or a callable object")
    return name


def _code_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that carries name, docstring and annotations, under partials and callable objects."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    if inspect.isroutine(function):
        return inspect.unwrap(function)
    return type(function).__call__ if not inspect.isclass(function) else function


def _read_signature(function: Callable[..., Any], tool: str, doc: Docstring) -> _Signature:
    code = _code_of(function)
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise InvalidConfig(f"{tool} is a generator", hint="return a list instead of yielding")
    hints = _hints_of(code, tool)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    caller_names: list[str] = []
    for index, parameter in enumerate(_parameters_of(function, tool)):
        annotation = hints.get(parameter.name, Any)
        if _is_caller(annotation):
            caller_names.append(parameter.name)
            continue
        # Numbered fields with an alias: a parameter may be called `schema`, `json` or `_x`.
        key = f"field{index}"
        names[key] = parameter.name
        fields[key] = _field(parameter, annotation, doc.parameters.get(parameter.name))
    try:
        model = create_model(f"{tool}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise InvalidConfig(
            f"the types of {tool} cannot be written as a JSON schema: {str(error).splitlines()[0]}",
            hint="use plain types, dataclasses, enums or pydantic models",
        ) from error
    return _Signature(model, names, tuple(caller_names), _returns(hints.get("return", Any)))


def _parameters_of(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidConfig(
            f"{tool} has no signature that can be read", hint="wrap it in a function"
        ) from error
    for parameter in parameters:
        if reason := _REFUSED.get(parameter.kind):
            raise InvalidConfig(
                f"{tool} cannot be a tool: {reason.format(name=parameter.name)}",
                hint="name every parameter and give it a type",
            )
    return parameters


def _hints_of(code: Callable[..., Any], tool: str) -> dict[str, Any]:
    try:
        return get_type_hints(code, include_extras=True)
    except Exception as error:  # boundary: an annotation may evaluate to anything
        raise InvalidConfig(
            f"an annotation of {tool} cannot be resolved: {error}",
            hint="import the type at module level, outside TYPE_CHECKING",
        ) from error


def _is_caller(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation is Caller or (
        Caller in get_args(annotation) and set(get_args(annotation)) <= {Caller, NoneType}
    )


def _field(parameter: inspect.Parameter, annotation: Any, text: str | None) -> tuple[Any, Any]:
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    described = [*metadata, parameter.default]
    if any(isinstance(item, FieldInfo) and item.description for item in described):
        text = None
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    extra = Field(alias=parameter.name, description=text) if text else Field(alias=parameter.name)
    return Annotated[annotation, extra], default


def _returns(annotation: Any) -> TypeAdapter[Any] | None:
    if any(annotation is plain for plain in _NOT_STRUCTURED):
        return None
    try:
        adapter = TypeAdapter[Any](annotation)
        adapter.json_schema(mode="serialization")
    except (PydanticUserError, TypeError):
        return None  # a type that has no schema may still return values that are JSON
    return adapter


def _input_schema(model: type[BaseModel], tool: str) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise InvalidConfig(
            f"the parameters of {tool} cannot be written as a JSON schema: {error.message}"
        ) from error
    schema.pop("title", None)
    properties: dict[str, dict[str, Any]] = schema.setdefault("properties", {})
    for value in properties.values():
        value.pop("title", None)
    return schema


def _output_schema(returns: TypeAdapter[Any] | None) -> dict[str, Any] | None:
    return None if returns is None else returns.json_schema(mode="serialization", by_alias=True)


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "arguments"
