"""Whether this caller may make this call: workspace, owner, capabilities, way, the pin, and the thread.

Knows neither arguments nor connections.
"""

from dragoman.access.threads import ActiveConnectors
from dragoman.catalog.connector_tools import is_visible, unknown_tool
from dragoman.connector import Connector
from dragoman.errors import Denied, ToolChanged, ToolDisabled
from dragoman.scope import Caller
from dragoman.tool import Tool


class AccessRules:
    def __init__(self, threads: ActiveConnectors) -> None:
        self._threads = threads

    async def check(self, tool: Tool, connector: Connector, caller: Caller) -> None:
        """Returns when the call may go on."""
        check_tool(tool, connector, caller)
        if caller.thread is not None:
            await self._threads.check(connector, caller)


def check_tool(tool: Tool, connector: Connector, caller: Caller) -> None:
    """Everything but the thread. What the caller may not see is `NotFound`, never `Denied`."""
    is_theirs = tool.connector_id == connector.id and is_visible(connector, caller)
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
    if tool.version != tool.accepted_version and connector.configuration.pin == "block":
        what = "changed the definition of" if tool.accepted_version else "newly offered the tool"
        raise ToolChanged(
            f"the server has {what} {tool.name!r}, and nobody has accepted that yet",
            hint=f"look at what changed (dragoman tools show {tool.name}), then accept it",
        )
