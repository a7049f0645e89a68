"""The part of the page of agents that only the operator sees: how far connector agents are rolled out."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, pages_of
from dragoman.console.session_rights import check_scope
from dragoman.console.submitted_form import filled
from dragoman.errors import InvalidArguments
from dragoman.hub.rollout import RolloutStatus


async def status_for(request: Request) -> RolloutStatus | None:
    """None for whoever does not run this installation."""
    hub = hub_of(request)
    return await hub.rollout.status() if hub.caller.role == "operator" else None


async def show(request: Request) -> Response:
    return _part(request, await hub_of(request).rollout.status())


async def set_plan(request: Request) -> Response:
    check_scope(request, "manage")
    form = await filled(request)
    status = await hub_of(request).rollout.set(
        share=_percent(form.text("share")), workspaces=form.words("workspaces"), users=form.words("users")
    )
    return _part(request, status, "Set, for every process at once. Counting begins anew.")


async def reset(request: Request) -> Response:
    check_scope(request, "manage")
    status = await hub_of(request).rollout.reset()
    return _part(request, status, "What the environment says holds again. Counting begins anew.")


def _part(request: Request, status: RolloutStatus, told: str = "") -> Response:
    return pages_of(request).part(request, "agents/rollout.html", rollout=status, told=told)


def _percent(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        raise InvalidArguments("a share is a number", hint="0 to 100, in percent") from None


# No agent's name begins with a hyphen.
routes = [
    Route("/agents/-/rollout", show),
    Route("/agents/-/rollout", set_plan, methods=["POST"]),
    Route("/agents/-/rollout/reset", reset, methods=["POST"]),
]
