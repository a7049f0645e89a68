"""Calls by REST: the hot path. Reads and writes JSON by orjson, and nothing in between.

A call that fails is an answer like any other (200, `ok: false`); only a request that cannot be
understood is a problem. Who asks for events hears of progress and questions before the answer.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import orjson

from dragoman.api.run_shapes import question_view
from dragoman.errors import CallerFault
from dragoman.hub import BoundHub
from dragoman.names import did_you_mean
from dragoman.run import Question
from dragoman.scope import Caller
from dragoman.tool import CallError, OnMessage, OnProgress, ToolOutput
from dragoman.web.encoding import encode
from dragoman.web.problems import InvalidRequest
from dragoman.web.server_sent_events import Work, event_frame

CALL = "/api/call"
# As `api.requests.CallRequest` describes them.
FIELDS = ("arguments", "timeout", "thread", "agent", "tools", "cost_limit", "ask", "messages", "tool")
_MOST_TOOLS = 1000


EVENTS = "text/event-stream"


def wants_events(accept: str) -> bool:
    """Whether a request takes nothing but events: who takes JSON as well gets JSON."""
    return EVENTS in accept and "json" not in accept


@dataclass(frozen=True, slots=True)
class RequestedToolCall:
    """One call as its request has it, for the hub of who asks."""

    hub: BoundHub
    tool: str
    arguments: dict[str, Any] | None
    timeout: float | None
    cost_limit: float | None
    asks: bool
    shows_messages: bool

    async def make(
        self,
        on_progress: OnProgress | None = None,
        on_question: Callable[[Question], None] = lambda question: None,
        on_message: OnMessage | None = None,
    ) -> bytes:
        """The bytes of its answer."""
        output = await self.hub.call(
            self.tool,
            self.arguments,
            timeout=self.timeout,
            cost_limit=self.cost_limit,
            on_progress=on_progress,
            on_elicitation=self.hub.ask_by_question(self.timeout, on_question) if self.asks else None,
            on_message=on_message if self.shows_messages else None,
        )
        return encode(output if output.error is None else _told(output))

    def stream(self) -> "tuple[AsyncIterator[bytes], Work]":
        """Frames of events, of which `call.finished` with the answer is the last; and the work beside."""
        told: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

        async def work() -> None:
            answer = await self.make(
                lambda progress: told.put_nowait(("call.progress", encode(progress))),
                lambda question: told.put_nowait(("question.asked", encode(question_view(question)))),
                lambda message: told.put_nowait(("call.message", encode(message))),
            )
            told.put_nowait(("call.finished", answer))
            await asyncio.Event().wait()  # the frames end the stream once all of them are told

        async def frames() -> AsyncGenerator[bytes]:
            kind = ""
            while kind != "call.finished":
                kind, data = await told.get()
                yield event_frame(data, kind=kind)

        return frames(), work


def read_call(hub: BoundHub, body: bytes, tool: str | None = None) -> RequestedToolCall:
    """What is asked for; `InvalidRequest` where nobody can say. `tool` is given by the path."""
    request = _read(body)
    for name in request:
        if name not in FIELDS or (tool is not None and name == "tool"):
            raise InvalidRequest(
                f"{name[:100]!r} is no field of a call", hint=did_you_mean(name[:100], list(FIELDS))
            )
    name = request.get("tool") if tool is None else tool
    if not isinstance(name, str) or not name:
        raise InvalidRequest("'tool' must be the name of a tool", hint='{"tool": "…", "arguments": {…}}')
    arguments = request.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidRequest("'arguments' must be an object", hint='{"tool": "…", "arguments": {…}}')
    asks, shows_messages = request.get("ask", True), request.get("messages", False)
    for field, given in (("ask", asks), ("messages", shows_messages)):
        if not isinstance(given, bool):
            raise InvalidRequest(f"{field!r} must be true or false")
    return RequestedToolCall(
        hub.acting_for(_nearer(hub.caller, request)),
        name,
        cast("dict[str, Any] | None", arguments),
        timeout=_number(request, "timeout", "seconds"),
        cost_limit=_number(request, "cost_limit", "dollars"),
        asks=asks,
        shows_messages=shows_messages,
    )


def refuse_unknown(given: Iterable[str], known: Collection[str]) -> None:
    """What an address says beyond what is read of it."""
    for name in given:
        if name not in known:
            near = did_you_mean(name[:100], sorted(known))
            raise InvalidRequest(f"there is no parameter {name[:100]!r} in this address", hint=near)


def _told(output: ToolOutput) -> dict[str, Any]:
    """A failure with its hint in the words of whoever asks; `OutputShape` describes it."""
    told = {item.name: getattr(output.error, item.name) for item in fields(CallError)}
    error = {name: value for name, value in told.items() if name != "command_hint"}
    whole = {item.name: getattr(output, item.name) for item in fields(ToolOutput) if item.name[0] != "_"}
    return {**whole, "error": {**error, "hint": output.error.hint if output.error else None}}


def _nearer(caller: Caller, request: dict[str, Any]) -> Caller:
    """The caller with what this call says of itself: it may narrow who asks, never widen."""
    if (thread := _word(request, "thread")) is not None:
        caller = replace(caller, thread=thread)
    if (agent := _word(request, "agent")) is not None:
        caller = caller.as_agent(agent)
    if (tools := request.get("tools")) is not None:
        if not isinstance(tools, list) or len(cast("list[Any]", tools)) > _MOST_TOOLS:
            raise InvalidRequest(f"'tools' must be a list of at most {_MOST_TOOLS:,} names")
        caller = caller.limited_to(str(one) for one in cast("list[Any]", tools))
    return caller


def _word(request: dict[str, Any], field: str) -> str | None:
    word = request.get(field)
    if word is not None and not (isinstance(word, str) and 0 < len(word) <= 200):
        raise InvalidRequest(f"{field!r} must be a text of 1 to 200 characters")
    return word


def _number(request: dict[str, Any], field: str, unit: str) -> float | None:
    number = request.get(field)
    if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
        raise InvalidRequest(f"{field!r} must be a number of {unit}")
    return number


def _read(body: bytes) -> dict[str, Any]:
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise CallerFault(f"the body is not valid JSON: {error.msg}", hint="send one JSON object") from None
    if not isinstance(request, dict):
        raise InvalidRequest("the body must be an object", hint='{"tool": "…", "arguments": {…}}')
    return cast("dict[str, Any]", request)
