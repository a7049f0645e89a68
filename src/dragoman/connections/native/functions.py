"""A typed Python function as a tool: its schema from the signature, its description from the docstring.

Existing functions need no change. A parameter annotated `Caller` is told who asks and is no part of
the schema. Sync functions run in a thread, so that none can block the event loop.
"""

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from dragoman.connections.native.docstrings import Docstring, parse_docstring
from dragoman.connections.native.function_results import failure_of, result_of
from dragoman.errors import DragomanError, InvalidArguments, InvalidConfig
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition

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
