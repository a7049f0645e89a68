"""What came of a call, as MCP's CallToolResult. The blocks of content stay as they came."""

from collections.abc import Mapping
from typing import Any, cast

from mcp_types import INVALID_PARAMS

from dragoman.errors import ApprovalPending
from dragoman.hub.server_requests import shared_uri
from dragoman.mcp_endpoint.messages import RpcError
from dragoman.tool import CallError, Schema, Tool, ToolOutput
from dragoman.web.encoding import encode

RESULTS = "dragoman://results/"
"""A result that was cut is a resource: this with its handle."""
ERROR = "dragoman/error"
_OLDER_PAGE = "ui/resourceUri"


def call_result(output: ToolOutput, tool: Tool | None, *, is_alone: bool = False) -> dict[str, Any]:
    """`tool` is what the client was shown; None when it is not in the catalog any more.

    `is_alone`: for a client that sees this one connector, and so its server's own addresses.
    """
    result = _result(output, tool)
    if output.meta:
        slug = None if is_alone else output.metadata.connector
        result["_meta"] = {**with_shared_pages(output.meta, slug), **result.get("_meta", {})}
    if warnings := output.metadata.warnings:
        result["_meta"] = {**result.get("_meta", {}), "dragoman/warnings": [*warnings]}
    return result


def with_shared_pages(meta: Mapping[str, Any], slug: str | None) -> dict[str, Any]:
    """What is said of a tool or result, with the address of its page as the client knows it."""
    told = dict(meta)
    if slug is None:
        return told
    if isinstance(told.get(_OLDER_PAGE), str):
        told[_OLDER_PAGE] = shared_uri(slug, told[_OLDER_PAGE])
    if isinstance(told.get("ui"), Mapping):
        page = cast("Mapping[str, Any]", told["ui"])
        if isinstance(uri := page.get("resourceUri"), str):
            told["ui"] = {**page, "resourceUri": shared_uri(slug, uri)}
    return told


def _result(output: ToolOutput, tool: Tool | None) -> dict[str, Any]:
    if output.error is not None:
        return failed(output.error, output.content)
    if output.metadata.truncated:
        return _cut(output, tool)
    content = [*output.content]
    result: dict[str, Any] = {"content": content}
    schema = tool.definition.output_schema if tool else None
    if schema is not None:
        result["structuredContent"] = structured(schema, output.result)
    elif output.has_structured and output.result is not None:
        is_object = isinstance(output.result, dict)
        result["structuredContent"] = output.result if is_object else {"result": output.result}
    if not content and output.result is not None:
        content.append({"type": "text", "text": _as_text(output.result)})
    return result


def failed(error: CallError, content: tuple[Mapping[str, Any], ...] = ()) -> dict[str, Any]:
    """The tool's own words where it has some; else code, message and what to do next."""
    facts = {"code": error.code, "retryable": error.retryable, "retry_after": error.retry_after}
    told = [*content] if error.code == "tool_failed" else []
    if not told:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        told = [{"type": "text", "text": f"{error.code}: {error.message}{hint}"}]
    meta = {name: value for name, value in facts.items() if value is not None}
    return {"content": told, "isError": True, "_meta": {ERROR: meta}}


def with_approval(result: dict[str, Any], question: tuple[str, str | None] | None) -> dict[str, Any]:
    """What ended because nobody has answered yet, with the id of the question and where it is answered."""
    facts: dict[str, Any] = result.get("_meta", {}).get(ERROR, {})
    if question is None or facts.get("code") != ApprovalPending.code:
        return result
    approval, url = question
    told = {**facts, "approval": approval, **({"url": url} if url else {})}
    link = [{"type": "text", "text": f"A person answers it at {url}"}] if url else []
    return {**result, "content": [*result["content"], *link], "_meta": {**result["_meta"], ERROR: told}}


def unknown(error: CallError) -> RpcError:
    return RpcError(INVALID_PARAMS, f"{error.message} ({error.hint})" if error.hint else error.message)


def structured(schema: Schema, value: Any) -> Any:
    """A structure of MCP is an object: what is none stands in one, as its schema says."""
    return value if is_object_schema(schema) else {"result": value}


def is_object_schema(schema: Schema) -> bool:
    return schema.get("type") == "object"


def _cut(output: ToolOutput, tool: Tool | None) -> dict[str, Any]:
    """The content ends with a note already that says what is missing; here it gets an address as well."""
    content = [*output.content]
    if handle := output.metadata.handle:
        content.append({"type": "text", "text": f"[the whole, as a resource: {RESULTS}{handle}]"})
    result: dict[str, Any] = {"content": content}
    schema = tool.definition.output_schema if tool else None
    if schema is None:
        return result
    if isinstance(output.result, str) or output.result is None:
        # A client checks what succeeded against the schema, and half a structure fits none.
        told = "The call succeeded, but its result is too large to be given whole."
        return {"content": [{"type": "text", "text": told}, *content], "isError": True}
    return {**result, "structuredContent": structured(schema, output.result)}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()
