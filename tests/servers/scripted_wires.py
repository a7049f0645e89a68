"""The protocols of the scripted models: OpenAI's chat completions and responses, Anthropic's messages.

Each reads a request into a `Turn` and writes a `Reply`, whole or as server-sent events, or an error as that
provider words it. Knows no socket.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from servers.scenarios import Reply, Result, Turn

Json = dict[str, Any]
STATUS_WORDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Wire(Protocol):
    """`prefix` ends the address that a client is given; `too_long` is how the provider says so."""

    path: str
    prefix: str
    too_long: str

    def key(self, headers: Any) -> str: ...
    def read(self, request: Json) -> Turn: ...
    def whole(self, request: Json, reply: Reply) -> Json: ...
    def events(self, request: Json, reply: Reply) -> Iterator[str]: ...
    def error(self, status: int, message: str, is_too_long: bool = False) -> Json: ...


@dataclass
class Reading:
    """Collects a conversation in its order, and becomes a `Turn`."""

    system: list[str]
    user: str = ""
    number: int = 1
    recent: int = 0
    fresh: int = 0
    found: list[Result] = field(default_factory=list[Result])

    def person(self, text: str) -> None:
        self.user, self.number, self.recent, self.fresh = text, 1, len(self.found), len(self.found)

    def model(self) -> None:
        self.number, self.fresh = self.number + 1, len(self.found)

    def tool(self, name: str, call_id: str, content: str) -> None:
        self.found.append(Result.of(name, call_id, content))

    def turn(self, tools: list[str], request: Json) -> Turn:
        found = tuple(self.found)
        return Turn(
            system="\n".join(self.system),
            user=self.user,
            tools=tuple(tools),
            results=found,
            recent=found[self.recent :],
            fresh=found[self.fresh :],
            number=self.number,
            request=request,
        )


class OpenAIWire:
    path = "/v1/chat/completions"
    prefix = "/v1"
    too_long = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."

    def key(self, headers: Any) -> str:
        return headers.get("Authorization", "").removeprefix("Bearer ")

    def read(self, request: Json) -> Turn:
        reading = Reading([])
        names: dict[str, str] = {}
        for message in request["messages"]:
            text = _text(message.get("content"))
            if message["role"] in ("system", "developer"):
                reading.system.append(text)
            elif message["role"] == "user":
                reading.person(text)
            elif message["role"] == "assistant":
                names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
                reading.model()
            elif message["role"] == "tool":
                reading.tool(names[message["tool_call_id"]], message["tool_call_id"], text)
        return reading.turn([tool["function"]["name"] for tool in request.get("tools") or ()], request)

    def whole(self, request: Json, reply: Reply) -> Json:
        message: Json = {"role": "assistant", "content": reply.text}
        if calls := self._calls(reply):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish(reply), "logprobs": None}
        return self._frame(request, "chat.completion") | {
            "choices": [choice],
            "usage": _usage(request, reply),
        }

    def events(self, request: Json, reply: Reply) -> Iterator[str]:
        frame = self._frame(request, "chat.completion.chunk")

        def chunk(delta: Json, finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _event(frame | {"choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(reply.text or ""):
            yield chunk({"content": piece})
        for at, call in enumerate(self._calls(reply)):
            function = {"name": call["function"]["name"], "arguments": ""}
            opening = {"index": at, "id": call["id"], "type": "function", "function": function}
            yield chunk({"tool_calls": [opening]})
            for piece in _pieces(call["function"]["arguments"]):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        yield chunk({}, self._finish(reply))
        if (request.get("stream_options") or {}).get("include_usage"):
            yield _event(frame | {"choices": [], "usage": _usage(request, reply)})
        yield "data: [DONE]\n\n"

    def error(self, status: int, message: str, is_too_long: bool = False) -> Json:
        kinds = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
        code = "context_length_exceeded" if is_too_long else kinds.get(status)
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def _calls(self, reply: Reply) -> list[Json]:
        return [
            {
                "id": call.id or f"call_{uuid4().hex[:20]}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in reply.tool_calls
        ]

    def _finish(self, reply: Reply) -> str:
        if reply.content_filter:
            return "content_filter"
        if reply.too_long:
            return "length"
        return "tool_calls" if reply.tool_calls else "stop"

    def _frame(self, request: Json, kind: str) -> Json:
        return {
            "id": f"chatcmpl-{uuid4().hex[:20]}",
            "object": kind,
            "created": 1_700_000_000,
            "model": request["model"],
        }


class ResponsesWire(OpenAIWire):
    """Streams are of text only. Whoever asks sends the whole conversation: nothing is remembered here."""

    path = "/v1/responses"

    def read(self, request: Json) -> Turn:
        reading = Reading([request.get("instructions") or ""])
        names: dict[str, str] = {}
        is_model = False
        said = request["input"]
        for item in [{"role": "user", "content": said}] if isinstance(said, str) else said:
            kind = item.get("type", "message")
            is_answer = kind == "function_call" or item.get("role") == "assistant"
            if is_answer and not is_model:
                reading.model()
            is_model = is_answer
            if kind == "function_call":
                names[item["call_id"]] = item["name"]
            elif kind == "function_call_output":
                reading.tool(names[item["call_id"]], item["call_id"], item["output"])
            elif item["role"] == "user":
                reading.person(_text(item["content"]))
        return reading.turn([tool["name"] for tool in request.get("tools") or ()], request)

    def whole(self, request: Json, reply: Reply) -> Json:
        output: list[Json] = [
            {
                "type": "function_call",
                "id": f"fc_{uuid4().hex[:20]}",
                "call_id": call["id"],
                "status": "completed",
                **call["function"],
            }
            for call in self._calls(reply)
        ]
        if reply.text:
            text = {"type": "output_text", "text": reply.text, "annotations": []}
            identity = {"id": f"msg_{uuid4().hex[:20]}", "role": "assistant", "status": "completed"}
            output.append({"type": "message", **identity, "content": [text]})
        return {
            "id": f"resp_{uuid4().hex[:20]}",
            "object": "response",
            "created_at": 1_700_000_000,
            "model": request["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": request.get("tools") or [],
        }

    def events(self, request: Json, reply: Reply) -> Iterator[str]:
        whole = self.whole(request, reply)
        (message,) = whole["output"]
        place = {"item_id": message["id"], "output_index": 0}
        part = {**place, "content_index": 0}
        begun = {**whole, "status": "in_progress", "output": []}
        told: list[Json] = [
            {"type": "response.created", "response": begun},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**message, "status": "in_progress", "content": []},
            },
            {
                "type": "response.content_part.added",
                **part,
                "part": {"type": "output_text", "text": "", "annotations": []},
            },
            *(
                {"type": "response.output_text.delta", **part, "delta": piece, "logprobs": []}
                for piece in _pieces(reply.text or "")
            ),
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {"type": "response.completed", "response": whole},
        ]
        for number, one in enumerate(told):
            yield _event({**one, "sequence_number": number})


class AnthropicWire:
    path = "/v1/messages"
    prefix = ""
    too_long = "prompt is too long: 250000 tokens > 200000 maximum"

    def key(self, headers: Any) -> str:
        # Of their SDKs older ones send the former, newer ones the latter.
        return headers.get("X-Api-Key") or headers.get("Authorization", "").removeprefix("Bearer ")

    def read(self, request: Json) -> Turn:
        reading = Reading([_text(request.get("system"))])
        names: dict[str, str] = {}
        for message in request["messages"]:
            blocks = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            blocks = [block for block in blocks if not _is_news(block)]
            if not blocks:
                continue
            if message["role"] == "assistant":
                names |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
                reading.model()
                continue
            for block in blocks:
                if block["type"] == "tool_result":
                    call_id = block["tool_use_id"]
                    reading.tool(names[call_id], call_id, _text(block.get("content")))
            if message["role"] == "system":
                reading.system.append(_text(blocks))
            elif text := _text(blocks):
                reading.person(text)
        return reading.turn([tool["name"] for tool in request.get("tools") or ()], request)

    def whole(self, request: Json, reply: Reply) -> Json:
        frame = self._frame(request) | {"content": self._blocks(reply), "stop_reason": self._stop(reply)}
        return frame | {"usage": self._usage(request, reply)}

    def events(self, request: Json, reply: Reply) -> Iterator[str]:
        usage = self._usage(request, reply)
        frame = self._frame(request) | {"content": [], "usage": usage | {"output_tokens": 0}}
        yield _named("message_start", {"message": frame})
        for at, block in enumerate(self._blocks(reply)):
            is_text = block["type"] == "text"
            opening = block | ({"text": ""} if is_text else {"input": {}})
            yield _named("content_block_start", {"index": at, "content_block": opening})
            for piece in _pieces(block["text"] if is_text else json.dumps(block["input"])):
                delta = (
                    {"type": "text_delta", "text": piece}
                    if is_text
                    else {"type": "input_json_delta", "partial_json": piece}
                )
                yield _named("content_block_delta", {"index": at, "delta": delta})
            yield _named("content_block_stop", {"index": at})
        stop = {"stop_reason": self._stop(reply), "stop_sequence": None}
        yield _named("message_delta", {"delta": stop, "usage": {"output_tokens": usage["output_tokens"]}})
        yield _named("message_stop", {})

    def error(self, status: int, message: str, is_too_long: bool = False) -> Json:
        return {"type": "error", "error": {"type": STATUS_WORDS.get(status, "api_error"), "message": message}}

    def _blocks(self, reply: Reply) -> list[Json]:
        blocks: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
        for call in reply.tool_calls:
            identity = {"id": call.id or f"toolu_{uuid4().hex[:20]}", "name": call.name}
            blocks.append({"type": "tool_use", **identity, "input": call.arguments})
        return blocks

    def _stop(self, reply: Reply) -> str:
        if reply.content_filter:
            return "refusal"
        if reply.too_long:
            return "max_tokens"
        return "tool_use" if reply.tool_calls else "end_turn"

    def _usage(self, request: Json, reply: Reply) -> Json:
        usage = _usage(request, reply)
        return {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}

    def _frame(self, request: Json) -> Json:
        return {
            "id": f"msg_{uuid4().hex[:20]}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "stop_reason": None,
            "stop_sequence": None,
        }


def _is_news(block: Json) -> bool:
    """What pydantic-ai itself tells the model in the middle of a conversation, of tools that came.

    In words of its own, or as a search that the model never made.
    """
    call = block.get("tool_use_id") or block.get("id") or ""
    return call.startswith("pyd_ai_") or str(block.get("text", "")).startswith("<system>")


def _text(content: Any) -> str:
    """The text of a message: a string, or parts of which some are text."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def _pieces(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _event(value: Json) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _named(kind: str, value: Json) -> str:
    return f"event: {kind}\n" + _event({"type": kind, **value})


def _usage(request: Json, reply: Reply) -> Json:
    """About four characters a token, so that more tools and a longer conversation cost more."""
    asked = len(json.dumps([request.get(part) for part in ("system", "messages", "tools")])) // 4
    told = len(reply.text or "") + sum(len(json.dumps(call.arguments)) for call in reply.tool_calls)
    answered = max(1, told // 4)
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
