"""The native tools of one process: a registry of functions and of tool objects, by name.

Knows no store and no workspace: who may see or call a tool is decided above.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from dragoman.connections.native.functions import FunctionTool
from dragoman.connections.source import ConnectionStatus, Listing, SourceCall
from dragoman.connector import Connector
from dragoman.errors import Conflict, InvalidName, NotFound, Timeout, Uncertain
from dragoman.names import MAX_NAME, did_you_mean
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAID = Annotations()


@runtime_checkable
class NativeTool(Protocol):
    """A tool of one's own: anything that says what it is and can be called."""

    @property
    def definition(self) -> ToolDefinition: ...

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult: ...


class NativeTools:
    """Tools are added and removed at run time; the name in the definition is the name they are called by."""

    def __init__(self) -> None:
        self._tools: dict[str, NativeTool] = {}

    def add(
        self,
        tool: NativeTool | Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        annotations: Annotations = _UNSAID,
    ) -> NativeTool:
        """Raises `InvalidConfig`, `InvalidName` or `Conflict`; nothing is added then."""
        if isinstance(tool, NativeTool):
            added = _relabelled(tool, name, description, annotations)
        else:
            added = FunctionTool(tool, name=name, description=description, annotations=annotations)
        known = check_native_name(added.definition.original_name)
        if known in self._tools:
            raise Conflict(
                f"a native tool named {known!r} exists already",
                hint="give name=... to one of them, or remove the other first",
            )
        self._tools[known] = added
        return added

    def remove(self, name: str) -> None:
        self._get(name)
        del self._tools[name]

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(self._tools[name].definition for name in sorted(self._tools))

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        return await self._get(name).call(arguments, caller)

    def _get(self, name: str) -> NativeTool:
        if name in self._tools:
            return self._tools[name]
        raise NotFound(f"there is no native tool {name[:80]!r}", hint=did_you_mean(name, sorted(self._tools)))


class NativeSource:
    """Native tools as a source: they need no connection and are always there."""

    def __init__(self, tools: NativeTools) -> None:
        self._tools = tools

    async def call(self, call: SourceCall) -> RawResult:
        try:
            async with call.deadline.enforced():
                return await self._tools.call(call.tool.original_name, call.arguments, call.caller)
        except TimeoutError:
            if call.tool.definition.annotations.is_safe_to_repeat:
                raise Timeout(
                    f"{call.tool.name} did not finish in time", hint="give it a longer timeout"
                ) from None
            raise Uncertain(
                f"{call.tool.name} did not finish in time and may still have its effect",
                hint="look at what it changes before you repeat it",
                cause="timeout",
            ) from None

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        return Listing(tools=self._tools.definitions())

    async def list_tools_again(self, connector: Connector, identity: str) -> None:
        return None

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return self.status(connector, caller)

    disconnect = connect

    async def retire(self, connector: Connector, *, is_removed: bool = False) -> None:
        pass

    async def close_for_user(self, workspace: str, user: str, connector_id: str | None = None) -> None:
        pass

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        return ConnectionStatus(
            connector_id=connector.id,
            slug=connector.slug,
            identity="",
            state="connected" if connector.enabled else "disabled",
        )


def check_native_name(name: str) -> str:
    """The name itself, or `InvalidName`. `mcp_` belongs to the tools of connectors."""
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{name[:80]!r} cannot be the name of a tool",
            hint=f"use letters, digits, underscores and hyphens, at most {MAX_NAME} in all",
        )
    if name.startswith("mcp_"):
        raise InvalidName(
            f"{name!r} cannot be the name of a native tool",
            hint="names that begin with mcp_ belong to the tools of connectors",
        )
    return name


class _Relabelled:
    """A tool object under another name, description or annotations."""

    def __init__(self, tool: NativeTool, definition: ToolDefinition) -> None:
        self._tool = tool
        self.definition = definition

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        return await self._tool.call(arguments, caller)


def _relabelled(
    tool: NativeTool, name: str | None, description: str | None, annotations: Annotations
) -> NativeTool:
    definition = tool.definition
    if name is not None:
        definition = replace(definition, original_name=name)
    if description is not None:
        definition = replace(definition, description=description)
    if annotations != _UNSAID:
        definition = replace(definition, annotations=annotations)
    return tool if definition == tool.definition else _Relabelled(tool, definition)
