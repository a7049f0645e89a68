"""`/api/import` and `/api/export`: configurations that people have, in and out."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.api.shapes import ConnectorShape, connector_view
from dragoman.formats import BaseFolders
from dragoman.formats.import_files import ImportText
from dragoman.hub.imports import Action, ImportStep
from dragoman.web.encoding import JSON, json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["configuration"], responses=PROBLEMS)


class RequiredInputShape(Shape):
    name: str
    description: str
    is_required: bool
    is_secret: bool
    default: str | None
    choices: list[str]


class ImportStepShape(Shape):
    """What happened, or would happen, to one entry. No secret appears in it."""

    source: str
    kind: Literal["connector", "agent", "bundle", "file"]
    name: str
    slug: str
    action: Action
    reached_by: str
    reason: str
    differs: list[str]
    needs: list[RequiredInputShape]
    missing: list[str]
    warnings: list[str]
    connector: ConnectorShape | None


class ImportStepsShape(Shape):
    steps: list[ImportStepShape]


class ImportFile(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    text: str = Field(description="the whole file, in any of the known formats")
    name: str = Field(default="the text", max_length=500, description="as the file is called")
    folder: str | None = Field(default=None, description="what ${workspaceFolder} stands for")
    home: str | None = Field(default=None, description="what ${userHome} stands for")
    env_files: dict[str, str] = Field(default_factory=dict[str, str], description="the text of each envFile")

    def as_text(self) -> ImportText:
        places = BaseFolders(folder=self.folder, home=self.home)
        return ImportText(name=self.name, text=self.text, places=places, env_files=self.env_files)


class ImportRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    files: list[ImportFile] = Field(min_length=1, max_length=200)
    dry_run: bool = Field(default=False, description="tell what would happen and write nothing")
    replace: bool = Field(default=False, description="put what differs in the place of what exists")
    connect: bool = Field(default=True, description="connect at once to what was added")
    inputs: dict[str, str] = Field(default_factory=dict[str, str], description="what the files ask for")


@routes.post("/import", responses={200: {"model": ImportStepsShape}})
async def import_files(wanted: ImportRequest, hub: TheHub) -> Response:
    """Importing twice changes nothing; what collides is named and left alone."""
    texts = [file.as_text() for file in wanted.files]
    if wanted.dry_run:
        steps = await hub.imports.plan(texts, inputs=wanted.inputs, replace=wanted.replace)
    else:
        steps = await hub.imports.apply(
            texts, inputs=wanted.inputs, replace=wanted.replace, connect=wanted.connect
        )
    return json_response({"steps": [step_view(step) for step in steps]})


@routes.get("/export", responses={200: {"content": {JSON: {}}}})
async def export_connectors(
    hub: TheHub,
    form: Annotated[Literal["dragoman", "mcpServers"], Query(alias="format")] = "dragoman",
    include_secrets: bool = False,
) -> Response:
    """Text that can be imported again. Secrets that are left out are named."""
    write = hub.exports.dragoman if form == "dragoman" else hub.exports.mcp_servers
    text = await write(include_secrets=include_secrets)
    return Response(text, headers={"Cache-Control": "no-store"}, media_type=JSON)


def step_view(step: ImportStep) -> ImportStepShape:
    return ImportStepShape.of(step, connector=connector_view(step.view) if step.view else None)
