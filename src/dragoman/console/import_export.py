"""`/transfer`: configurations in and out. First what would happen, then the doing of it, step by step."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.formatting import said
from dragoman.console.pages import event_stream, hub_of, pages_of, part_frame
from dragoman.console.submitted_form import SubmittedForm, filled
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats.import_files import ImportText
from dragoman.formats.parsing import MAX_TEXT
from dragoman.hub.imports import ImportStep

_ANSWER = "answer:"
_MOST_FILES = 50
_OFFERS_AT_ONCE = 20
_FORMS = {"dragoman": "for Dragoman", "mcpServers": "as mcpServers"}


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a person wants to import. It is sent anew with every step: nothing of it is kept here."""

    texts: list[ImportText]
    answers: dict[str, str]
    may_replace: bool

    @property
    def how(self) -> dict[str, Any]:
        return {"inputs": self.answers, "replace": self.may_replace}


async def show(request: Request) -> Response:
    discovery = hub_of(request).discovery
    return pages_of(request).page(
        request, "transfer.html", title="Import/export", forms=_FORMS, discovery=discovery.mode
    )


async def plan(request: Request) -> Response:
    """What would happen; nothing is written."""
    wish = await _wish(request)
    steps = await hub_of(request).imports.plan(wish.texts, **wish.how)
    return pages_of(request).part(request, "transfer/plan.html", steps=steps, wish=wish)


async def apply(request: Request) -> Response:
    """Does it, and tells of each entry as soon as it is connected."""
    wish = await _wish(request)
    hub = hub_of(request)
    expected = await hub.imports.plan(wish.texts, **wish.how)
    told: asyncio.Queue[ImportStep | list[ImportStep] | DragomanError] = asyncio.Queue()

    async def work() -> None:
        try:
            told.put_nowait(await hub.imports.apply(wish.texts, **wish.how, progress=told.put_nowait))
        except DragomanError as error:
            told.put_nowait(error)
        await asyncio.Event().wait()  # the frames end the stream once all of them are told

    return event_stream(request, _frames(request, len(expected), told), beside=work)


async def export(request: Request) -> Response:
    """A file to keep, without secrets."""
    form = request.query_params.get("format", "dragoman")
    text = await _written(request, form, include_secrets=False)
    headers = {"content-disposition": f'attachment; filename="{_name(form)}"'}
    return Response(text, media_type="application/json", headers=headers)


async def export_secrets(request: Request) -> Response:
    """Shown in the page, which no other site can ask for; the page offers it as a file."""
    form = SubmittedForm(await request.form()).text("format")
    text = await _written(request, form, include_secrets=True)
    return pages_of(request).part(request, "transfer/exported.html", text=text, name=_name(form))


# Parts


async def _written(request: Request, form: str, *, include_secrets: bool) -> str:
    if form not in _FORMS:
        raise InvalidConfig(f"there is no form {form[:40]!r}", hint=f"there are: {', '.join(_FORMS)}")
    exports = hub_of(request).exports
    write = exports.dragoman if form == "dragoman" else exports.mcp_servers
    return await write(include_secrets=include_secrets)


def _name(form: str) -> str:
    return f"{form}-{datetime.now(UTC):%Y-%m-%d}.json"


async def _frames(
    request: Request, total: int, told: "asyncio.Queue[ImportStep | list[ImportStep] | DragomanError]"
) -> AsyncIterator[bytes]:
    done: list[ImportStep] = []
    yield pages_of(request).frame(request, "transfer/progress.html", done=done, total=total)
    while True:
        news = await told.get()
        if isinstance(news, ImportStep):
            done.append(news)
            yield pages_of(request).frame(request, "transfer/progress.html", done=done, total=total)
        elif isinstance(news, DragomanError):
            yield part_frame(bytes(said(request, news).body))
            return
        else:
            yield pages_of(request).frame(request, "transfer/done.html", steps=news)
            return


async def _wish(request: Request) -> _Wish:
    async with request.form(max_files=_MOST_FILES, max_part_size=MAX_TEXT) as form:
        typed = SubmittedForm(form)
        texts = [ImportText(text=typed.text("text"), name="the text")] if typed.text("text") else []
        texts += await _files(form)
        answers = _answers(typed)
        may_replace = bool(typed.text("replace"))
    if not texts:
        raise InvalidConfig(
            "there is nothing to import", hint="paste the text of a configuration, or choose its file"
        )
    return _Wish(texts, answers, may_replace)


def _answers(form: SubmittedForm) -> dict[str, str]:
    """What a person typed where a configuration asks for a value."""
    return {
        name.removeprefix(_ANSWER): value
        for name, value in form.draft().items()
        if name.startswith(_ANSWER) and value
    }


async def _files(form: FormData) -> list[ImportText]:
    texts: list[ImportText] = []
    for file in form.getlist("file"):
        if not isinstance(file, UploadFile) or not file.filename:
            continue
        name = file.filename[:200]
        if (file.size or 0) > MAX_TEXT:
            raise InvalidConfig(f"{name} is larger than {MAX_TEXT // 1024 // 1024} MB")
        try:
            texts.append(ImportText(text=(await file.read()).decode(), name=name))
        except UnicodeDecodeError:
            raise InvalidConfig(f"{name} cannot be read", hint="it is no UTF-8 text") from None
    return texts


# The registry: what it offers, exactly, and the taking of one


async def search_registry(request: Request) -> Response:
    asked = request.query_params
    words, cursor = asked.get("words", "").strip()[:200], asked.get("cursor") or None
    page = await hub_of(request).discovery.search(words, cursor=cursor, limit=_OFFERS_AT_ONCE)
    return pages_of(request).part(
        request, "transfer/offers.html", page=page, words=words, is_first=cursor is None
    )


async def show_server(request: Request) -> Response:
    offer = await hub_of(request).discovery.get(request.query_params.get("name", ""))
    return pages_of(request).part(request, "transfer/offer.html", offer=offer)


async def install_server(request: Request) -> Response:
    """By the way that the person was shown; when the registry offers another by now, nothing is added."""
    form = await filled(request)
    answers = _answers(form)
    try:
        view = await hub_of(request).discovery.add(
            form.text("name"),
            shown=form.text("shown"),
            inputs=answers,
            connector=form.text("connector") or None,
        )
    except DragomanError as error:
        return said(request, error)
    return Response(status_code=204, headers={"hx-redirect": f"/connectors/{view.connector.slug}"})


routes = [
    Route("/transfer", show),
    Route("/transfer/plan", plan, methods=["POST"]),
    Route("/transfer/apply", apply, methods=["POST"]),
    Route("/transfer/export", export),
    Route("/transfer/export", export_secrets, methods=["POST"]),
    Route("/transfer/offers", search_registry),
    Route("/transfer/offers/one", show_server),
    Route("/transfer/offers", install_server, methods=["POST"]),
]
