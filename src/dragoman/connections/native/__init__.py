"""Tools that run in this process: typed functions, tool objects, and the four that ship with Dragoman."""

from dragoman.connections.native.files import standard_tools
from dragoman.connections.native.functions import FunctionTool
from dragoman.connections.native.source import NativeSource, NativeTool, NativeTools
from dragoman.connections.native.terminal import terminal_tool

__all__ = ["FunctionTool", "NativeSource", "NativeTool", "NativeTools", "standard_tools", "terminal_tool"]
