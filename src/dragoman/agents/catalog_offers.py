"""Tools of connectors as offers: directly, by `search_tools`, or by `run_code`. All of them take the road.

A value that is missing becomes a question.

The model is first told what is missing: it may be in the conversation. If it is still missing when the tool
is called again, Dragoman asks the person and goes on with the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from dragoman.access.approvals import QUESTION_LASTS
from dragoman.agents.citations import contexts_of, with_source
from dragoman.agents.fences import fenced
from dragoman.agents.model_errors import failed
from dragoman.agents.offers import Offer, OfferCall, ToolReply, digest_of
from dragoman.agents.work_context import WorkContext
from dragoman.errors import InvalidArguments, NobodyAnswered
from dragoman.tool import Tool, ToolCall, ToolOutput

_LONGEST_RESULT = 60_000  # characters that a model reads of one result
_PATIENCE = QUESTION_LASTS.total_seconds()


class CatalogOffers:
    """Fills `Offers`: all tools that the agent may call, in full."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        return [offer_of(tool, work) for tool in await work.toolbox.tools(work.caller)]

    async def instructions(self, work: WorkContext) -> str:
        return await _out_of_reach(work)


async def _out_of_reach(work: WorkContext) -> str:
    """Which connectors' tools are not there, and why: else a model takes them for never having been."""
    cards = await work.toolbox.connectors(work.caller)
    lines = "\n".join(card.line() for card in cards if card.state in ("needs_auth", "error"))
    return f"Connectors that cannot be used now:\n{fenced(lines)}" if lines else ""


class NativeOffers:
    """Fills `Offers`: only the tools that belong to no connector's agent.

    The others are not counted as saved: the agents that are asked send them.
    """

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        tools = await work.toolbox.tools(work.caller)
        return [offer_of(tool, work) for tool in tools if work.toolbox.is_native(tool)]

    async def instructions(self, work: WorkContext) -> str:
        return ""


def offer_of(tool: Tool, work: WorkContext) -> Offer:
    async def perform(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
        return await call_tool(tool, arguments, attempt, work)

    definition = tool.definition
    marks = definition.annotations
    return Offer(
        name=tool.name,
        description=tool.model_description,
        schema=definition.input_schema,
        perform=perform,
        kind="tool",
        title=tool.title,
        connector=tool.slug,
        repeatable=marks.is_safe_to_repeat,
        departs_itself=True,
        only_reads=marks.read_only is True,
        is_described_by_others=not work.toolbox.is_native(tool),
        metadata={"tool": tool},
    )


async def call_tool(
    tool: Tool, arguments: Mapping[str, Any], attempt: OfferCall, work: WorkContext
) -> ToolReply:
    """Down the road, with as much patience for a person's yes as the question lasts."""
    missing = _missing(tool, arguments)
    if missing:
        work.missing[tool.name] = work.missing.get(tool.name, 0) + 1
        if work.missing[tool.name] == 1:
            return _say_missing(tool, missing)
        try:
            arguments = await _completed(tool, arguments, missing, attempt, work)
        except NobodyAnswered as error:
            return failed(NobodyAnswered(f"{error.message}: {', '.join(missing)}"))
    call = ToolCall(
        tool=tool.name,
        arguments=arguments,
        patience=_PATIENCE,
        channel=attempt.channel,
        observer=attempt.observer,
        cost_limit=work.run.options.get("cost_limit"),
    )
    output = await work.toolbox.call(call, work.caller)
    reply = reply_of(output, tool.name, work)
    return replace(reply, media=await work.toolbox.keep_media(output, work.caller))


def reply_of(output: ToolOutput, tool: str, work: WorkContext) -> ToolReply:
    call_id, warnings = output.metadata.request_id, output.metadata.warnings
    if output.error is not None:
        return replace(failed(output.error), call_id=call_id, cost=output.metadata.cost, warnings=warnings)
    contexts = contexts_of(output, tool, work)
    content = _shortened(output)
    digest = digest_of(content) if contexts else None  # names of sources are new each time
    if len(contexts) == 1:
        content = {"source": contexts[0].id, "result": content}
    elif contexts:
        sources = [{"id": one.id, "uri": one.uri, "about": one.excerpt[:80]} for one in contexts]
        content = {"sources": sources, "result": content}
    return ToolReply(
        content=content,
        call_id=call_id,
        contexts=contexts,
        digest=digest,
        cost=output.metadata.cost,
        warnings=warnings,
    )


def _shortened(output: ToolOutput) -> Any:
    result = output.result
    text = result if isinstance(result, str) else None
    if text is not None and len(text) > _LONGEST_RESULT:
        return f"{text[:_LONGEST_RESULT]}… (cut: {len(text):,} characters in all)"
    return result


def _missing(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    required = tool.definition.input_schema.get("required")
    names = cast("list[str]", required) if isinstance(required, list) else []
    return [name for name in names if arguments.get(name) in (None, "")]


def _say_missing(tool: Tool, missing: Sequence[str]) -> ToolReply:
    return failed(
        InvalidArguments(
            f"{tool.name} needs {', '.join(missing)}",
            hint="take the value from the conversation; if it is not there, ask with ask_person",
        )
    )


async def _completed(
    tool: Tool, arguments: Mapping[str, Any], missing: Sequence[str], attempt: OfferCall, work: WorkContext
) -> Mapping[str, Any]:
    schema = tool.definition.input_schema
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    fields: dict[str, Any] = {
        "type": "object",
        "properties": {name: properties.get(name, {"type": "string"}) for name in missing},
        "required": [*missing],
    }
    answer = await work.services.ask_person(f"{tool.title} needs: {', '.join(missing)}", fields, attempt)
    given = cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else {missing[0]: answer}
    return {**arguments, **given}


_SEARCH_TOOLS = "search_tools"
_FOUND = 6
_SEARCH_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "what the tool should do, in a few words"},
    },
    "required": ["query"],
}


class SearchOffers:
    """Fills `Offers`. `hides_all`: only what was found or loaded is in view, however few tools there are.

    `beside_code`: what code may call is found as a function of code, and offered in no other form.
    """

    def __init__(self, *, hides_all: bool = False, beside_code: bool = False) -> None:
        self._hides_all = hides_all
        self._beside_code = beside_code

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        tools = await self._among(work)
        if not tools and not self._beside_code:
            return []
        in_view = await self._in_view(tools, work)
        work.hidden[_SEARCH_TOOLS] = sum(work.toolbox.tokens(tool) for tool in tools.values()) - sum(
            work.toolbox.tokens(tools[name]) for name in in_view
        )

        async def search(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            return await self._search(str(arguments.get("query") or ""), work)

        count = len(await work.toolbox.tools(work.caller)) if self._beside_code else len(tools)
        found = "What it finds can be called in the next step."
        description = f"Finds tools among {count:,} by what they do. {found}"
        finder = Offer(
            name=_SEARCH_TOOLS,
            description=description,
            schema=_SEARCH_SCHEMA,
            perform=search,
            only_reads=True,
        )
        return [finder, *(offer_of(tools[name], work) for name in in_view)]

    async def instructions(self, work: WorkContext) -> str:
        return "\n\n".join(filter(None, [self._guide(), await _out_of_reach(work)]))

    def _guide(self) -> str:
        if self._beside_code:
            return (
                "Find the tools that you need with search_tools. What it shows as a function, call in"
                " run_code, and return only what you need to know; what it shows by name alone (mostly what"
                " changes something), call by that name."
            )
        return "Not all of your tools are listed: find those you need with search_tools, then call them."

    async def _among(self, work: WorkContext) -> dict[str, Tool]:
        return {
            tool.name: tool
            for tool in await work.toolbox.tools(work.caller)
            if not self._beside_code or not work.toolbox.is_open_to_code(tool)
        }

    async def _in_view(self, tools: Mapping[str, Tool], work: WorkContext) -> Sequence[str]:
        """In a steady order, with what was found last at the end: so the beginning can be cached."""
        if self._hides_all or self._beside_code:
            shown = work.toolbox.loaded(work.caller)
        else:
            deferred = await work.toolbox.deferred(work.caller)
            shown = [name for name in tools if name not in deferred]
        return [name for name in dict.fromkeys((*shown, *work.loaded)) if name in tools]

    async def _search(self, query: str, work: WorkContext) -> ToolReply:
        found = await work.toolbox.search(query, work.caller, _FOUND)
        tools = await self._among(work)
        lines: list[dict[str, str]] = []
        for tool in found.tools:
            if tool.name in tools:
                work.loaded[tool.name] = None
                lines.append({"name": tool.name, "description": tool.model_description[:300]})
            elif self._beside_code:
                lines.append({"function": work.toolbox.stub(tool, work.caller)})
        total = len(await work.toolbox.tools(work.caller))
        note = "" if lines else "nothing fits; try other words"
        return ToolReply(content={"tools": lines, "shown": f"{len(lines)} of {total:,}", "note": note})


_RUN_CODE = "run_code"
_CODE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "Python; its last expression is the result"}},
    "required": ["code"],
}


class CodeOffers:
    """Fills `Offers`: the tools that code may call are offered in no other form."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        work.hidden[_RUN_CODE] = sum(
            work.toolbox.tokens(tool)
            for tool in await work.toolbox.tools(work.caller)
            if work.toolbox.is_open_to_code(tool)
        )

        async def run(arguments: Mapping[str, Any], attempt: OfferCall) -> ToolReply:
            reply = await work.toolbox.run_code(str(arguments.get("code") or ""), work.caller, attempt)
            return with_source(reply, _RUN_CODE, attempt.key, work)

        return [
            Offer(
                name=_RUN_CODE,
                description=work.toolbox.code_guide(),
                schema=_CODE_SCHEMA,
                perform=run,
                title="Run code",
                repeatable=False,
                departs_itself=True,  # code that only read is run again after a crash
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""
