"""`/api/resources` and `/api/prompts`: what servers let read, and the texts that they keep."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from dragoman.api.events import event_stream
from dragoman.api.requests import PROBLEMS
from dragoman.api.threads import ThreadHub
from dragoman.errors import DragomanError
from dragoman.hub import BoundHub
from dragoman.hub.resources import ResourceContent
from dragoman.hub.server_requests import own_name
from dragoman.web.encoding import encode, json_response
from dragoman.web.server_sent_events import event_frame
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["resources"], responses=PROBLEMS)
Connector = Annotated[
    str | None, Query(max_length=200, description="only of this one; its failure is the answer's")
]
_ADDRESS = "`<connector>+<address of its server>`, as the list has it"
_Address = Annotated[str, StringConstraints(max_length=10_000)]


class MissingShape(Shape):
    """A server that could not be asked: its part of the list is not there."""

    connector: str
    code: str
    message: str
    hint: str | None


class ResourceShape(Shape):
    uri: str = Field(description=_ADDRESS)
    connector: str
    original_uri: str
    name: str
    title: str | None
    description: str
    mime_type: str | None
    size: int | None


class ResourcesShape(Shape):
    resources: list[ResourceShape]
    missing: list[MissingShape]


class ResourceTemplateShape(Shape):
    """An address with gaps, such as `{id}`, to be filled before it is read."""

    uri_template: str
    connector: str
    name: str
    title: str | None
    description: str
    mime_type: str | None


class ResourceTemplatesShape(Shape):
    templates: list[ResourceTemplateShape]
    missing: list[MissingShape]


class ResourceContentShape(Shape):
    uri: str
    mime_type: str | None
    text: str | None
    blob: str | None = Field(description="in base64, where it is no text")


class ReadResourceShape(Shape):
    """What was too large is cut; `/api/results/{handle}` has the whole."""

    contents: list[ResourceContentShape]
    truncated: bool
    handle: str | None
    size: int | None


class PromptArgumentShape(Shape):
    name: str
    title: str | None
    description: str
    required: bool


class PromptShape(Shape):
    name: str = Field(description="`<connector>__<name of its server>`")
    connector: str
    original_name: str
    title: str | None
    description: str
    arguments: list[PromptArgumentShape]


class PromptsShape(Shape):
    prompts: list[PromptShape]
    missing: list[MissingShape]


class PromptMessageShape(Shape):
    role: str
    content: dict[str, Any] = Field(description="a block of MCP: text, a picture, a resource")


class FilledPromptShape(Shape):
    description: str
    messages: list[PromptMessageShape]


class PromptRequest(BaseModel):
    """What the prompt is filled with."""

    model_config = ConfigDict(extra="forbid")

    arguments: dict[str, str] = Field(default={}, max_length=100)


class _CompletionRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    argument: str = Field(max_length=200, description="whose value is to be completed")
    value: str = Field(default="", max_length=10_000, description="what it begins with")
    given: dict[str, str] = Field(default={}, max_length=100, description="the values of others")


class ResourceCompletionRequest(_CompletionRequest):
    """A gap of an address that is to be filled."""

    uri_template: str = Field(max_length=10_000, description="as the list of templates has it")


class PromptCompletionRequest(_CompletionRequest):
    """An argument of a prompt that is to be filled."""

    name: str = Field(max_length=1_000, description="`<connector>__<name of its server>`")


class CompletionShape(Shape):
    values: list[str] = Field(
        description="what the server proposes, best first; empty where it knows nothing"
    )


class ResourceUpdateShape(Shape):
    """The data of `resource.updated`."""

    uri: str = Field(description=_ADDRESS)
    connector: str
    original_uri: str


_UPDATES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events; the data of each is a ResourceUpdateShape",
        "content": {"text/event-stream": {"schema": ResourceUpdateShape.model_json_schema()}},
    }
}


@routes.get("/resources", responses={200: {"model": ResourcesShape}})
async def list_resources(hub: ThreadHub, connector: Connector = None) -> Response:
    """Of all connectors whose servers answer within ten seconds, or of one."""
    found = await hub.resources.list(connector)
    listed = [ResourceShape.of(one) for one in found]
    return json_response(ResourcesShape(resources=listed, missing=_missing(found.missing)))


@routes.get("/resources/templates", responses={200: {"model": ResourceTemplatesShape}})
async def list_resource_templates(hub: ThreadHub, connector: Connector = None) -> Response:
    found = await hub.resources.templates(connector)
    listed = [ResourceTemplateShape.of(one) for one in found]
    return json_response(ResourceTemplatesShape(templates=listed, missing=_missing(found.missing)))


@routes.get("/resources/read", responses={200: {"model": ReadResourceShape}})
async def read_resource(hub: ThreadHub, uri: Annotated[_Address, Query(description=_ADDRESS)]) -> Response:
    """Counted, limited and recorded as a call is."""
    read = await hub.resources.read(uri)
    return json_response(ReadResourceShape.of(read, contents=[_content(one) for one in read.contents]))


@routes.get("/resources/updates", responses=_UPDATES)
async def follow_resources(
    request: Request,
    hub: ThreadHub,
    uri: Annotated[list[_Address], Query(min_length=1, max_length=100, description="one or more of them")],
) -> Response:
    """Tells, as server-sent events, whenever the server of one of these resources says that it changed.

    `resource.updated`, with its address: what is there now is read. An address that cannot be watched is a
    problem at once; from the first comment on nothing is missed.
    """
    frames = _update_frames(hub, uri)
    await anext(frames)
    return event_stream(request, frames)


@routes.post("/resources/complete", responses={200: {"model": CompletionShape}})
async def complete_resource(hub: ThreadHub, request: ResourceCompletionRequest) -> Response:
    """What its server proposes for a gap of an address. Limited as a call is."""
    asked = request
    values = await hub.resources.complete(asked.uri_template, asked.argument, asked.value, given=asked.given)
    return json_response(CompletionShape(values=list(values)))


@routes.get("/prompts", responses={200: {"model": PromptsShape}})
async def list_prompts(hub: ThreadHub, connector: Connector = None) -> Response:
    """Of all connectors whose servers answer within ten seconds, or of one."""
    found = await hub.prompts.list(connector)
    listed = [PromptShape.of(one) for one in found]
    return json_response(PromptsShape(prompts=listed, missing=_missing(found.missing)))


# No prompt has this name: each has that of its connector before it.
@routes.post("/prompts/complete", responses={200: {"model": CompletionShape}})
async def complete_prompt(hub: ThreadHub, request: PromptCompletionRequest) -> Response:
    """What its server proposes for an argument of a prompt. Limited as a call is."""
    asked = request
    values = await hub.prompts.complete(asked.name, asked.argument, asked.value, given=asked.given)
    return json_response(CompletionShape(values=list(values)))


@routes.post("/prompts/{name:path}", responses={200: {"model": FilledPromptShape}})
async def get_prompt(name: str, hub: ThreadHub, request: PromptRequest | None = None) -> Response:
    """The prompt with its arguments in it. Counted, limited and recorded as a call is."""
    given = request.arguments if request else {}
    return json_response(FilledPromptShape.of(await hub.prompts.get(name, given)))


async def _update_frames(hub: BoundHub, uris: Sequence[str]) -> AsyncGenerator[bytes]:
    """The first is empty: all of them are watched from then on."""
    number = 0
    async with hub.resources.watching(*uris) as updates:
        yield b""
        async for uri in updates:
            number += 1
            connector, original = own_name(uri, "+")
            told = ResourceUpdateShape(uri=uri, connector=connector, original_uri=original)
            yield event_frame(encode(told), kind="resource.updated", mark=str(number))


def _content(content: ResourceContent) -> ResourceContentShape:
    blob = None if content.blob is None else b64encode(content.blob).decode()
    return ResourceContentShape.of(content, blob=blob)


def _missing(missing: Mapping[str, DragomanError]) -> list[MissingShape]:
    return [MissingShape.of(error, connector=slug) for slug, error in sorted(missing.items())]
