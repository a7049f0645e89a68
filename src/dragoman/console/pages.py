"""How pages are made: templates with escaping always on, the session at hand, headers against strangers."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dragoman import extras
from dragoman.agent import AgentNumbers
from dragoman.agents.citations import rewritten
from dragoman.agents.rollout import RolloutFigures
from dragoman.console.places import PLACES, MenuEntry
from dragoman.console.sessions import BrowserSession
from dragoman.console.static_files import StaticFiles
from dragoman.hints import first_page, worded
from dragoman.hub import BoundHub
from dragoman.names import dotted_name
from dragoman.run import RunUsage
from dragoman.scope import NOBODY
from dragoman.web.server_sent_events import EventStream, Work

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_LONGEST = 200_000
_reader = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)


def rendered(text: str) -> Markup:
    """Images are left out: a picture from elsewhere would tell that place who reads this."""
    html = _reader.render(text[:_LONGEST])
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}, "code": set(), "td": set(), "th": set()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitised one line above


def cited(text: str, sources: Iterable[Mapping[str, Any]], run: str) -> str:
    """The Markdown of an answer with a link from each citation to its source on the page."""
    known = {str(one.get("id")) for one in sources}
    if not known:
        return text

    def written(ids: Sequence[str]) -> str:
        return " ".join(f"[\\[{one}\\]](#source-{run}-{one})" if one in known else f"[{one}]" for one in ids)

    return rewritten(text, written)


_TITLES = {
    "/connectors": "Connectors",
    "/tools": "Tools",
    "/bundles": "Bundles",
    "/hooks": "Hooks",
    "/agents": "Agents",
    "/runs": "Runs",
    "/recipes": "Recipes",
    "/chat": "Chat",
    "/approvals": "Approvals",
    "/credentials": "Credentials",
    "/keys": "API keys",
    "/users": "Users",
    "/clients": "Clients",
    "/settings": "Settings",
    "/settings?tab=models": "Models",
    "/transfer": "Import/export",
}


def linked(hint: str | None) -> Markup:
    """The hint in plain words, and a link to the page where a person does what its first command does."""
    text = escape(worded(hint, "plain") or "")
    page = first_page(hint or "")
    if not page:
        return text
    label = _TITLES.get(page) or unquote(page.rpartition("/")[2])
    return Markup('{} · <a href="{}">{}</a>').format(text, page, label)


_KEEP_ALIVE = 10.0  # seconds; a page that hears nothing for longer comes again
HERE = Path(__file__).parent
STATIC = HERE / "static"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
    "; media-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"
    "; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers then say `Origin: null` of our own forms, which the guard refuses.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every page: whose workspace it is, how much there is, and what waits."""

    workspace: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: int = 0


_NO_FRAME = Frame()


class Pages:
    """`page` is a whole page in the frame, `part` a piece of one for htmx to put in its place."""

    def __init__(self) -> None:
        self.files = StaticFiles(STATIC)
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            {  # type: ignore[dict-item]
                "cited": cited,
                "find_missing": extras.find_missing,
                "static": self.files,
                "version": version("dragoman"),
            }
        )
        self._environment.filters |= {
            "ago": ago,
            "moment": moment,
            "number": number,
            "duration": duration,
            "money": money,
            "spent": spent,
            "markdown": rendered,
            "initials": initials,
            "linked": linked,
            "sentence": sentence,
            "dotted": dotted_name,
        }

    def page(
        self, request: Request, template: str, *, title: str, status: int = 200, **facts: Any
    ) -> Response:
        return HTMLResponse(self._text(request, template, {"title": title, **facts}), status)

    def part(self, request: Request, template: str, *, status: int = 200, **facts: Any) -> Response:
        return HTMLResponse(self._text(request, template, facts), status)

    def frame(self, request: Request, template: str, **facts: Any) -> bytes:
        """A part as one event of a stream, which htmx puts where a part would go."""
        return part_frame(self._text(request, template, facts).encode())

    def _text(self, request: Request, template: str, facts: Mapping[str, Any]) -> str:
        session = find_session(request)
        hub = hub_of(request)
        known = {
            "request": request,
            "session": session,
            "path": request.url.path,
            "hub": hub,
            "places": places_of(hub),
            "frame": getattr(request.state, "frame", _NO_FRAME),
        }
        return self._environment.get_template(template).render({**known, **facts})


def sentence(text: str) -> str:
    """With a capital, as it begins a line; the rest as it is."""
    return text[:1].upper() + text[1:]


def places_of(hub: BoundHub) -> list[MenuEntry]:
    """The entries of the menu for who sits there."""
    has_nodes = bool(hub.settings.cluster_url) and hub.caller.role == "operator"
    has_users = hub.settings.multi_user and hub.caller.is_admin
    return [
        place
        for place in PLACES
        if (has_nodes or not place.of_clusters)
        and (has_users or not place.of_admins)
        and (hub.settings.registry_follow or not place.of_followers)
    ]


def hub_of(request: Request) -> BoundHub:
    """The hub for who sits there. Before they have signed in, nobody does."""
    session = find_session(request)
    return request.app.state.hub.acting_for(NOBODY if session is None else session.admission.caller)


def pages_of(request: Request) -> Pages:
    return request.app.state.pages


def find_session(request: Request) -> BrowserSession | None:
    return getattr(request.state, "session", None)


def is_part(request: Request) -> bool:
    """Whether htmx asks for a piece and not a person for a page."""
    return request.headers.get("hx-request") == "true"


def part_frame(text: bytes) -> bytes:
    return b"".join(b"data: %s\n" % line for line in text.splitlines()) + b"\n"


def event_stream(request: Request, frames: AsyncIterator[bytes], beside: Work | None = None) -> Response:
    """Server-sent events to one page: until it is left or the service stops."""
    streams, caller = request.app.state.streams, hub_of(request).caller
    return EventStream(frames, streams, caller, keep_alive=_KEEP_ALIVE, beside=beside)


# What templates say


def ago(when: datetime | None) -> Markup:
    """How long since, with the exact time for who points at it."""
    if when is None:
        return Markup("never")
    exact = moment(when)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(when.isoformat(), exact, _since(when))


def _since(when: datetime) -> str:
    seconds = max(0, int((datetime.now(UTC) - when).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now" if seconds < 5 else f"{seconds} s ago"


def moment(when: datetime | str | None) -> str:
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    return f"{when.astimezone(UTC):%d %b %Y %H:%M:%S} UTC" if when else ""


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def money(dollars: float | None) -> str:
    if not dollars:
        return "$0"
    return f"${dollars:.4f}" if dollars < 0.01 else f"${dollars:,.2f}"


def spent(usage: RunUsage | AgentNumbers | RolloutFigures) -> str:
    """What work cost; a price that nobody knows is no price of nothing."""
    if not usage.unpriced:
        return money(usage.cost)
    return f"over {money(usage.cost)}" if usage.cost else "unknown"


def initials(name: str) -> str:
    words = [word for word in name.replace("-", " ").replace("_", " ").split() if word]
    return ("".join(word[0] for word in words[:2]) if len(words) > 1 else name[:2]).upper()
