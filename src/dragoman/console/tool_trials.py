"""Trying a tool: a form made from its schema, one call for who sits there, and what came of it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.catalog import ToolInfo
from dragoman.console.call_outputs import shown_output
from dragoman.console.call_snippets import snippets_of
from dragoman.console.chat_questions import question_card
from dragoman.console.formatting import pretty
from dragoman.console.pages import event_stream, hub_of, pages_of
from dragoman.console.schema_forms import SchemaForm, draft_of, form_of, read_json, with_entry, without_entry
from dragoman.run import Question
from dragoman.tool import ExchangedMessage, Progress, Tool, ToolOutput
from dragoman.web.server_sent_events import Work


def first_form(tool: Tool) -> dict[str, Any]:
    """What the templates need to show the form before anything was typed."""
    schema = tool.definition.input_schema
    form = form_of(schema, {})
    return {
        "form": form,
        "as_json": _needs_json(schema, form),
        "text": pretty(form.arguments),
        "checked": False,
        "note": "",
        "with_messages": False,
    }


async def change_form(request: Request) -> Response:
    """The form with an entry more or less, another shape, or as JSON; what was typed stays."""
    info, draft = _info(request), await _draft(request)
    schema = info.tool.definition.input_schema
    what, _, where = request.query_params.get("do", "").partition(":")
    as_json, text, note = draft.get("as") == "json", draft.get("json", ""), ""
    if what == "add":
        draft = with_entry(draft, where)
    elif what == "drop":
        path, _, index = where.rpartition("/")
        draft = without_entry(draft, path, int(index) if index.isdecimal() else -1)
    elif what == "json":
        as_json, text = True, pretty(form_of(schema, draft).arguments)
    elif what == "form":
        drafted = _as_draft(schema, text)
        as_json = drafted is None
        draft = drafted or draft
        note = "The form cannot show all of this: it stays JSON." if as_json else ""
    return pages_of(request).part(
        request,
        "tools/form.html",
        tool=info.tool,
        form=form_of(schema, draft),
        as_json=as_json,
        text=text,
        checked=False,
        note=note,
        with_messages=bool(draft.get("messages")),
    )


async def try_tool(request: Request) -> Response:
    """One call for who sits there, on the same road as every other. What cannot be read is not sent.

    The page hears of progress and is shown what the server asks, before the result; who leaves cancels it.
    """
    info, draft = _info(request), await _draft(request)
    schema = info.tool.definition.input_schema
    form, as_json, text = form_of(schema, draft), draft.get("as") == "json", draft.get("json", "")
    facts: dict[str, Any] = {"tool": info.tool, "form": form, "as_json": as_json, "text": text}
    facts |= {"checked": True, "note": "", "output": None, "with_messages": bool(draft.get("messages"))}
    arguments: dict[str, Any] | None = None
    try:
        arguments = _arguments(text) if as_json else None if form.problems else form.arguments
    except ValueError as error:
        facts["note"] = f"This is not valid JSON: {error}."
    if arguments is None:
        return pages_of(request).part(request, "tools/tried.html", **facts)
    return event_stream(request, *_trial(request, arguments, facts))


def _trial(
    request: Request, arguments: Mapping[str, Any], facts: Mapping[str, Any]
) -> tuple[AsyncGenerator[bytes], Work]:
    """Frames of what the page shows, of which the result is the last; and the call beside them."""
    hub, pages = hub_of(request), pages_of(request)
    told: asyncio.Queue[Progress | Question | ToolOutput] = asyncio.Queue()
    messages: list[ExchangedMessage] = []

    async def work() -> None:
        asks = hub.ask_by_question(on_question=told.put_nowait)
        name: str = facts["tool"].name
        output = await hub.call(
            name,
            arguments,
            on_progress=told.put_nowait,
            on_elicitation=asks,
            on_message=messages.append if facts["with_messages"] else None,
        )
        told.put_nowait(output)
        await asyncio.Event().wait()  # the frames end the stream once all of them are told

    async def frames() -> AsyncGenerator[bytes]:
        while not isinstance(one := await told.get(), ToolOutput):
            if isinstance(one, Progress):
                yield pages.frame(request, "tools/progress.html", progress=one)
            else:
                yield pages.frame(request, "tools/asked.html", card=question_card(one))
        told_of = {
            "output": one,
            "shown": shown_output(one),
            "arguments": pretty(arguments),
            "messages": [(one, pretty(one.message)) for one in messages],
            "snippets": snippets_of(facts["tool"].name, arguments, str(request.base_url).rstrip("/")),
        }
        yield pages.frame(request, "tools/tried.html", **{**facts, **told_of})

    return frames(), work


async def give_result(request: Request) -> Response:
    """The whole of a result that was cut, as a file: it was written by somebody else's server."""
    kept = await hub_of(request).result(request.path_params["handle"])
    name = "result.json" if kept.content_type == "application/json" else "result.txt"
    headers = {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
    }
    return Response(kept.body, headers=headers)


def _info(request: Request) -> ToolInfo:
    return hub_of(request).tools.info(request.path_params["name"])


async def _draft(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def _needs_json(schema: Mapping[str, Any], form: SchemaForm) -> bool:
    """A schema that names no property but does not say that there is none."""
    return not form.fields and bool(schema.get("additionalProperties") or schema.keys() & {"anyOf", "oneOf"})


def _arguments(text: str) -> dict[str, Any]:
    value: Any = read_json(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("arguments are one object: {…}")  # noqa: TRY004 - what was typed is at fault
    return cast("dict[str, Any]", value)


def _as_draft(schema: Mapping[str, Any], text: str) -> dict[str, str] | None:
    try:
        return draft_of(schema, _arguments(text))
    except ValueError:
        return None


routes = [
    Route("/tools/results/{handle}", give_result),
    Route("/tools/{name}/form", change_form, methods=["POST"]),
    Route("/tools/{name}/try", try_tool, methods=["POST"]),
]
