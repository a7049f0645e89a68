"""`/approvals`: what waits for a person, exactly as it would be done; what was answered; what is allowed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.questions import answer_or_decline, calls_for, form_for
from dragoman.console.submitted_form import filled
from dragoman.errors import Conflict
from dragoman.hub.approvals import ApprovalView as Approval
from dragoman.names import dotted_name
from dragoman.store.records import ApprovalStatus
from dragoman.tool import visible_json, visible_values

TABS = {"open": "Open", "answered": "Answered", "allowed": "Allowed for longer"}
_STATUSES: tuple[ApprovalStatus, ...] = get_args(ApprovalStatus)
_MOST = 200
_MOST_EXPLAINED = 20


async def show_all(request: Request) -> Response:
    tab = request.query_params.get("tab", "open")
    tab = tab if tab in TABS else "open"
    facts: dict[str, Any] = await _FACTS[tab](request)
    template = f"approvals/{tab}.html"
    if is_part(request):
        return pages_of(request).part(request, template, **facts)
    return pages_of(request).page(
        request, "approvals.html", title="Approvals", tabs=TABS, tab=tab, part=template, **facts
    )


async def answer(request: Request) -> Response:
    """The answer is for what the person saw: other arguments have another hash."""
    hub, form = hub_of(request), await filled(request)
    approval = request.path_params["approval"]
    seen = await hub.approvals.get(approval)
    if form.text("hash") != seen.approval.binding.arguments_hash:
        raise Conflict(
            "this is not what the page showed", hint="load the page again and look at the arguments"
        )
    given = form.text("answer")
    await hub.approvals.answer(approval, given)
    tool = dotted_name(seen.approval.binding.tool)
    told = f"{tool} was denied." if given == "no" else f"{tool} is allowed."
    return pages_of(request).part(request, "approvals/open.html", told=told, **await _open(request))


async def answer_question(request: Request) -> Response:
    hub, form = hub_of(request), await filled(request)
    asked = await hub.runs.question(request.path_params["question"])
    after = await answer_or_decline(hub, asked, form.draft())
    how = "without your answer" if after.status == "declined" else "with your answer"
    told = f"{asked.agent or asked.connector} goes on {how}."
    return pages_of(request).part(request, "approvals/open.html", told=told, **await _open(request))


async def withdraw(request: Request) -> Response:
    await hub_of(request).approvals.withdraw(request.path_params["approval"])
    told = "Taken back: the next call asks again."
    return pages_of(request).part(request, "approvals/allowed.html", told=told, **await _allowed(request))


# What each tab shows


async def _open(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    approvals = await hub.approvals.list()
    questions = await hub.runs.questions()
    near = [one.approval.id for one in approvals[:_MOST_EXPLAINED]]
    return {
        "approvals": approvals,
        "contexts": {one: await hub.approvals.context(one) for one in near},
        "me": hub.caller.user,
        "questions": [(one, form_for(one), calls_for(one)) for one in questions],
        "names": await _names(request, approvals),
        "exact": visible_json,
        "values": visible_values,
        "left": left,
    }


async def _answered(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    status = request.query_params.get("status") or None
    approvals = [one for one in await hub.approvals.list(status, _MOST) if one.status != "pending"]
    questions = await hub.runs.questions(status=None, limit=_MOST)
    return {
        "approvals": approvals,
        "questions": [one for one in questions if one.status != "pending"],
        "names": await _names(request, approvals),
        "chosen": status or "",
        "statuses": [one for one in _STATUSES if one != "pending"],
        "exact": visible_json,
    }


async def _allowed(request: Request) -> dict[str, Any]:
    allowed = await hub_of(request).approvals.allowances()
    hub = hub_of(request)
    keys = [*await hub.people.keys(), *await hub.clients.list()] if any(one.key for one in allowed) else []
    return {"allowed": allowed, "ways": {one.id: one.name for one in keys}}


_FACTS = {"open": _open, "answered": _answered, "allowed": _allowed}


async def _names(request: Request, approvals: Sequence[Approval]) -> dict[str, str]:
    """How people call those who asked and answered."""
    hub = hub_of(request)
    ids = {one.approval.binding.user for one in approvals}
    ids |= {one.approval.answered_by for one in approvals if one.approval.answered_by}
    return {user: await hub.people.name_of(hub.caller.workspace, user) for user in ids}


def left(until: datetime) -> str:
    """Counted down further by the page itself."""
    seconds = max(0, int((until - datetime.now(UTC)).total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


routes = [
    Route("/approvals", show_all),
    Route("/approvals/{approval}/answer", answer, methods=["POST"]),
    Route("/approvals/allowed/{approval}/withdraw", withdraw, methods=["POST"]),
    Route("/approvals/questions/{question}", answer_question, methods=["POST"]),
]
