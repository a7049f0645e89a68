"""Dragoman connects AI agents to every tool server. `from dragoman import Hub` is the way in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.connections.native import NativeTool as NativeTool
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.hub import ConnectorView as ConnectorView
    from dragoman.hub import Hub as Hub
    from dragoman.scope import Caller as Caller
    from dragoman.settings import Settings as Settings
    from dragoman.tool import Annotations as Annotations
    from dragoman.tool import Tool as Tool
    from dragoman.tool import ToolCall as ToolCall
    from dragoman.tool import ToolOutput as ToolOutput

# Looked up when first asked for: the command must answer --help long before the whole stack is loaded.
_HOMES = {
    "Annotations": "dragoman.tool",
    "Caller": "dragoman.scope",
    "ConnectorView": "dragoman.hub",
    "DragomanError": "dragoman.errors",
    "Hub": "dragoman.hub",
    "NativeTool": "dragoman.connections.native",
    "Settings": "dragoman.settings",
    "Tool": "dragoman.tool",
    "ToolCall": "dragoman.tool",
    "ToolOutput": "dragoman.tool",
}

__all__ = [
    "Annotations",
    "Caller",
    "ConnectorView",
    "DragomanError",
    "Hub",
    "NativeTool",
    "Settings",
    "Tool",
    "ToolCall",
    "ToolOutput",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
