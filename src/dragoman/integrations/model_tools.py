"""What every integration does: which tools a model is given, and what it is told of a call. Knows no library.

Calls are an agent's: where a person has to say yes to what agents do, that person is asked.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dragoman.errors import DragomanError, InvalidArguments
from dragoman.hints import speaking
from dragoman.hub import BoundHub
from dragoman.tool import CallError, OnElicitation, OnProgress, Schema, Tool, ToolOutput

_UNTYPED = ("oneOf", "anyOf", "allOf", "not", "enum")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model is told of a call: `text`, or `result` where a library takes values."""

    ok: bool
    text: str
    result: Any = None


class ModelTools:
    """The tools of a hub for a model, with the rights and limits of the hub's caller."""

    def __init__(
        self,
        hub: BoundHub,
        *,
        only: Iterable[str] | None = None,
        agent: str = "program",
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_elicitation: OnElicitation | None = None,
    ) -> None:
        """`only` are names of tools, and of connectors as `mcp_<slug>`: the model can call nothing else.

        `agent` is who calls, for approvals and the audit trail. The rest is as in `hub.call`.
        """
        caller = hub.caller.as_agent(agent)
        self._hub = hub.acting_for(caller if only is None else caller.limited_to(only))
        self._timeout = timeout
        self._on_progress = on_progress
        self._on_elicitation = on_elicitation

    async def ready(self) -> Sequence[Tool]:
        """What the model can call now. Ask again before each request: servers come, go and change."""
        return await self._hub.tools.ready()

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ModelReply:
        """Calls a tool as the model asked for it, with its arguments or their JSON. Raises nothing."""
        with speaking("plain"):  # a model has neither commands nor Python
            try:
                output = await self._hub.call(
                    name,
                    _arguments(arguments),
                    timeout=self._timeout,
                    on_progress=self._on_progress,
                    on_elicitation=self._on_elicitation,
                )
            except DragomanError as error:
                return _failed(CallError.of(error, connector=None, tool=name))
            return _reply(output)


def parameters(tool: Tool) -> dict[str, Any]:
    """The schema of its arguments as providers take it: an object, without alternatives at the top.

    What is left out there is still checked when the tool is called, and the model is told what is wrong.
    """
    schema = tool.definition.input_schema
    properties: dict[str, Any] = {}
    for word in _UNTYPED[:3]:
        for part in cast("list[Any]", schema.get(word) or []):
            if isinstance(part, Mapping):
                properties |= cast("Schema", part).get("properties") or {}
    properties |= schema.get("properties") or {}
    kept = {name: value for name, value in schema.items() if name not in _UNTYPED}
    return {**kept, "type": "object", "properties": properties}


def _arguments(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if not isinstance(given, str):
        return given
    try:
        arguments = json.loads(given or "{}")
    except ValueError as error:
        raise InvalidArguments(
            f"the arguments are no valid JSON: {error}", hint="send one JSON object"
        ) from None
    if not isinstance(arguments, dict):
        raise InvalidArguments("the arguments are no JSON object", hint="send one JSON object")
    return cast("dict[str, Any]", arguments)


def _reply(output: ToolOutput) -> ModelReply:
    if output.error is not None:
        return _failed(output.error)
    result = output.result
    told = [result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)]
    told += [f"[{note}]" for note in (*_beside(output), *output.metadata.warnings)]
    return ModelReply(ok=True, text="\n".join(told), result=result if len(told) == 1 else "\n".join(told))


def _failed(error: CallError) -> ModelReply:
    hint = f"\nWhat to do: {error.hint}" if error.hint else ""
    return ModelReply(ok=False, text=f"{error.code}: {error.message}{hint}")


def _beside(output: ToolOutput) -> Iterable[str]:
    """What the tool gave that is no text: a model is told of it, and does not get it."""
    for block in output.content:
        if block.get("type") in ("image", "audio"):
            yield f"there is also {block['type']} of type {block.get('mimeType', 'unknown')}, not shown here"
