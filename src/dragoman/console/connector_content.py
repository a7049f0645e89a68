"""What a server offers beside tools: resources are read and prompts filled, in the tabs of their connector.

Both go to the server with the person's own connection and are counted as calls are.
"""

from base64 import b64encode
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.formatting import pretty
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.errors import NotFound
from dragoman.hub.resources import ResourceContent

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_LARGEST_PICTURE = 2_000_000
_ARGUMENT = "argument:"


async def list_resources(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    await hub.connectors.get(slug)
    resources, templates = await hub.resources.list(slug), await hub.resources.templates(slug)
    return pages_of(request).part(
        request,
        "connectors/resources.html",
        slug=slug,
        resources=resources,
        templates=templates,
        missing=resources.missing.get(slug),
    )


async def read_resource(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    uri = (await filled(request)).text("uri")
    if not uri.startswith(f"{slug}+"):
        raise NotFound(f"{slug} has no such resource", hint="choose one of its list")
    read = await hub.resources.read(uri)
    parts = [_shown(one) for one in read.contents]
    return pages_of(request).part(
        request, "connectors/read.html", uri=uri.partition("+")[2], read=read, parts=parts
    )


async def list_prompts(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    await hub.connectors.get(slug)
    prompts = await hub.prompts.list(slug)
    return pages_of(request).part(
        request, "connectors/prompts.html", slug=slug, prompts=prompts, missing=prompts.missing.get(slug)
    )


async def fill_prompt(request: Request) -> Response:
    hub, slug, form = hub_of(request), request.path_params["slug"], await filled(request)
    name = form.text("name")
    if not name.startswith(f"{slug}__"):
        raise NotFound(f"{slug} has no such prompt", hint="choose one of its list")
    given = {
        field.removeprefix(_ARGUMENT): value
        for field, value in form.draft().items()
        if field.startswith(_ARGUMENT) and value.strip()
    }
    prompt = await hub.prompts.get(name, given)
    return pages_of(request).part(request, "connectors/prompt.html", prompt=prompt, pretty=pretty)


def _shown(content: ResourceContent) -> dict[str, Any]:
    """As a browser can show it: Markdown, JSON, a picture, other text; of the rest how much it is."""
    kind = (content.mime_type or "").partition(";")[0].strip().lower()
    if content.text is not None:
        return {"as": "markdown" if kind == "text/markdown" else "text", "text": content.text, "kind": kind}
    blob = content.blob or b""
    if kind in _PICTURES and len(blob) <= _LARGEST_PICTURE:
        return {"as": "picture", "source": f"data:{kind};base64,{b64encode(blob).decode()}", "kind": kind}
    return {"as": "bytes", "size": len(blob), "kind": kind}


routes = [
    Route("/connectors/{slug}/resources", list_resources),
    Route("/connectors/{slug}/resources/read", read_resource, methods=["POST"]),
    Route("/connectors/{slug}/prompts", list_prompts),
    Route("/connectors/{slug}/prompts/fill", fill_prompt, methods=["POST"]),
]
