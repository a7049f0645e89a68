"""What a service answered, as content of a tool: JSON, text, picture or binary, by its content type. Pure."""

import re
from base64 import b64encode
from codecs import lookup
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from dragoman.connections.openapi.body_schemas import is_json
from dragoman.connections.openapi.requests import readable
from dragoman.connections.openapi.untrusted_json import as_list, as_text, is_object
from dragoman.remote_data import parse_json
from dragoman.tool import RawResult

_LARGEST_STRUCTURE = 8 * 1024 * 1024  # parsing more would hold up the others for too long
_EXCERPT = 3000
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_NO_CHARSETS = (
    "idna",
    "punycode",
    "undefined",
)  # encodings of Python that no text is written in; two are slow
_SAYING = (
    "detail",
    "message",
    "error_description",
    "error",
    "title",
    "msg",
    "description",
    "reason",
    "errors",
)
_SHOWN_HEADERS = (
    "content-type",
    "content-length",
    "content-language",
    "date",
    "etag",
    "retry-after",
    "server",
)
_TEXTUAL = ("xml", "yaml", "javascript", "csv", "html", "x-www-form-urlencoded", "graphql", "x-ndjson")


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """`type` is the content type without its parameters; `url` is where it came from."""

    status: int
    reason: str
    type: str
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_failure(self) -> bool:
        return self.status >= 400

    @property
    def is_elsewhere(self) -> bool:
        """The service points at another host: where to is all there is to say."""
        return 300 <= self.status < 400 and "Location" in self.headers

    @property
    def title(self) -> str:
        return f"{self.status} {self.reason}".strip()


def result_of(answer: ServiceResponse) -> RawResult:
    """A good answer, or one of a status from 400 on, which is the tool's failure with the service's words."""
    if answer.is_failure:
        text = said(answer)
        return RawResult(content=({"type": "text", "text": text},), is_error=True, meta=_meta(answer))
    if not answer.body or answer.is_elsewhere:
        return RawResult(content=({"type": "text", "text": _empty(answer)},), meta=_meta(answer))
    kind = answer.type
    if (is_json(kind) or _looks_like_json(kind, answer.body)) and (found := _json(answer)) is not None:
        return found
    if kind.startswith("image/") and kind != "image/svg+xml":
        block: dict[str, Any] = {"type": "image", "data": b64encode(answer.body).decode(), "mimeType": kind}
    elif kind.startswith("audio/"):
        block = {"type": "audio", "data": b64encode(answer.body).decode(), "mimeType": kind}
    elif _is_text(kind, answer.body):
        block = {"type": "text", "text": _text(answer)}
    else:
        blob = b64encode(answer.body).decode()
        mime = kind or "application/octet-stream"
        block = {"type": "resource", "resource": {"uri": answer.url, "mimeType": mime, "blob": blob}}
    return RawResult(content=(block,), meta=_meta(answer))


def said(answer: ServiceResponse) -> str:
    """The service's own words about a failure, after its status."""
    words = ""
    if answer.body:
        try:
            words = _words(parse_json(answer.body[:1_000_000]))
        except ValueError:
            words = " ".join(_text(answer)[:_EXCERPT].split()) if _is_text(answer.type, answer.body) else ""
    return f"{answer.title}: {words}" if words else answer.title


def _words(value: Any) -> str:
    """Problem details, the usual keys of others, or the whole in short."""
    if isinstance(value, str):
        return value[:_EXCERPT]
    if is_object(value):
        title, detail = as_text(value.get("title")), as_text(value.get("detail"))
        if title and detail:
            more = [orjson.dumps(one).decode() for one in as_list(value.get("errors"))[:10]]
            return "; ".join([f"{title}: {detail}", *more])[:_EXCERPT]
        texts = [name for name in _SAYING if isinstance(value.get(name), str)]
        if texts and len(value) <= 3:
            return value[texts[0]][:_EXCERPT]
    text = orjson.dumps(value).decode()
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def _json(answer: ServiceResponse) -> RawResult | None:
    """None when it only claims to be JSON."""
    if len(answer.body) > _LARGEST_STRUCTURE:
        return None
    try:
        value = parse_json(answer.body)
    except ValueError:
        return None
    content = ({"type": "text", "text": answer.body.decode("utf-8", "replace")},)
    return RawResult(content=content, structured=value, has_structured=True)


def _looks_like_json(kind: str, body: bytes) -> bool:
    return kind in ("", "application/octet-stream") and body[:1] in (b"{", b"[") and b"\0" not in body[:1000]


def _is_text(kind: str, body: bytes) -> bool:
    if kind.startswith("text/") or is_json(kind) or any(word in kind for word in _TEXTUAL):
        return True
    if kind not in ("", "application/octet-stream") or b"\0" in body[:4096]:
        return False
    try:
        body[:4096].decode()
    except UnicodeDecodeError as error:
        return error.start > 4090  # cut inside a character
    return kind == ""


def _text(answer: ServiceResponse) -> str:
    charset = _CHARSET.search(answer.headers.get("Content-Type", ""))
    try:
        name = lookup(charset[1]).name if charset else "utf-8"
        return answer.body.decode("utf-8" if name in _NO_CHARSETS else name, "replace")
    except (LookupError, UnicodeError):
        return answer.body.decode("utf-8", "replace")


def _empty(answer: ServiceResponse) -> str:
    if location := answer.headers.get("Location"):
        note = " (another host: not followed)" if answer.is_elsewhere else ""
        return f"{answer.title}, at {location}{note}"
    return f"{answer.title}, with no content"


def _meta(answer: ServiceResponse) -> Mapping[str, Any]:
    return {"status": answer.status}


def told_response(response: ServiceResponse) -> dict[str, Any]:
    """For a person to read; of its headers those that bring nothing secret."""
    shown = {
        name.lower(): value for name, value in response.headers.items() if name.lower() in _SHOWN_HEADERS
    }
    status = f"{response.status} {response.reason}".strip()
    return {"response": status, "headers": shown, "body": readable(response.body, response.type)}
