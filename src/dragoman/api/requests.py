"""What the REST door is asked, checked as far as a door can: the hub checks the configuration itself."""

from typing import Annotated, Any, ClassVar, Self, cast

from fastapi import Depends, Request
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    TypeAdapter,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core.core_schema import CoreSchema

from dragoman.api.shapes import ProblemShape
from dragoman.connector import Configuration, GivenCredentials
from dragoman.hub import BoundHub
from dragoman.names import did_you_mean
from dragoman.web.guard import HUB, bound_hub

_CONFIGURATION = sorted(set(Configuration.model_fields) - {"secrets"})
_PROBLEM = {"application/problem+json": {"schema": TypeAdapter(ProblemShape).json_schema()}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {"description": "What went wrong", "content": _PROBLEM},
    422: {"description": "The request is not valid", "content": _PROBLEM},
}


async def _bound_hub(request: Request) -> BoundHub:
    return bound_hub(request.scope[HUB], request.scope)


TheHub = Annotated[BoundHub, Depends(_bound_hub)]


class _Facts(GivenCredentials):
    """The door's own fields; beside them come those of a configuration, which the hub checks."""

    model_config = ConfigDict(extra="allow", frozen=False)
    kept_fields: ClassVar[frozenset[str]] = frozenset({"name"})

    description: str | None = None
    connect: bool = Field(default=True, description="connect at once, to show that it works")

    @model_validator(mode="after")
    def _knows_every_field(self) -> Self:
        known = [*_CONFIGURATION, *type(self).model_fields]
        for name in self.model_extra or {}:
            if name not in _CONFIGURATION:
                near = did_you_mean(name[:100], known)
                raise ValueError(f"there is no field {name[:100]!r}" + (f"; {near}" if near else ""))
        return self

    def facts(self) -> dict[str, Any]:
        """As the hub takes them: only what was given. Null sets back to the default."""
        given = {name: getattr(self, name) for name in self.model_fields_set - self.kept_fields}
        if "description" in given:
            given["description"] = given["description"] or ""
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in given.items()
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The fields of a configuration are documented here as well."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        inner = Configuration.model_json_schema()
        fields = _inlined(inner["properties"], inner.get("$defs", {}))
        schema["properties"] = {
            **schema["properties"],
            **{name: fields[name] for name in _CONFIGURATION},
        }
        schema["additionalProperties"] = False
        return schema


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    """The same schema without references: what it refers to stands in their place."""
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    table = cast("dict[str, Any]", value)
    if isinstance(reference := table.get("$ref"), str):
        return _inlined(definitions[reference.rpartition("/")[2]], definitions)
    return {name: _inlined(item, definitions) for name, item in table.items()}


class NewConnector(_Facts):
    name: str = Field(max_length=200, examples=["time"])
    shared: bool = Field(default=False, description="for the whole workspace: only its admins may")


class ConnectorChanges(_Facts):
    """What is left out stays as it is; null sets back to the default. In what has fields or names of its own
    (`auth`, `retry`, `select`, `env`, `headers`) only those that are named change."""


class ToolCallRequest(BaseModel):
    """How a call is asked for. What it says of itself narrows who asks, and never widens it."""

    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    timeout: float | None = Field(default=None, description="seconds; shortens the connector's own")
    thread: str | None = Field(
        default=None, min_length=1, max_length=200, description="only what is active in this thread"
    )
    agent: str | None = Field(
        default=None, min_length=1, max_length=200, description="the call is this agent's: it may need a yes"
    )
    tools: list[str] | None = Field(default=None, max_length=1000, description="no tool but these")
    cost_limit: float | None = Field(default=None, description="most dollars that the call may cost")
    ask: bool = Field(
        default=True,
        description="whether what the server asks in the middle waits as a question at /api/questions;"
        " if not, it is declined at once",
    )
    messages: bool = Field(
        default=False,
        description="with events: also `call.message` for what is sent to the server and what it answers,"
        " without secrets; none where hooks or a bundle decide what the caller is shown",
    )


class CallRequest(ToolCallRequest):
    tool: str = Field(examples=["mcp_time_get_current_time"])


def request_body(model: type[BaseModel]) -> dict[str, Any]:
    """For the OpenAPI document, of what FastAPI does not read itself."""
    return {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}
