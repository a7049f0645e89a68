"""The search view: a few tools that lead to all others. Every call that they make takes the road."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman import extras
from dragoman.errors import DragomanError, InvalidArguments
from dragoman.hub import BoundHub
from dragoman.mcp_endpoint import queries
from dragoman.mcp_endpoint.results import call_result, failed
from dragoman.tool import CallError, CallObserver, ClientChannel, Tool
from dragoman.web.encoding import encode

_MOST_NAMED = 40
_NATIVE = "native"  # has no agent
LED_CALL = "call_tool"
_TEXT = {"type": "string"}


def search_tools(hub: BoundHub, tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The entries of the list; what they say of the catalog is what this caller sees of it."""
    slugs = sorted({tool.slug for tool in tools})
    names = ", ".join(slugs[:_MOST_NAMED]) + (" and others" if len(slugs) > _MOST_NAMED else "")
    entries: list[dict[str, Any]] = [
        {
            "name": "search_tools",
            "description": f"Finds tools by what they do, among {len(tools):,} of these connectors: {names}. "
            "Answers with names, descriptions and input schemas; call one with call_tool.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {**_TEXT, "description": "what the tool should do, or its name"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
                    "connector": {**_TEXT, "description": "search in this one only"},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": LED_CALL,
            "description": "Calls a tool that search_tools found, by its name, with arguments that fit its "
            "input schema.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": _TEXT, "arguments": {"type": "object", "default": {}}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    ]
    if extras.is_installed("agents") and any(tool.slug != _NATIVE and not tool.bundled for tool in tools):
        entries.append(dict(queries.ENTRY))
    if extras.is_installed("code"):
        entries.append(
            {
                "name": "run_code",
                "description": hub.code.description(),
                "inputSchema": {
                    "type": "object",
                    "properties": {"code": _TEXT},
                    "required": ["code"],
                    "additionalProperties": False,
                },
            }
        )
    return entries


async def use(
    hub: BoundHub,
    name: str,
    arguments: Mapping[str, Any],
    channel: ClientChannel | None = None,
    observer: CallObserver | None = None,
) -> dict[str, Any] | None:
    """What one of them answers; None when there is no such tool in this view."""
    try:
        if name == "search_tools":
            return await _search(hub, arguments)
        if name == LED_CALL:
            return await _call(hub, arguments, channel, observer)
        if name == queries.ENTRY["name"]:
            return await queries.ask(hub, arguments, channel)
        if name == "run_code":
            return _ran(await hub.code.run(_text(arguments, "code")))
    except DragomanError as error:
        return failed(CallError.of(error, connector=None, tool=name))
    return None


async def _search(hub: BoundHub, arguments: Mapping[str, Any]) -> dict[str, Any]:
    limit, connector = arguments.get("limit", 5), arguments.get("connector")
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidArguments("limit must be a whole number", hint="5 is usually enough")
    if connector is not None and not isinstance(connector, str):
        raise InvalidArguments("connector must be the name of a connector", hint="or leave it out")
    found = await hub.tools.search(_text(arguments, "query"), limit=min(limit, 50), connector=connector)
    tools = [
        {
            "name": hit.tool.name,
            "description": hub.tools.info(hit.tool.name).shown_tool.model_description,
            "inputSchema": hit.tool.definition.input_schema,
        }
        for hit in found.hits
    ]
    answer: dict[str, Any] = {"found": found.summary, "tools": tools}
    if not tools:
        answer["hint"] = "say it in other words, or name the connector"
    return _told(answer)


async def _call(
    hub: BoundHub,
    arguments: Mapping[str, Any],
    channel: ClientChannel | None,
    observer: CallObserver | None,
) -> dict[str, Any]:
    name, given = _text(arguments, "name"), arguments.get("arguments")
    if given is not None and not isinstance(given, dict):
        raise InvalidArguments("arguments must be an object", hint='{"name": "…", "arguments": {…}}')
    output = await hub.call(name, cast("dict[str, Any] | None", given), channel=channel, observer=observer)
    return call_result(output, None)


def _ran(outcome: Any) -> dict[str, Any]:
    """What the code printed and returned; what a model did not have to read is only counted."""
    facts = {
        "result": outcome.result,
        "printed": outcome.printed,
        "calls": outcome.calls,
        "tokens_outside": outcome.tokens_outside,
    }
    if outcome.error is None:
        return _told(facts)
    return {**_told({**facts, "error": outcome.error}), "isError": True}


def _told(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else encode(value).decode()
    return {"content": [{"type": "text", "text": text}]}


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise InvalidArguments(f"{name} must be a text", hint=f'{{"{name}": "…"}}')
    return value
