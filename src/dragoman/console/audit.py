"""`/audit`: who did what to which, found by user, action and time; and the check that nobody changed it.

A key without the scope `admin` acts as a member, and members see their own: the hub says so.
"""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dragoman.console.formatting import pretty
from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.session_rights import check_from_here
from dragoman.errors import InvalidArguments

_A_PAGE = 50
_AT_ONCE = 1000
# What people look for; any other action can be typed.
_ACTIONS = (
    "call", "agent.created", "agent.updated", "agent.removed", "approval.answered", "approval.withdrawn",
    "connector.added", "connector.cleared", "connector.network", "connector.removed", "connector.updated",
    "credential.set", "credential.removed",
    "key.added", "key.revoked", "preferences.changed", "question.answered", "rollout.set", "run.cancelled",
    "tool.changed", "user.added", "user.updated", "user.removed", "workspace.updated",
)  # fmt: skip

# What has an id and, for who looks, no name: another's, or gone.
_UNNAMED = {
    "thr_": "a chat", "run_": "a run", "usr_": "a former user", "key_": "a former key", "cli_": "a client",
    "dcr_": "a client", "apr_": "an approval", "qst_": "a question", "rec_": "a recipe",
    "wsp_": "a former workspace",
}  # fmt: skip


async def show_all(request: Request) -> Response:
    facts = await _listed(request)
    if is_part(request):
        return pages_of(request).part(request, "audit/list.html", **facts)
    hub = hub_of(request)
    users = await hub.people.users() if hub.caller.is_admin else ()
    return pages_of(request).page(
        request,
        "audit.html",
        title="Audit",
        users=users,
        actions=_ACTIONS,
        leads=hub.caller.is_admin,
        **facts,
    )


async def verify(request: Request) -> Response:
    verdict = await hub_of(request).audit.verify()
    return pages_of(request).part(request, "audit/verdict.html", verdict=verdict)


async def export(request: Request) -> Response:
    """One JSON document a line, oldest first, as it was written."""
    check_from_here(request)
    name = f"audit-{datetime.now(UTC):%Y-%m-%d}.ndjson"
    return StreamingResponse(
        _lines(request),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


# Parts


async def _listed(request: Request) -> dict[str, Any]:
    asked, hub = request.query_params, hub_of(request)
    chosen = {name: asked.get(name, "").strip() for name in ("q", "user", "action", "since", "until", "sort")}
    after = asked.get("after", "0")
    sort = "oldest" if chosen["sort"] == "oldest" else "newest"
    entries = await hub.audit.list(
        user=chosen["user"] or None,
        action=chosen["action"] or None,
        since=_moment(chosen["since"]),
        until=_moment(chosen["until"]),
        query=chosen["q"][:200],
        after=int(after) if after.isdigit() and len(after) < 10 else 0,
        limit=_A_PAGE + 1,
        sort=sort,
    )
    shown = entries[:_A_PAGE]
    return {
        "entries": shown,
        "names": await hub.audit.names(shown),
        "unnamed": _UNNAMED,
        "chosen": chosen,
        "pretty": pretty,
        "is_first": after == "0",
        "sort": sort,
        "next": shown[-1].number if len(entries) > _A_PAGE else None,
    }


async def _lines(request: Request) -> AsyncGenerator[bytes]:
    after = 0
    while page := await hub_of(request).audit.export(after=after, limit=_AT_ONCE):
        for entry in page:
            yield orjson.dumps(entry, default=dict) + b"\n"
        after = page[-1].number


def _moment(text: str) -> datetime | None:
    """As a browser's field for a time writes it; times here are those of UTC."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:
        raise InvalidArguments("there is no such time", hint="choose a day and a time, or none") from None


routes = [
    Route("/audit", show_all),
    Route("/audit/verify", verify, methods=["POST"]),
    Route("/audit/export", export),
]
