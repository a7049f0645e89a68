"""How the assistant manages agents and connectors when a person asks: one function with actions.

It acts for its person and with their rights. What removes or adds something for good asks first; so does
every change once the run has heard others than its person, who may want it more than the person does.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from dragoman.agents.model_errors import failed
from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.connector import Configuration
from dragoman.errors import DragomanError, InvalidArguments
from dragoman.scope import Caller
from dragoman.setting import Described, settings_of
from dragoman.tool import Annotations, Tool, ToolDefinition

Arguments = Mapping[str, Any]


class Management(Protocol):
    """What the hub does for the assistant. Results are plain JSON, short enough for a model."""

    async def list_agents(self, caller: Caller) -> Any: ...
    async def create_agent(self, facts: Arguments, caller: Caller) -> Any: ...
    async def start_agent(self, name: str, caller: Caller) -> Any: ...
    async def stop_agent(self, name: str, caller: Caller) -> Any: ...
    async def delete_agent(self, name: str, caller: Caller) -> Any: ...
    async def assign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any: ...
    async def unassign(self, agent: str, connectors: Sequence[str], caller: Caller) -> Any: ...
    async def list_connectors(self, caller: Caller) -> Any: ...
    async def list_tools(self, connector: str | None, caller: Caller) -> Any: ...
    async def add_connector(self, facts: Arguments, caller: Caller) -> Any: ...
    async def remove_connector(self, name: str, caller: Caller) -> Any: ...

    async def admit(
        self, name: str, marks: Annotations, arguments: Arguments, caller: Caller, attempt: OfferCall
    ) -> None:
        """Returns when a person has said yes to exactly this. Raises when they have not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    name: str
    description: str
    properties: Mapping[str, Any]
    act: Callable[[Management, Arguments, Caller], Awaitable[Any]]
    required: tuple[str, ...] = ()
    asks_first: bool = False
    repeatable: bool = True
    reads: bool = False
    is_own_words: bool = True  # names and states, nothing that others wrote


NAME = "manage"
_DESCRIPTION = (
    "Manages agents and connectors when the person asks for that: create, start, stop or delete an agent,"
    " give it connectors or take them away, list, add or remove connectors. Without an action it tells the"
    " actions and their arguments. Not for work in a connected service."
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string"},
        "arguments": {"type": "object", "description": "of the action"},
    },
}


class ManagementOffers:
    """Fills `Offers`: `manage`, where the person may."""

    def __init__(self, management: Management) -> None:
        self._management = management

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        if not work.caller.manages:
            return []

        async def perform(given: Arguments, attempt: OfferCall) -> ToolReply:
            action = _ACTIONS.get(str(given.get("action") or "").strip())
            if action is None:
                return ToolReply(content=_manual(given.get("action")), is_own_words=True)
            try:
                return await self._performed(action, _arguments(given), work, attempt)
            except DragomanError as error:
                return failed(error, is_own_words=action.is_own_words)

        return [
            Offer(
                name=NAME,
                description=_DESCRIPTION,
                schema=_SCHEMA,
                perform=perform,
                title="Manage agents and connectors",
                repeatable=False,
                departs_itself=True,  # what only reads does not; what may wait for a person leaves after that
                metadata={"actions": _TOOLS},
            )
        ]

    async def instructions(self, work: WorkContext) -> str:
        return ""

    async def _performed(
        self, action: _Action, arguments: Arguments, work: WorkContext, attempt: OfferCall
    ) -> ToolReply:
        _check(action, arguments)
        if not action.reads:
            if action.asks_first or work.has_heard_others:
                marks = Annotations(read_only=False, destructive=action.asks_first)
                await self._management.admit(action.name, marks, arguments, work.caller, attempt)
            await attempt.observer.departs(action.repeatable)
        content = await action.act(self._management, arguments, work.caller)
        return ToolReply(content=content, is_own_words=action.is_own_words and not _has_shared(content))


def _has_shared(content: Any) -> bool:
    """Whether it names an agent that is shared: anybody may have named it."""
    listed = cast("Sequence[Any]", content) if isinstance(content, list) else [content]
    return any(isinstance(one, Mapping) and "shared" in one for one in listed)


def _manual(unknown: Any) -> Any:
    actions = {
        one.name: {"what": one.description, "arguments": one.properties, "required": [*one.required]}
        for one in _ACTIONS.values()
    }
    return {**({"unknown": str(unknown)[:80]} if unknown else {}), "actions": actions}


def _arguments(given: Arguments) -> Arguments:
    """Models put them beside the action as well."""
    inside = given.get("arguments")
    beside = {name: value for name, value in given.items() if name not in ("action", "arguments")}
    return {**beside, **(cast("Arguments", inside) if isinstance(inside, Mapping) else {})}


def _as_tool(action: _Action) -> Tool:
    """As the catalog would have it: the offline model ranks actions beside tools."""
    schema = {"type": "object", "properties": dict(action.properties), "required": [*action.required]}
    marks = Annotations(read_only=action.reads, destructive=action.asks_first)
    definition = ToolDefinition(
        original_name=action.name, description=action.description, input_schema=schema, annotations=marks
    )
    return Tool(name=action.name, workspace="", connector_id="", slug="", definition=definition)


def _check(action: _Action, arguments: Arguments) -> None:
    missing = [name for name in action.required if arguments.get(name) in (None, "", [])]
    if missing:
        raise InvalidArguments(f"{action.name} needs {', '.join(missing)}", hint="ask the person")
    if unknown := arguments.keys() - action.properties.keys():
        known = ", ".join(action.properties) or "none"
        raise InvalidArguments(
            f"{action.name} does not know {', '.join(sorted(unknown))}", hint=f"its arguments: {known}"
        )


def _names(value: Any) -> list[str]:
    """A list of names, also where a model wrote them in one string."""
    if isinstance(value, str):
        return [word for word in value.replace(",", " ").split() if word]
    return [str(one) for one in cast("Sequence[Any]", value)] if isinstance(value, Sequence) else []


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _schema(one: Described) -> dict[str, Any]:
    """A setting as a parameter; a model needs no more of them than say where a server is."""
    if one.kind == "list":
        return {"type": "array", "items": {"type": "string"}, "description": one.setting.meaning}
    return {"type": "string", "description": one.setting.meaning}


_REACHED_BY = ("url", "openapi", "command", "args")
_AGENT = _text("name of the agent")
_CONNECTORS = {"type": "array", "items": {"type": "string"}, "description": "names of connectors"}
_ALL = (
    _Action(
        name="list_agents",
        description="Lists the agents there are, whether they are at work, and their connectors.",
        properties={},
        act=lambda hub, given, caller: hub.list_agents(caller),
        reads=True,
    ),
    _Action(
        name="create_agent",
        description="Creates a new agent (worker) with a name, a job and connectors whose tools it may use.",
        properties={
            "name": _text("its name: letters, digits, hyphens"),
            "description": _text("its job in one sentence"),
            "instructions": _text("how it should work"),
            "connectors": _CONNECTORS,
            "model": _text("a model of its own; leave out for the default"),
        },
        required=("name",),
        act=lambda hub, given, caller: hub.create_agent(
            {**given, "connectors": _names(given.get("connectors"))}, caller
        ),
        repeatable=False,
    ),
    _Action(
        name="start_agent",
        description="Starts an agent that was stopped.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.start_agent(given["agent"], caller),
    ),
    _Action(
        name="stop_agent",
        description="Stops an agent: it keeps everything and takes no new messages.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.stop_agent(given["agent"], caller),
    ),
    _Action(
        name="delete_agent",
        description="Deletes an agent for good. A person is asked first.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.delete_agent(given["agent"], caller),
        asks_first=True,
        repeatable=False,
    ),
    _Action(
        name="assign_connector",
        description="Gives an agent access to connectors: it can use their tools from now on.",
        properties={"agent": _AGENT, "connectors": _CONNECTORS},
        required=("agent", "connectors"),
        act=lambda hub, given, caller: hub.assign(given["agent"], _names(given["connectors"]), caller),
    ),
    _Action(
        name="unassign_connector",
        description="Takes access to connectors away from an agent.",
        properties={"agent": _AGENT, "connectors": _CONNECTORS},
        required=("agent", "connectors"),
        act=lambda hub, given, caller: hub.unassign(given["agent"], _names(given["connectors"]), caller),
    ),
    _Action(
        name="list_connectors",
        description="Lists the connectors there are, with their state and the number of their tools.",
        properties={},
        act=lambda hub, given, caller: hub.list_connectors(caller),
        reads=True,
    ),
    _Action(
        name="list_tools",
        description="Lists the tools that are available, of all connectors or of one.",
        properties={"connector": _text("name of a connector; leave out for all")},
        act=lambda hub, given, caller: hub.list_tools(given.get("connector") or None, caller),
        reads=True,
        is_own_words=False,
    ),
    _Action(
        name="add_connector",
        description="Adds a connector: an MCP server by its URL or command, or an OpenAPI service by the URL"
        " of its document. A person is asked first.",
        properties={
            "name": _text("its name"),
            **{one.name: _schema(one) for one in settings_of(Configuration) if one.name in _REACHED_BY},
            "description": _text("what it is for"),
        },
        required=("name",),
        act=lambda hub, given, caller: hub.add_connector(given, caller),
        asks_first=True,
        repeatable=False,
        is_own_words=False,
    ),
    _Action(
        name="remove_connector",
        description="Removes a connector for good, with its tools and secrets. A person is asked first.",
        properties={"connector": _text("name of the connector")},
        required=("connector",),
        act=lambda hub, given, caller: hub.remove_connector(given["connector"], caller),
        asks_first=True,
        repeatable=False,
    ),
)
_ACTIONS = {one.name: one for one in _ALL}
_TOOLS = tuple(map(_as_tool, _ALL))
