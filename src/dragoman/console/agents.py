"""`/agents`: who works here. Make, start, stop and remove agents; give them connectors by drag or choice."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.agent import Agent, AgentNumbers
from dragoman.console.listing import Place, has_words, page_of
from dragoman.console.many_at_once import do_to_many, told_of_many
from dragoman.console.metrics import charts_about
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.setting_forms import FormField, noun_changes, noun_fields
from dragoman.console.submitted_form import filled
from dragoman.errors import InvalidArguments
from dragoman.hub import BoundHub
from dragoman.hub.agents import AgentView
from dragoman.hub.rollout import RolloutStatus
from dragoman.scope import APP, Caller
from dragoman.setting import people_set

_LAST_RUNS = 8
# Names that lead elsewhere are reached with the sign by which agents are mentioned.
_TAKEN = frozenset({"new", "assign-action-server", "remove-action-server"})
# Connectors are given and taken one by one.
_SETTINGS = tuple(one for one in people_set(Agent) if one.name != "connectors")


async def show_all(request: Request) -> Response:
    facts = await _all(request)
    if is_part(request):
        return pages_of(request).part(request, "agents/list.html", **facts)
    facts["rollout"] = await _rollout_status(request)
    return pages_of(request).page(request, "agents.html", title="Agents", **facts)


async def show_form(request: Request) -> Response:
    hub = hub_of(request)
    return pages_of(request).page(
        request,
        "agents/new.html",
        title="New agent",
        fields=await _fields(hub, None),
        connectors=await _connectors(hub),
        few=_FEW,
    )


async def create(request: Request) -> Response:
    hub, form = hub_of(request), await filled(request)
    agent = await hub.agents.create(
        form.text("name"),
        connectors=tuple(form.many("connector")),
        shared=bool(form.text("shared")),
        **noun_changes(form.texts(), _SETTINGS, None),
    )
    return _go(address_of(agent))


async def show(request: Request) -> Response:
    facts = await _one(request, _name(request))
    if is_part(request):
        return pages_of(request).part(request, "agents/agent.html", **facts)
    name = facts["view"].agent.name
    facts |= await charts_about(request, agent=name)
    return pages_of(request).page(request, "agents/show.html", title=name, **facts)


async def save(request: Request) -> Response:
    hub, form = hub_of(request), await filled(request)
    agent = await hub.agents.get(_name(request))
    await hub.agents.update(agent.name, **noun_changes(form.texts(), _SETTINGS, agent))
    return await _shown(request, agent.name, "Saved. It holds from the agent's next step.")


async def start(request: Request) -> Response:
    agent = await hub_of(request).agents.start(_name(request))
    return await _shown(request, agent.name, f"{agent.name} is at work again.")


async def stop(request: Request) -> Response:
    agent = await hub_of(request).agents.stop(_name(request))
    return await _shown(
        request, agent.name, f"{agent.name} takes no new message. What it works on, it finishes."
    )


async def remove(request: Request) -> Response:
    await hub_of(request).agents.remove(_name(request))
    return _go("/agents")


async def bulk(request: Request) -> Response:
    hub, form = hub_of(request), await filled(request)
    names, what = form.many("agent"), form.text("do")
    deeds = {"start": ("started", hub.agents.start), "stop": ("stopped", hub.agents.stop)}
    if what not in deeds:
        raise InvalidArguments(
            f"{what[:40]!r} is nothing to do with agents", hint="use the page's own buttons"
        )
    word, deed = deeds[what]
    failed = await do_to_many(hub, names, "agent", deed)
    done = [name for name in names if name not in failed]
    opposite = "stop" if what == "start" else "start"
    return pages_of(request).part(
        request,
        "parts/told.html",
        told=told_of_many(names, "agent", word, failed),
        told_kind="warn" if failed else "good",
        undo={"address": "/agents/-/bulk", "sent": {"do": opposite, "agent": " ".join(done)}}
        if done
        else None,
    )


async def give(request: Request) -> Response:
    hub = hub_of(request)
    slug = (await filled(request)).text("connector")
    agent = await hub.agents.assign(_name(request), slug)
    return await _shown(request, agent.name, f"{agent.name} has {slug} now.")


async def take(request: Request) -> Response:
    hub = hub_of(request)
    slug = request.path_params["slug"]
    agent = await hub.agents.unassign(_name(request), slug)
    return await _shown(request, agent.name, f"{agent.name} has {slug} no longer.")


# Parts


async def _shown(request: Request, name: str, told: str) -> Response:
    """The list again for who came from there, else the agent."""
    if request.query_params.get("in") == "list":
        return pages_of(request).part(request, "agents/list.html", told=told, **await _all(request))
    return pages_of(request).part(request, "agents/agent.html", told=told, **await _one(request, name))


async def _all(request: Request) -> dict[str, Any]:
    hub, asked = hub_of(request), request.query_params
    words = asked.get("q", "")[:100].lower().split()
    views = await hub.agents.views()
    found = [one for one in views if has_words(f"{one.agent.name} {one.agent.description}", words)]
    of_kinds = {kind: [one for one in found if one.agent.kind == kind] for kind in _KINDS}
    sort = asked.get("sort", "")
    sort = sort if sort in SORTS else "name"
    page = page_of(of_kinds["connector"], partial(_place, SORTS[sort][1]), asked.get("after", ""))
    return {
        "sort": sort,
        "sorts": {name: text for name, (text, _) in SORTS.items()},
        "views": {**of_kinds, "connector": page.shown},
        "page": page,
        "query": " ".join(words),
        "has_workers": any(one.agent.kind == "worker" for one in views),
        "few": _FEW,
        "connectors": await _connectors(hub),
        "default_model": (await hub.models.choose()).name,
        "address_of": address_of,
        "fixed": {one.agent.id for one in views if is_fixed(one.agent, hub.caller)},
    }


SORTS: Mapping[str, tuple[str, Callable[[AgentNumbers], float]]] = {
    "name": ("Name", lambda numbers: 0),
    "runs": ("Runs", lambda numbers: numbers.runs),
    "errors": ("Errors", lambda numbers: numbers.errors),
    "calls": ("Calls", lambda numbers: numbers.calls),
    "latency": ("Latency", lambda numbers: numbers.latency_ms if numbers.runs else 0),
    "tokens": ("Tokens", lambda numbers: numbers.input_tokens + numbers.output_tokens),
    "cost": ("Cost", lambda numbers: numbers.cost),
    "used": ("Last used", lambda numbers: numbers.last_used.timestamp() if numbers.last_used else 0),
}
"""How agents of connectors are ordered: each column with its number, the greatest first."""


def _place(number: Callable[[AgentNumbers], float], view: AgentView) -> Place:
    return (-float(number(view.numbers)), view.agent.name)


_FEW = 40  # connectors that are shown to choose from; of more the server is asked
_KINDS = ("assistant", "worker", "connector")


async def _one(request: Request, name: str) -> dict[str, Any]:
    hub = hub_of(request)
    view = await hub.agents.view(name)
    agent = view.agent
    runs = await hub.runs.list(agent=agent.name, roots_only=False, limit=_LAST_RUNS)
    return {
        "view": view,
        "address": address_of(agent),
        "few": _FEW,
        "connectors": await _connectors(hub),
        "fields": await _fields(hub, agent),
        "default_model": (await hub.models.choose()).name,
        "is_of_files": _is_of_files(agent),
        "is_fixed": is_fixed(agent, hub.caller),
        "runs": runs,
    }


async def _connectors(hub: BoundHub) -> Sequence[str]:
    views = await hub.connectors.list()
    return [view.connector.slug for view in views if view.connector.kind != "native"]


async def _fields(hub: BoundHub, agent: Agent | None) -> list[FormField]:
    """Models that can be used here are suggested; another may be typed, and is checked before it is kept."""
    survey = await hub.models.list()
    models = dict.fromkeys(found.model for found in survey if found.model and found.is_usable)
    kind = "worker" if agent is None else agent.kind
    described = [one for one in _SETTINGS if kind in (one.setting.when or (kind,))]
    return noun_fields(described, agent, model=models, fallbacks=models)


def is_fixed(agent: Agent, caller: Caller) -> bool:
    """Whether somebody else has to change it; the hub refuses anyway."""
    return not agent.owner and not caller.is_admin


def _is_of_files(agent: Agent) -> bool:
    return agent.kind == "worker" and agent.workspace == APP


def address_of(agent: Agent) -> str:
    sign = "@" if agent.name.casefold() in _TAKEN else ""
    return f"/agents/{quote(sign + agent.name, safe='@')}"


def _name(request: Request) -> str:
    return request.path_params["name"].removeprefix("@")


def _go(where: str) -> Response:
    return Response(status_code=204, headers={"hx-redirect": where})


# How far connector agents are rolled out: only the operator sees it


async def _rollout_status(request: Request) -> RolloutStatus | None:
    """None for whoever does not run this installation."""
    hub = hub_of(request)
    return await hub.rollout.status() if hub.caller.role == "operator" else None


async def show_rollout(request: Request) -> Response:
    return _rollout_part(request, await hub_of(request).rollout.status())


async def set_rollout(request: Request) -> Response:
    form = await filled(request)
    status = await hub_of(request).rollout.set(
        share=_percent(form.text("share")), workspaces=form.words("workspaces"), users=form.words("users")
    )
    return _rollout_part(request, status, "Set, for every process at once. Counting begins anew.")


async def reset_rollout(request: Request) -> Response:
    status = await hub_of(request).rollout.reset()
    return _rollout_part(request, status, "What the environment says holds again. Counting begins anew.")


def _rollout_part(request: Request, status: RolloutStatus, told: str = "") -> Response:
    return pages_of(request).part(request, "agents/rollout.html", rollout=status, told=told)


def _percent(text: str) -> float | None:
    """None where it is left empty: as it was."""
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidArguments("a share is a number", hint="0 to 100, in percent") from None


routes = [
    Route("/agents", show_all),
    Route("/agents", create, methods=["POST"]),
    Route("/agents/new", show_form),
    # No agent's name begins with a hyphen.
    Route("/agents/-/bulk", bulk, methods=["POST"]),
    Route("/agents/-/rollout", show_rollout),
    Route("/agents/-/rollout", set_rollout, methods=["POST"]),
    Route("/agents/-/rollout/reset", reset_rollout, methods=["POST"]),
    Route("/agents/{name}", show),
    Route("/agents/{name}", save, methods=["POST"]),
    Route("/agents/{name}/start", start, methods=["POST"]),
    Route("/agents/{name}/stop", stop, methods=["POST"]),
    Route("/agents/{name}/remove", remove, methods=["POST"]),
    Route("/agents/{name}/connectors", give, methods=["POST"]),
    Route("/agents/{name}/connectors/{slug}/remove", take, methods=["POST"]),
]
