"""`/runs`: what agents did and do. One run is a waterfall of its steps, and a timeline with all of them."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.agent import ASSISTANT
from dragoman.console.many_at_once import do_to_many, told_of_many
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.session_rights import has_scope
from dragoman.console.submitted_form import filled
from dragoman.console.waterfall import entry_of, waterfall_of
from dragoman.errors import Conflict, InvalidArguments, NotFound
from dragoman.hub import BoundHub
from dragoman.hub.runs import unknown_user
from dragoman.run import Run, RunEvent, RunSort, RunStatus, RunUsage

if TYPE_CHECKING:
    from dragoman.runs.timeline import Timeline

_A_PAGE = 50
_MOST_EVENTS = 500
_OTHERS = 30
SORTS: Mapping[RunSort, str] = {"newest": "Newest", "longest": "Longest", "costliest": "Highest cost"}
_BY_NAME: Mapping[str, RunSort] = {one: one for one in SORTS}
_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)


async def show_all(request: Request) -> Response:
    facts = await _listed(request)
    if is_part(request):
        return pages_of(request).part(request, "runs/list.html", **facts)
    hub = hub_of(request)
    return pages_of(request).page(
        request,
        "runs.html",
        title="Runs",
        statuses=_STATUSES,
        users=await hub.people.users() if hub.caller.is_admin and hub.settings.multi_user else (),
        **facts,
    )


async def show(request: Request) -> Response:
    facts = await _one(request)
    if is_part(request):
        return pages_of(request).part(request, "runs/run.html", **facts)
    return pages_of(request).page(request, "runs/show.html", title="Run", **facts)


async def show_events(request: Request) -> Response:
    """As they were told, for who wants to know it exactly; a part of them at a time."""
    run, after = request.path_params["run"], request.query_params.get("after", "0")
    view = await hub_of(request).runs.view(run)
    begin = int(after) if after.isdigit() else 0
    events = [event for event in view.events if event.number > begin]
    return pages_of(request).part(
        request,
        "runs/events.html",
        run=view.run,
        events=[(event, _plain(event)) for event in events[:_MOST_EVENTS]],
        more=events[_MOST_EVENTS - 1].number if len(events) > _MOST_EVENTS else None,
    )


async def cancel(request: Request) -> Response:
    run = await hub_of(request).runs.cancel(request.path_params["run"])
    told = "It was stopped." if run.is_finished else "It is being stopped, with all that is under it."
    return pages_of(request).part(request, "runs/run.html", told=told, **await _one(request))


async def show_prompts(request: Request) -> Response:
    prompts = await hub_of(request).runs.prompts(request.path_params["run"])
    return pages_of(request).part(request, "runs/prompts.html", prompts=prompts)


async def show_step(request: Request) -> Response:
    """What stands behind one bar: what went in, what came out, what it took."""
    hub, step = hub_of(request), request.path_params["step"]
    timeline = await _timeline(request)
    found = entry_of(timeline, step)
    if found is None:
        raise NotFound("there is no such step in this run", hint="load the page again")
    owner, entry = found
    is_own = owner.run.user == hub.caller.user
    asked_model = is_own and (entry is None or entry.kind == "model")
    prompts = await hub.runs.prompts(owner.run.id) if asked_model else ()
    return pages_of(request).part(
        request,
        "runs/step.html",
        run=timeline.run,
        owner=owner.run,
        entry=entry,
        prompt=next((one for one in prompts if one.run.id == owner.run.id), None),
        milliseconds=milliseconds,
        since=since,
        pretty=pretty,
    )


async def rerun(request: Request) -> Response:
    """The same request to the same agent in a new chat, with another model where one is chosen."""
    hub, form = hub_of(request), await filled(request)
    run = await _again(hub, request.path_params["run"], form.text("model"))
    return Response(status_code=204, headers={"hx-redirect": f"/runs/{run}"})


async def bulk(request: Request) -> Response:
    """Several at once: stopped, done again each in a chat of its own, or two of them beside each other."""
    hub, form = hub_of(request), await filled(request)
    runs, what = form.many("run"), form.text("do")
    if what == "compare":
        if len(runs) != _BESIDE:
            raise InvalidArguments("two runs are compared", hint="tick the two that are meant")
        return Response(
            status_code=204, headers={"hx-redirect": f"/runs/{quote(runs[0])}/compare?with={quote(runs[1])}"}
        )
    if what not in _DEEDS:
        raise InvalidArguments(f"{what[:40]!r} is nothing to do with runs", hint="use the page's own buttons")
    word, deed = _DEEDS[what]
    failed = await do_to_many(hub, runs, "run", partial(deed, hub))
    return pages_of(request).part(
        request,
        "parts/told.html",
        told=told_of_many(runs, "run", word, failed),
        told_kind="warn" if failed else "good",
    )


async def _again(hub: BoundHub, run: str, model: str = "") -> str:
    """The run that does it again."""
    was = await hub.runs.get(run)
    options = {"model": model} if model else {}
    return (await hub.messages.post(was.request, agent=was.agent or None, options=options)).run.id


async def _stop(hub: BoundHub, run: str) -> None:
    if (await hub.runs.get(run)).is_finished:
        raise Conflict("it has ended", hint="choose one that goes on")
    await hub.runs.cancel(run)


_BESIDE = 2
_DEEDS: Mapping[str, tuple[str, Callable[[BoundHub, str], Awaitable[Any]]]] = {
    "stop": ("being stopped", _stop),
    "again": ("started again", _again),
}


async def compare(request: Request) -> Response:
    hub = hub_of(request)
    asked = (request.path_params["run"], request.query_params.get("with", ""))
    timelines = [await hub.runs.timeline(one) for one in asked]
    longest = max(waterfall_of(one).total for one in timelines)
    sides = [{"run": one.run, "fall": waterfall_of(one, total=longest)} for one in timelines]
    return pages_of(request).page(request, "runs/compare.html", title="Compare two runs", sides=sides)


def case_of(timeline: "Timeline") -> str:
    """The run as a case of `dragoman eval`: a quoted text of JSON is one of TOML, too."""
    run = timeline.run
    called = [one.details for one in timeline.moments if one.kind == "call"]
    tools = [str(one.get("tool")) for one in called if one.get("status") == "done"]
    lines = [
        "[[cases]]",
        f"name = {_quoted(run.request[:80].strip() or run.id)}",
        f"message = {_quoted(run.request)}",
        *([f"agent = {_quoted(run.agent)}"] if run.agent and run.agent != ASSISTANT else []),
        *([f"expect.tools = {_quoted([*dict.fromkeys(tools)])}"] if tools else []),
        f"expect.status = {_quoted(run.status if run.is_finished else 'done')}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(value: str | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


# Parts


async def _listed(request: Request) -> dict[str, Any]:
    asked = request.query_params
    status = asked.get("status") or None
    if status is not None and status not in _STATUSES:
        raise InvalidArguments(f"{status[:40]!r} is no status of a run", hint="choose one of the list")
    chosen = {
        name: asked.get(name, "") for name in ("q", "status", "agent", "thread", "children", "user", "sort")
    }
    if chosen["user"] and not has_scope(request, "admin"):
        raise unknown_user(chosen["user"])
    sort = _BY_NAME.get(chosen["sort"], _BY_NAME["newest"])
    runs = await hub_of(request).runs.list(
        status=status,
        agent=chosen["agent"] or None,
        thread=chosen["thread"] or None,
        roots_only=not chosen["children"],
        query=chosen["q"][:200],
        user=chosen["user"] or None,
        sort=sort,
        after=asked.get("after") or None,
        limit=_A_PAGE + 1,
    )
    shown, hub = runs[:_A_PAGE], hub_of(request)
    return {
        "runs": shown,
        "names": {one.user: await hub.people.name_of(one.workspace, one.user) for one in shown}
        if chosen["user"]
        else {},
        "milliseconds": milliseconds,
        "own": hub.caller.user,
        "chosen": chosen,
        "sort": sort,
        "sorts": SORTS,
        "is_first": not asked.get("after"),
        "next": shown[-1].id if len(runs) > _A_PAGE else None,
    }


async def _timeline(request: Request) -> "Timeline":
    """Of one's own run; of another's for who may look after others, by a key that was made for it."""
    runs, run = hub_of(request).runs, request.path_params["run"]
    return await (runs.oversee(run) if has_scope(request, "admin") else runs.timeline(run))


async def _one(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    timeline = await _timeline(request)
    run = timeline.run
    is_whole = request.query_params.get("wait") == "whole"
    is_own = run.user == hub.caller.user
    root = run if run.is_root or not is_own else await hub.runs.get(run.root)
    return {
        "run": run,
        "timeline": timeline,
        "milliseconds": milliseconds,
        "since": since,
        "pretty": pretty,
        "can_stop": is_own and not root.is_finished,
        "fall": waterfall_of(timeline, shortened=not is_whole),
        "is_whole": is_whole,
        "case": case_of(timeline),
        "others": [one for one in await hub.runs.list(limit=_OTHERS) if one.id != run.id],
        "can_keep": is_own and run.status == "done" and await hub.recipes.is_on(),
        "is_own": is_own,
        "whose": await hub.people.name_of(run.workspace, run.user),
        "usage": run.usage if run.is_finished else usage_so_far(timeline),
    }


def usage_so_far(timeline: "Timeline") -> RunUsage:
    """What a run has used by now; its own figures are written when it ends."""
    asked = [one.details for one in timeline.moments if one.kind == "model"]
    calls = [one for one in timeline.moments if one.kind == "call"]
    below = [
        child.run.usage if child.run.is_finished else usage_so_far(child)
        for one in timeline.moments
        for child in one.runs
    ]
    return RunUsage(
        requests=len(asked) + sum(one.requests for one in below),
        calls=len(calls) + sum(one.calls for one in below),
        input_tokens=sum(one.get("input_tokens") or 0 for one in asked)
        + sum(one.input_tokens for one in below),
        output_tokens=sum(one.get("output_tokens") or 0 for one in asked)
        + sum(one.output_tokens for one in below),
        cost=sum(one.get("cost") or 0 for one in asked) + sum(one.cost for one in below),
    )


def milliseconds(run: Run) -> float | None:
    """How long it took, or takes until now."""
    if run.started_at is None:
        return None
    return ((run.finished_at or datetime.now(UTC)) - run.started_at).total_seconds() * 1000


def since(run: Run, when: datetime) -> str:
    """Where in the run something happened."""
    seconds = max(0.0, (when - (run.started_at or run.created_at)).total_seconds())
    if seconds < 100:
        return f"+{seconds:.2f} s"
    return f"+{int(seconds // 60)} min {int(seconds % 60)} s"


def pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _plain(event: RunEvent) -> str:
    return json.dumps(dict(event.data), ensure_ascii=False, default=str)


routes = [
    Route("/runs", show_all),
    Route("/runs/-/bulk", bulk, methods=["POST"]),
    Route("/runs/{run}", show),
    Route("/runs/{run}/events", show_events),
    Route("/runs/{run}/steps/{step}", show_step),
    Route("/runs/{run}/compare", compare),
    Route("/runs/{run}/rerun", rerun, methods=["POST"]),
    Route("/runs/{run}/prompts", show_prompts),
    Route("/runs/{run}/cancel", cancel, methods=["POST"]),
]
