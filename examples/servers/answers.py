"""How a sample's MCP tool answers: a structure with links to what is in it, or an error in words."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ContentBlock, ResourceLink, TextContent


def answered(
    result: dict[str, Any], links: Sequence[ResourceLink], contexts: Sequence[Mapping[str, str]] = ()
) -> CallToolResult:
    """`contexts` travel in `_meta`: what an answer made from this may cite."""
    content: list[ContentBlock] = [TextContent(text=json.dumps(result, ensure_ascii=False)), *links]
    meta = {"contexts": [dict(context) for context in contexts]} if contexts else None
    return CallToolResult(content=content, structured_content=result, _meta=meta)


@contextmanager
def said() -> Generator[None]:
    """What does not exist, and a date that is none, is told to who called."""
    try:
        yield
    except (LookupError, ValueError) as error:
        raise ToolError(str(error)) from None
