"""Tools of connectors as offers: each call takes the road. A value that is missing becomes a question.

The model is first told what is missing: it may be in the conversation. If it is still missing when the tool
is called again, Dragoman asks the person and goes on with the answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.access.approvals import QUESTION_LASTS
from dragoman.agents.citations import contexts_of
from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.errors import NobodyAnswered
from dragoman.tool import Tool, ToolCall, ToolOutput

_LONGEST_RESULT = 60_000  # characters that a model reads of one result
_PATIENCE = QUESTION_LASTS.total_seconds()


class CatalogOffers:
    """Fills `Offers`: all tools that the agent may call, in full."""

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        return [offer_of(tool, work) for tool in await work.toolbox.tools(work.caller)]

    async def instructions(self, work: WorkContext) -> str:
        return ""


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
            return ToolReply(content=f"{error.message}: {', '.join(missing)}", ok=False, code=error.code)
    call = ToolCall(
        tool=tool.name,
        arguments=arguments,
        patience=_PATIENCE,
        channel=attempt.channel,
        witness=attempt.witness,
        cost_limit=work.run.options.get("cost_limit"),
    )
    return told_of(await work.toolbox.call(call, work.caller), tool.name, work)


def told_of(output: ToolOutput, tool: str, work: WorkContext) -> ToolReply:
    call_id = output.metadata.request_id
    if output.error is not None:
        error = output.error
        facts: dict[str, Any] = {"error": error.code, "message": error.message}
        if error.hint:
            facts["hint"] = error.hint
        return ToolReply(content=facts, ok=False, code=error.code, call_id=call_id)
    contexts = contexts_of(output, tool, work)
    content = _shortened(output)
    if len(contexts) == 1:
        content = {"source": contexts[0].id, "result": content}
    elif contexts:
        sources = [{"id": one.id, "uri": one.uri, "about": one.excerpt[:80]} for one in contexts]
        content = {"sources": sources, "result": content}
    return ToolReply(content=content, call_id=call_id, contexts=contexts)


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
    names = ", ".join(missing)
    return ToolReply(
        content=f"{tool.name} needs {names}. Take the value from the conversation if it is there; if not, ask"
        " the person with ask_person. Never invent it.",
        ok=False,
        code="invalid_arguments",
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
