"""Trying a tool: a form made from its schema, one call for who sits there, and what came of it."""

from collections.abc import Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.catalog import ToolInfo
from dragoman.console.call_outputs import shown_output
from dragoman.console.formatting import pretty
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.schema_forms import SchemaForm, draft_of, form_of, read_json, with_entry, without_entry
from dragoman.tool import Tool


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
    )


async def try_tool(request: Request) -> Response:
    """One call for who sits there, on the same road as every other. What cannot be read is not sent."""
    hub, info = hub_of(request), _info(request)
    draft = await _draft(request)
    schema = info.tool.definition.input_schema
    form, as_json, text = form_of(schema, draft), draft.get("as") == "json", draft.get("json", "")
    note, output = "", None
    try:
        arguments = _arguments(text) if as_json else form.arguments
        if as_json or not form.problems:
            output = await hub.call(info.tool.name, arguments)
    except ValueError as error:
        note = f"This is not valid JSON: {error}."
    return pages_of(request).part(
        request,
        "tools/tried.html",
        tool=info.tool,
        form=form,
        as_json=as_json,
        text=text,
        checked=True,
        note=note,
        output=output,
        shown=shown_output(output) if output else None,
    )


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
