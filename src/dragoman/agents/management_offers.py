"""How the assistant manages agents and connectors when a person asks: typed functions over the same facades.

It acts for its person and with their rights. What removes or adds something for good asks first; so does
every change once the run has heard others than its person, who may want it more than the person does.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from dragoman.agents.offers import Offer, OfferCall, ToolReply
from dragoman.agents.work_context import WorkContext
from dragoman.connector import Configuration
from dragoman.errors import InvalidArguments
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
class _Function:
    name: str
    description: str
    properties: Mapping[str, Any]
    act: Callable[[Management, Arguments, Caller], Awaitable[Any]]
    required: tuple[str, ...] = ()
    asks_first: bool = False
    repeatable: bool = True
    reads: bool = False
    is_own_words: bool = True  # names and states, nothing that others wrote


class ManagementOffers:
    """Fills `Offers`."""

    def __init__(self, management: Management) -> None:
        self._management = management

    async def list(self, work: WorkContext) -> Sequence[Offer]:
        return [self._offer(function, work) for function in _FUNCTIONS]

    async def instructions(self, work: WorkContext) -> str:
        return (
            "When the person asks you to manage agents or connectors, use the functions for it. A request for"
            " a task (read, send, find, create in a connected service) is not one to manage agents: do it"
            " with tools or hand it on."
        )

    def _offer(self, function: _Function, work: WorkContext) -> Offer:
        async def perform(arguments: Arguments, attempt: OfferCall) -> ToolReply:
            _check(function, arguments)
            if not function.reads:
                if function.asks_first or work.has_heard_others:
                    marks = Annotations(read_only=False, destructive=function.asks_first)
                    await self._management.admit(function.name, marks, arguments, work.caller, attempt)
                await attempt.observer.departs(function.repeatable)
            return ToolReply(content=await function.act(self._management, arguments, work.caller))

        schema = {
            "type": "object",
            "properties": dict(function.properties),
            "required": [*function.required],
        }
        return Offer(
            name=function.name,
            description=function.description,
            schema=schema,
            perform=perform,
            repeatable=function.repeatable,
            # What may wait for a person first leaves only after that.
            departs_itself=not function.reads,
            is_own_words=function.is_own_words,
            metadata={"tool": _as_tool(function, schema)},
        )


def _as_tool(function: _Function, schema: Mapping[str, Any]) -> Tool:
    """As the catalog would have it: the offline model ranks functions beside tools."""
    marks = Annotations(read_only=function.reads, destructive=function.asks_first)
    definition = ToolDefinition(
        original_name=function.name, description=function.description, input_schema=schema, annotations=marks
    )
    return Tool(name=function.name, workspace="", connector_id="", slug="", definition=definition)


def _check(function: _Function, arguments: Arguments) -> None:
    missing = [name for name in function.required if arguments.get(name) in (None, "", [])]
    if missing:
        raise InvalidArguments(f"{function.name} needs {', '.join(missing)}", hint="ask the person")
    if unknown := arguments.keys() - function.properties.keys():
        raise InvalidArguments(f"{function.name} does not know {', '.join(sorted(unknown))}")


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
_FUNCTIONS = (
    _Function(
        name="list_agents",
        description="Lists the agents there are, whether they are at work, and their connectors.",
        properties={},
        act=lambda hub, given, caller: hub.list_agents(caller),
        reads=True,
    ),
    _Function(
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
    _Function(
        name="start_agent",
        description="Starts an agent that was stopped.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.start_agent(given["agent"], caller),
    ),
    _Function(
        name="stop_agent",
        description="Stops an agent: it keeps everything and takes no new messages.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.stop_agent(given["agent"], caller),
    ),
    _Function(
        name="delete_agent",
        description="Deletes an agent for good. A person is asked first.",
        properties={"agent": _AGENT},
        required=("agent",),
        act=lambda hub, given, caller: hub.delete_agent(given["agent"], caller),
        asks_first=True,
        repeatable=False,
    ),
    _Function(
        name="assign_connector",
        description="Gives an agent access to connectors: it can use their tools from now on.",
        properties={"agent": _AGENT, "connectors": _CONNECTORS},
        required=("agent", "connectors"),
        act=lambda hub, given, caller: hub.assign(given["agent"], _names(given["connectors"]), caller),
    ),
    _Function(
        name="unassign_connector",
        description="Takes access to connectors away from an agent.",
        properties={"agent": _AGENT, "connectors": _CONNECTORS},
        required=("agent", "connectors"),
        act=lambda hub, given, caller: hub.unassign(given["agent"], _names(given["connectors"]), caller),
    ),
    _Function(
        name="list_connectors",
        description="Lists the connectors there are, with their state and the number of their tools.",
        properties={},
        act=lambda hub, given, caller: hub.list_connectors(caller),
        reads=True,
    ),
    _Function(
        name="list_tools",
        description="Lists the tools that are available, of all connectors or of one.",
        properties={"connector": _text("name of a connector; leave out for all")},
        act=lambda hub, given, caller: hub.list_tools(given.get("connector") or None, caller),
        reads=True,
        is_own_words=False,
    ),
    _Function(
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
    _Function(
        name="remove_connector",
        description="Removes a connector for good, with its tools and secrets. A person is asked first.",
        properties={"connector": _text("name of the connector")},
        required=("connector",),
        act=lambda hub, given, caller: hub.remove_connector(given["connector"], caller),
        asks_first=True,
        repeatable=False,
    ),
)
