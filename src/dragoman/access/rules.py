"""Whether this caller may make this call: workspace, owner, capabilities, way, the pin, and the thread.

Knows neither arguments nor connections.
"""

from dragoman.access.threads import ActiveConnectors
from dragoman.catalog.connector_tools import is_of_tier, unknown_tool
from dragoman.connector import Connector
from dragoman.errors import Denied, ToolChanged, ToolDisabled
from dragoman.scope import Caller
from dragoman.tool import HELD_BACK, NEVER_ACCEPTED, Tool


class AccessRules:
    def __init__(self, threads: ActiveConnectors) -> None:
        self._threads = threads

    async def check(self, tool: Tool, connector: Connector, caller: Caller) -> None:
        """Returns when the call may go on."""
        check_tool(tool, connector, caller)
        if caller.thread is not None:
            await self._threads.check(tool, connector, caller)

    async def seen_by(self, caller: Caller) -> Caller:
        """Who looks for a tool: one who speaks in a thread with bundles finds what those show."""
        return caller if caller.thread is None else await self._threads.with_bundles(caller)


def check_tool(tool: Tool, connector: Connector, caller: Caller) -> None:
    """Everything but the thread. What the caller may not see is `NotFound`, never `Denied`."""
    is_theirs = tool.connector_id == connector.id and is_of_tier(connector, caller)
    if not is_theirs or not tool.may_be_used_by(caller):
        raise unknown_tool(tool.name)
    if not connector.enabled:
        raise ToolDisabled(
            f"the connector {connector.slug!r} is disabled",
            hint=f"enable it first: dragoman connectors enable {connector.slug}",
        )
    if not tool.enabled:
        raise ToolDisabled(f"the tool {tool.name!r} is disabled", hint="enable the tool first")
    if not tool.is_open_to(caller.way):
        allowed = ", ".join(sorted(tool.allowed_callers)) or "nobody"
        raise Denied(
            f"the tool {tool.name!r} may not be called by way of {caller.way!r}",
            hint=f"it may be called by way of: {allowed}",
        )
    if tool.awaits_acceptance(connector.configuration.pin):
        if tool.accepted_version == HELD_BACK:
            what = f"a hook holds {tool.name!r} back"
        elif tool.accepted_version == NEVER_ACCEPTED:
            what = f"the server has newly offered the tool {tool.name!r}"
        else:
            what = f"the server has changed the definition of {tool.name!r}"
        raise ToolChanged(
            f"{what}, and nobody has accepted that yet",
            hint=f"look at what changed (dragoman tools show {tool.name}), then accept it",
        )
