"""Resources and prompts of MCP servers, as values: list, read, get, complete, hear of changes.

Over the connections and with the rights of the caller; what is read or got is limited and recorded as calls
are. The requests themselves, and which name means whose, are in `server_requests.py`.
"""

from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from dragoman.calls.request_road import HANDLE, SIZE
from dragoman.connections.source import ServerNotice
from dragoman.errors import DragomanError, ProtocolFault
from dragoman.hub.bound import BoundService
from dragoman.hub.call_questions import CallbackChannel
from dragoman.hub.server_requests import Entry, Json, ServerRequests, own_name, shared_uri
from dragoman.tool import OnElicitation

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that a server lets read. `uri` is for `read`; `original_uri` is what its server calls it."""

    uri: str
    connector: str
    original_uri: str
    name: str = ""
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate:
    """Resources whose address has gaps to fill, such as `{id}`, before it is read."""

    uri_template: str
    connector: str
    name: str = ""
    title: str | None = None
    description: str = ""
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContent:
    """A part of what was read: `text`, or `blob` where it is none."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResource:
    """What was read. Too large to be given whole, it is cut, and `hub.result(handle)` has the whole."""

    contents: tuple[ResourceContent, ...]
    truncated: bool = False
    handle: str | None = None
    size: int | None = None

    @property
    def text(self) -> str:
        """All of it that is text."""
        return "\n".join(one.text for one in self.contents if one.text is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """What a prompt is filled with."""

    name: str
    title: str | None = None
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPrompt:
    """A text that a server keeps for its users. `name` is for `get`."""

    name: str
    connector: str
    original_name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message; its content as MCP has it: a block of text, a picture, a resource."""

    role: str
    content: Json

    @property
    def text(self) -> str | None:
        text = self.content.get("text")
        return text if isinstance(text, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledPrompt:
    """A prompt with its arguments in it: what a model is to read."""

    messages: tuple[PromptMessage, ...]
    description: str = ""


class ListedByServers(list[Value], Generic[Value]):
    """A list of all servers. `missing` says whose part is not in it, and why."""

    missing: Mapping[str, DragomanError]

    def __init__(self, values: Sequence[Value], missing: Mapping[str, DragomanError]) -> None:
        super().__init__(values)
        self.missing = missing


class _Offered(BoundService):
    __slots__ = ()

    @property
    def _requests(self) -> ServerRequests:
        return ServerRequests(self._runtime, self._caller)

    async def _list(
        self, method: str, connector: str | None, read: Callable[[Entry], Value]
    ) -> ListedByServers[Value]:
        entries, missing = await self._requests.list_all(method, connector)
        return ListedByServers([read(entry) for entry in entries], missing)

    async def _ask(self, method: str, params: Json, on_elicitation: OnElicitation | None = None) -> Json:
        answering = on_elicitation or self._runtime.on_elicitation
        channel = CallbackChannel(method, None, answering) if answering else None
        return await self._requests.ask_by_name(method, params, channel=channel)

    async def _complete(
        self, reference: Json, argument: str, value: str, given: Mapping[str, str] | None
    ) -> list[str]:
        params: Entry = {"ref": reference, "argument": {"name": argument, "value": value}}
        if given:
            params["context"] = {"arguments": dict(given)}
        completion: Any = (await self._ask("completion/complete", params)).get("completion")
        values: Any = cast("Json", completion).get("values") if isinstance(completion, Mapping) else None
        return [one for one in _entries(values) if isinstance(one, str)]


class Resources(_Offered):
    """What the caller may read of servers. An address is `<connector>+<address of its server>`."""

    __slots__ = ()

    async def list(self, connector: str | None = None) -> ListedByServers[Resource]:
        """Of all connectors, without those whose servers do not answer, or of one."""
        return await self._list("resources/list", connector, _resource)

    async def templates(self, connector: str | None = None) -> ListedByServers[ResourceTemplate]:
        """Addresses with gaps."""
        return await self._list("resources/templates/list", connector, _template)

    async def read(self, uri: str, *, on_elicitation: OnElicitation | None = None) -> ReadResource:
        """What is there. Raises `NotFound` and what else a call may fail with."""
        result = await self._ask("resources/read", {"uri": uri}, on_elicitation)
        meta: Any = result.get("_meta")
        facts: Json = cast("Json", meta) if isinstance(meta, Mapping) else {}
        return ReadResource(
            contents=tuple(_content(one) for one in _objects(result.get("contents"))),
            truncated=SIZE in facts,
            handle=facts.get(HANDLE),
            size=facts.get(SIZE),
        )

    async def complete(
        self, uri_template: str, argument: str, value: str, *, given: Mapping[str, str] | None = None
    ) -> Sequence[str]:
        """What the server proposes for a gap, `value` being what it begins with; `given` fills the others."""
        return await self._complete({"type": "ref/resource", "uri": uri_template}, argument, value, given)

    async def updates(self, *uris: str) -> AsyncGenerator[str]:
        """The addresses of these resources, each whenever its server says that it changed."""
        async with self.watching(*uris) as updates:
            async for uri in updates:
                yield uri

    @asynccontextmanager
    async def watching(self, *uris: str) -> AsyncGenerator[AsyncGenerator[str]]:
        """The same; from the beginning of the block on nothing is missed, and whatever cannot be watched has
        been refused.
        """
        requests, watched = self._requests, frozenset(uris)
        with requests.listening() as notices, ExitStack() as ends:
            for uri in watched:
                ends.callback(await requests.watch_by_name(uri))
            async with aclosing(_updated(notices, watched)) as updates:
                yield updates


class Prompts(_Offered):
    """Texts that servers keep for their users. A name is `<connector>__<name of its server>`."""

    __slots__ = ()

    async def list(self, connector: str | None = None) -> ListedByServers[ServerPrompt]:
        """Of all connectors, without those whose servers do not answer, or of one."""
        return await self._list("prompts/list", connector, _prompt)

    async def get(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        on_elicitation: OnElicitation | None = None,
    ) -> FilledPrompt:
        """The prompt with its arguments in it. Raises `NotFound` and what else a call may fail with."""
        params: Entry = {"name": name, "arguments": dict(arguments or {})}
        result = await self._ask("prompts/get", params, on_elicitation)
        return FilledPrompt(
            description=_text(result, "description") or "",
            messages=tuple(_message(one) for one in _objects(result.get("messages"))),
        )

    async def complete(
        self, name: str, argument: str, value: str, *, given: Mapping[str, str] | None = None
    ) -> Sequence[str]:
        """What the server proposes for an argument that begins with `value`; `given` are the others."""
        return await self._complete({"type": "ref/prompt", "name": name}, argument, value, given)


async def _updated(
    notices: AsyncGenerator[tuple[str, ServerNotice]], watched: frozenset[str]
) -> AsyncGenerator[str]:
    """Others on the same connection may watch other resources of it."""
    async with aclosing(notices):
        async for slug, notice in notices:
            if notice.kind == "resource" and (uri := shared_uri(slug, notice.uri)) in watched:
                yield uri


def _resource(entry: Entry) -> Resource:
    uri = str(entry.get("uri", ""))
    slug, own = own_name(uri, "+")
    size = entry.get("size")
    return Resource(
        uri=uri,
        connector=slug,
        original_uri=own,
        size=size if isinstance(size, int) else None,
        **_described(entry),
        mime_type=_text(entry, "mimeType"),
    )


def _template(entry: Entry) -> ResourceTemplate:
    uri = str(entry.get("uriTemplate", ""))
    slug, _ = own_name(uri, "+")
    return ResourceTemplate(
        uri_template=uri, connector=slug, **_described(entry), mime_type=_text(entry, "mimeType")
    )


def _prompt(entry: Entry) -> ServerPrompt:
    facts = _described(entry)
    slug, own = own_name(facts["name"], "__")
    arguments = tuple(
        PromptArgument(**_described(one), required=one.get("required") is True)
        for one in _objects(entry.get("arguments"))
    )
    return ServerPrompt(connector=slug, original_name=own, arguments=arguments, **facts)


def _content(entry: Entry) -> ResourceContent:
    blob = entry.get("blob")
    try:
        data = b64decode(blob) if isinstance(blob, str) else None
    except ValueError:
        raise ProtocolFault("the server sent bytes that are no base64") from None
    return ResourceContent(
        uri=str(entry.get("uri", "")),
        mime_type=_text(entry, "mimeType"),
        text=_text(entry, "text"),
        blob=data,
    )


def _message(entry: Entry) -> PromptMessage:
    content: Any = entry.get("content")
    return PromptMessage(
        role=str(entry.get("role", "user")),
        content=cast("Json", content) if isinstance(content, dict) else {},
    )


def _described(entry: Json) -> dict[str, Any]:
    return {
        "name": _text(entry, "name") or "",
        "title": _text(entry, "title"),
        "description": _text(entry, "description") or "",
    }


def _text(entry: Json, name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) else None


def _entries(value: Any) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _objects(value: Any) -> Sequence[Entry]:
    return [cast("Entry", one) for one in _entries(value) if isinstance(one, dict)]
