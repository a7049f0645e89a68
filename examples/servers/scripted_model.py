"""A stand-in for a language model, so that the examples need no key: it calls the first tool that it is given
with arguments from the person's message, and then repeats what the tool said.

It speaks OpenAI's Chat Completions and Responses and Anthropic's Messages: `with scripted_model() as url:`
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Json = dict[str, Any]


def chat(request: Json) -> Json:
    last = request["messages"][-1]
    message: Json = {"role": "assistant", "content": f"The tool says: {last['content']}"}
    if last["role"] == "user":
        function = {"name": request["tools"][0]["function"]["name"], "arguments": last["content"]}
        message |= {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}


def responses(request: Json) -> Json:
    last = request["input"][-1]
    if last.get("role") == "user":
        asked = {"name": request["tools"][0]["name"], "arguments": last["content"]}
        item: Json = {"type": "function_call", "id": "f1", "call_id": "c1", **asked}
    else:
        text: Json = {"type": "output_text", "text": f"The tool says: {last['output']}", "annotations": []}
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    answer: Json = {"id": "r1", "object": "response", "created_at": 0, "model": "scripted", "output": [item]}
    return answer | {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def messages(request: Json) -> Json:
    last = request["messages"][-1]["content"]
    if isinstance(last, str):
        asked = {"name": request["tools"][0]["name"], "input": json.loads(last)}
        block: Json = {"type": "tool_use", "id": "t1", **asked}
    else:
        block = {"type": "text", "text": f"The tool says: {last[0]['content']}"}
    answer: Json = {"id": "m1", "type": "message", "role": "assistant", "model": "scripted"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return answer | {"content": [block], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}


PATHS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(PATHS[self.path.partition("?")[0]](request)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def scripted_model() -> Generator[str]:
    """Its address, for as long as the block lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
