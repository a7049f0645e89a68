"""What a hook is: code that looks at every call before and after, and at every list of tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.scope import Way
from dragoman.tool import ToolDefinition

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCall:
    """One call as a hook sees it. `tool` is the public name, or MCP's method for resources and prompts."""

    id: str
    tool: str
    connector: str
    arguments: Json
    only_reads: bool
    workspace: str
    user: str
    thread: str | None = None
    agent: str | None = None
    way: Way = "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a hook decides; what it leaves out stays as it is.

    `refuse` and `ask` say why: the call is not made, or its result not given; a person is asked before it is
    made. `arguments` and `output` come in the place of what the hook was shown. `notes` are told to whoever
    called. `found` is for the audit trail, and must repeat nothing that was found.
    """

    refuse: str | None = None
    ask: str | None = None
    arguments: Json | None = None
    output: Json | None = None
    notes: tuple[str, ...] = ()
    found: str = ""


class Hook:
    """Overwrite what you need. Each may be a plain function too: it is then called in a thread of its own."""

    async def before(self, call: HookedCall) -> Verdict | None:
        """The arguments fit the tool's schema; what comes in their place must, too."""
        return None

    async def after(self, call: HookedCall, output: Json) -> Verdict | None:
        """`output` is MCP's result: `content`, `structuredContent` and `isError` of a tool, `contents` of a
        resource, `messages` of a prompt. A failure is a result with `isError` and its message as text."""
        return None

    async def listed(self, connector: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        """Why tools are held back until a person accepts them, by their original names."""
        return {}


HookFactory = Callable[[tuple[str, ...]], Hook]
"""An entry point of the group `dragoman.hooks`: makes a hook of the values that stand in its rule."""
