"""`/openapi/<bundle>.json`: a bundle for programs that know OpenAPI and no MCP, one operation for each tool.

With the rights of whoever asks, and by the road of every call: an operation is a call inside the bundle.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.bundle import Bundle
from dragoman.errors import CallerFault
from dragoman.tool import Json, Tool, ToolOutput
from dragoman.web.encoding import encode, json_response
from dragoman.web.problems import InvalidRequest, problem
from dragoman.web.protected_resources import base_of

routes = APIRouter(prefix="/openapi", tags=["bundles"], responses=PROBLEMS)
_PROBLEM = {
    "description": "What went wrong (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"type": "object"}}},
}


@routes.get("/{bundle}.json")
async def describe_bundle(bundle: str, request: Request, hub: TheHub) -> Response:
    """The bundle as an OpenAPI document (3.1), of the tools that you can call now."""
    found = hub.bundles.find(bundle)
    inside = hub.in_bundle(found.name)
    base = base_of(hub.settings, request.scope)
    return json_response(described(found, await inside.tools.ready(), base))


@routes.post("/{bundle}/{tool}")
async def call_in_bundle(bundle: str, tool: str, request: Request, hub: TheHub) -> Response:
    """Calls a tool of the bundle: the body are its arguments, the answer is its result.

    What fails is a problem, with the status that its code has by REST.
    """
    inside = hub.in_bundle(hub.bundles.find(bundle).name)
    arguments = _arguments(await request.body())
    output = await inside.call(tool, arguments, on_elicitation=inside.ask_by_question())
    if output.error is not None:
        return problem(output.error)
    return Response(encode(_result(output)), media_type="application/json")


def described(bundle: Bundle, tools: Sequence[Tool], base: str) -> dict[str, Any]:
    """Pure. A tool's schemas are components, so that what they refer to inside themselves is found."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for tool in tools:
        definition = tool.definition
        taken, given = f"{tool.name}.arguments", f"{tool.name}.result"
        schemas[taken] = _moved(definition.input_schema, taken)
        answer: dict[str, Any] = {}
        if definition.output_schema is not None:
            schemas[given] = _moved(definition.output_schema, given)
            answer = {"$ref": f"#/components/schemas/{given}"}
        paths[f"/openapi/{bundle.name}/{tool.name}"] = {
            "post": {
                "operationId": tool.name,
                "summary": tool.title,
                "description": definition.description,
                "requestBody": {
                    "required": bool(definition.input_schema.get("required")),
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{taken}"}}},
                },
                "responses": {
                    "200": {
                        "description": "What the tool answered",
                        "content": {"application/json": {"schema": answer}},
                    },
                    "default": _PROBLEM,
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": bundle.title or bundle.name,
            "description": "\n\n".join(filter(None, [bundle.description, bundle.instructions])),
            "version": str(bundle.revision),
        },
        "servers": [{"url": base}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _moved(schema: Any, component: str) -> Any:
    """The same, with references into itself as they are from the root of the document."""
    if isinstance(schema, Mapping):
        table = cast("Mapping[str, Any]", schema)
        return {
            key: f"#/components/schemas/{component}{value[1:]}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _moved(value, component)
            for key, value in table.items()
            if key != "$schema"
        }
    if isinstance(schema, list):
        return [_moved(one, component) for one in cast("list[Any]", schema)]
    return schema


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise CallerFault(f"the body is not valid JSON: {error.msg}", hint="send one JSON object") from None
    if not isinstance(value, dict):
        raise InvalidRequest("the body must be an object: the arguments of the tool")
    return cast("dict[str, Any]", value)


def _result(output: ToolOutput) -> Json:
    """What is neither structure nor text, such as a picture, is told in blocks as MCP has them."""
    return output.result if output.result is not None or not output.content else [*output.content]
