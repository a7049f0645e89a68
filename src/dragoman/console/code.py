"""`/code`: Python that calls tools, written by a person or pasted from a model, run in the sandbox."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.formatting import pretty
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import filled

_EXAMPLE = """found = await search_tools("read", limit=5)
for one in found:
    print(one["name"])
len(found)
"""


async def show(request: Request) -> Response:
    guide = hub_of(request).code.description()
    return pages_of(request).page(request, "code.html", title="Code", guide=guide, example=_EXAMPLE)


async def run(request: Request) -> Response:
    """For who sits there: each call takes the road of every other. Code that fails is an answer too."""
    code = str((await filled(request)).data.get("code") or "")
    output = await hub_of(request).code.run(code)
    result = "" if output.result is None else pretty(output.result)
    return pages_of(request).part(request, "code/ran.html", output=output, result=result)


routes = [Route("/code", show), Route("/code", run, methods=["POST"])]
