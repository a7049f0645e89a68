"""A server of the 2026 era that has everything the conformance suite asks for, under the names it asks by.

Run as a process; `--port-file` is written once it listens. Plain JSON-RPC by hand, so that what reaches the
suite through Dragoman is what stands here.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Tell = Callable[[str, Json], Awaitable[None]]
VERSION = "2026-07-28"
SERVER = {"name": "everything", "version": "1"}
SIGNING_KEY = b"everything"
FRESH: Json = {"ttlMs": 1000, "cacheScope": "private"}


def picture() -> str:
    """One grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = chunk(b"IHDR", (1).to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00")
    pixels = chunk(b"IDAT", zlib.compress(b"\x00\x80"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")).decode()


def sound() -> str:
    """No samples at 8 kHz."""
    form = (
        b"fmt "
        + (16).to_bytes(4, "little")
        + bytes.fromhex("0100010040 1f0000 40 1f0000 01000800".replace(" ", ""))
    )
    body = b"WAVE" + form + b"data" + (0).to_bytes(4, "little")
    return base64.b64encode(b"RIFF" + len(body).to_bytes(4, "little") + body).decode()


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def image() -> Json:
    return {"type": "image", "data": picture(), "mimeType": "image/png"}


def embedded(uri: str, kind: str, words: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def content(*blocks: Json, **more: Any) -> Json:
    return {"content": [*blocks], **more}


# Asking for input


def question(message: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def form(message: str, properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": []}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words: str, tokens: int = 100) -> Json:
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: Json = {"method": "roots/list", "params": {}}
STRING: Json = {"type": "string"}


def asked(**requests: Json) -> Json:
    return {"resultType": "input_required", "inputRequests": requests}


def asked_in(state: str, **requests: Json) -> Json:
    return {**asked(**requests), "requestState": signed(state)}


def signed(state: str) -> str:
    return f"{state}.{hmac.new(SIGNING_KEY, state.encode(), hashlib.sha256).hexdigest()}"


def state_in(params: Json) -> str | None:
    """What was signed; an error of the protocol when somebody changed it."""
    if (given := params.get("requestState")) is None:
        return None
    state, _, _ = str(given).rpartition(".")
    if signed(state) != given:
        raise Refused(-32602, "the request state was changed")
    return state


def answers_in(params: Json, *names: str) -> list[Any] | None:
    """The answers to these questions; None while one is missing or is none."""
    given = params.get("inputResponses")
    found = [given.get(name) for name in names] if isinstance(given, dict) else []
    return found if found and all(isinstance(one, dict) for one in found) else None


class Refused(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.facts = {"code": code, "message": message} | ({} if data is None else {"data": data})


def refuse(params: Json) -> Json:
    raise Refused(-32603, "it broke")


def asks(name: str, request: Json, told: Callable[[Json], str]) -> Callable[[Json], Json]:
    """A tool that asks one question and tells what it was answered."""

    def run(params: Json) -> Json:
        answers = answers_in(params, name)
        return asked(**{name: request}) if answers is None else content(text(told(answers[0])))

    return run


def elicited(answer: Json) -> str:
    return (
        f"Elicitation completed: action={answer.get('action')}, content={json.dumps(answer.get('content'))}"
    )


def greeted(answer: Json) -> str:
    return f"Hello, {(answer.get('content') or {}).get('name')}!"


def run_elicitation(params: Json) -> Json:
    message = str((params.get("arguments") or {}).get("message"))
    schema = {"username": STRING, "email": STRING}
    return asks("answer", question(message, **schema), elicited)(params)


def run_sampling(params: Json) -> Json:
    words = str((params.get("arguments") or {}).get("prompt"))
    return asks(
        "answer", sampling(words), lambda answer: f"LLM response: {json.dumps(answer.get('content'))}"
    )(params)


def run_request_state(params: Json) -> Json:
    state, answers = state_in(params), answers_in(params, "confirm")
    if state != "asked" or answers is None:
        return asked_in("asked", confirm=question("Please confirm", ok={"type": "boolean"}))
    return content(text("state-ok"))


def run_multiple_inputs(params: Json) -> Json:
    if state_in(params) is None or answers_in(params, "user_name", "greeting", "client_roots") is None:
        return asked_in(
            "asked",
            user_name=question("What is your name?", name=STRING),
            greeting=sampling("Generate a greeting", 50),
            client_roots=ROOTS,
        )
    return content(text("all of it came"))


def run_multi_round(params: Json) -> Json:
    state = state_in(params)
    if state == "second" and answers_in(params, "step2"):
        return content(text("both steps are done"))
    if state == "first" and answers_in(params, "step1"):
        return asked_in("second", step2=question("Step 2: What is your favorite color?", color=STRING))
    return asked_in("first", step1=question("Step 1: What is your name?", name=STRING))


def run_capabilities(params: Json) -> Json:
    """Asks only for what the client says it can answer."""
    able = params["_meta"].get("io.modelcontextprotocol/clientCapabilities") or {}
    requests: Json = {}
    if "elicitation" in able:
        requests["user_name"] = question("What is your name?", name=STRING)
    if "sampling" in able:
        requests["capital_question"] = sampling("What is the capital of France?")
    if not requests or answers_in(params, *requests) is not None:
        return content(text("nothing more to ask"))
    return asked(**requests)


def run_missing_capability(params: Json) -> Json:
    able = params["_meta"].get("io.modelcontextprotocol/clientCapabilities") or {}
    if "sampling" not in able:
        raise Refused(
            -32021, "Missing required client capability", {"requiredCapabilities": {"sampling": {}}}
        )
    return content(text("it can"))


DEFAULTS: Json = {
    "name": {**STRING, "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
_THREE = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
ENUMS: Json = {
    "untitledSingle": {**STRING, "enum": _THREE},
    "titledSingle": {**STRING, "oneOf": _TITLED},
    "legacyEnum": {
        **STRING,
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {**STRING, "enum": _THREE}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}

Run = Callable[[Json], Json]
TOOLS: dict[str, Run] = {
    "test_simple_text": lambda _: content(text("This is a simple text response for testing.")),
    "test_image_content": lambda _: content(image()),
    "test_audio_content": lambda _: content({"type": "audio", "data": sound(), "mimeType": "audio/wav"}),
    "test_embedded_resource": lambda _: content(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": lambda _: content(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": lambda _: content(
        text("This tool intentionally returns an error for testing"), isError=True
    ),
    "test_tool_with_progress": lambda _: content(text("done")),
    "test_tool_with_logging": lambda _: content(text("done")),
    "test_elicitation": run_elicitation,
    "test_sampling": run_sampling,
    "test_elicitation_sep1034_defaults": asks("answer", form("Please check", DEFAULTS), elicited),
    "test_elicitation_sep1330_enums": asks("answer", form("Please choose", ENUMS), elicited),
    "test_input_required_result_elicitation": asks(
        "user_name", question("What is your name?", name=STRING), greeted
    ),
    "test_input_required_result_sampling": asks(
        "capital_question", sampling("What is the capital of France?"), lambda answer: json.dumps(answer)
    ),
    "test_input_required_result_list_roots": asks("client_roots", ROOTS, lambda answer: json.dumps(answer)),
    "test_input_required_result_request_state": run_request_state,
    "test_input_required_result_tampered_state": run_request_state,
    "test_input_required_result_multiple_inputs": run_multiple_inputs,
    "test_input_required_result_multi_round": run_multi_round,
    "test_input_required_result_capabilities": run_capabilities,
    "test_missing_capability": run_missing_capability,
    "test_streaming_elicitation": asks("user_name", question("What is your name?", name=STRING), greeted),
    "test_logging_tool": lambda _: content(text("nothing is logged")),
    "test_custom_headers": lambda params: content(text(json.dumps(params.get("arguments")))),
    "json_schema_2020_12_tool": lambda _: content(text("fine")),
    "greet": lambda params: content(text(f"Hello, {params['arguments'].get('name')}!")),
    "slow_compute": lambda params: content(text(f"computed {params['arguments'].get('label')}")),
    "failing_job": lambda _: content(text("it failed"), isError=True),
    "protocol_error_job": refuse,
    "confirm_delete": asks(
        "confirm", form("Really?", {"confirm": {"type": "boolean"}}), lambda answer: f"deleted: {answer}"
    ),
}
SLOW = {"slow_compute": None, "failing_job": 1.0, "protocol_error_job": 1.0}
"""Seconds that each takes; None as its caller says."""
SCHEMAS: Json = {
    "test_elicitation": {"type": "object", "properties": {"message": STRING}, "required": ["message"]},
    "test_sampling": {"type": "object", "properties": {"prompt": STRING}, "required": ["prompt"]},
    "test_custom_headers": {
        "type": "object",
        "properties": {
            "region": {**STRING, "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
        },
        "required": ["region"],
    },
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": STRING, "city": STRING},
            }
        },
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {**STRING, "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
RESOURCES: dict[str, Json] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": picture()},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}


def message(block: Json) -> Json:
    return {"role": "user", "content": block}


def prompt_of(params: Json) -> Json:
    name, given = params.get("name"), params.get("arguments") or {}
    if name == "test_simple_prompt":
        return {"messages": [message(text("This is a simple prompt for testing."))]}
    if name == "test_prompt_with_arguments":
        words = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
        return {"messages": [message(text(words))]}
    if name == "test_prompt_with_embedded_resource":
        block = embedded(given.get("resourceUri", ""), "text/plain", "Embedded resource content for testing.")
        return {"messages": [message(block), message(text("Please process the embedded resource above."))]}
    if name == "test_prompt_with_image":
        return {"messages": [message(image()), message(text("Please analyze the image above."))]}
    if name == "test_input_required_result_prompt":
        answers = answers_in(params, "user_context")
        if answers is None:
            return asked(user_context=question("What context should the prompt use?", context=STRING))
        return {"messages": [message(text(json.dumps(answers[0])))]}
    raise Refused(-32602, f"unknown prompt {name}")


PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


class Everything:
    async def answer(self, method: str, params: Json, tell: Tell) -> Json:
        handler = getattr(self, "_" + re.sub("[^a-z]", "_", method.lower()), None)
        if handler is None:
            raise Refused(-32601, "Method not found")
        result = await handler(params, tell)
        meta = {**result.get("_meta", {}), "io.modelcontextprotocol/serverInfo": SERVER}
        return {"resultType": "complete", **result, "_meta": meta}

    async def _server_discover(self, params: Json, tell: Tell) -> Json:
        capabilities: Json = {
            "tools": {},
            "resources": {"subscribe": True},
            "prompts": {},
            "completions": {},
        }
        return {
            "supportedVersions": [VERSION],
            "capabilities": capabilities,
            "instructions": "Ask me.",
            **FRESH,
        }

    async def _tools_list(self, params: Json, tell: Tell) -> Json:
        tools = [
            {
                "name": name,
                "description": name.replace("_", " "),
                "inputSchema": SCHEMAS.get(name, {"type": "object", "properties": {}}),
                "annotations": {"readOnlyHint": True},
            }
            for name in TOOLS
        ]
        return {"tools": tools, **FRESH}

    async def _tools_call(self, params: Json, tell: Tell) -> Json:
        name = str(params.get("name"))
        if name not in TOOLS:
            raise Refused(-32602, f"Unknown tool: {name}")
        token = params["_meta"].get("progressToken")
        if name == "test_tool_with_progress" and token is not None:
            for progress in (0, 50, 100):
                facts = {"progressToken": token, "progress": progress, "total": 100}
                await tell("notifications/progress", facts)
                await asyncio.sleep(0.05)
        if name in SLOW:
            seconds = SLOW[name]
            await asyncio.sleep(params["arguments"].get("seconds", 1) if seconds is None else seconds)
        return TOOLS[name](params)

    async def _resources_list(self, params: Json, tell: Tell) -> Json:
        entries = [
            {"uri": uri, "name": uri[7:], "description": uri[7:], "mimeType": facts["mimeType"]}
            for uri, facts in RESOURCES.items()
        ]
        return {"resources": entries, **FRESH}

    async def _resources_templates_list(self, params: Json, tell: Tell) -> Json:
        template = {
            "uriTemplate": "test://template/{id}/data",
            "name": "template",
            "mimeType": "application/json",
        }
        return {"resourceTemplates": [template], **FRESH}

    async def _resources_read(self, params: Json, tell: Tell) -> Json:
        uri = str(params.get("uri"))
        if found := RESOURCES.get(uri):
            return {"contents": [{"uri": uri, **found}], **FRESH}
        if match := re.fullmatch("test://template/([^/]+)/data", uri):
            facts = {"id": match[1], "templateTest": True, "data": f"Data for ID: {match[1]}"}
            return {
                "contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(facts)}],
                **FRESH,
            }
        raise Refused(-32602, "Resource not found", {"uri": uri})

    async def _prompts_list(self, params: Json, tell: Tell) -> Json:
        prompts = [
            {
                "name": name,
                "description": name.replace("_", " "),
                "arguments": [{"name": one, "description": one, "required": True} for one in arguments],
            }
            for name, arguments in PROMPTS.items()
        ]
        return {"prompts": prompts, **FRESH}

    async def _prompts_get(self, params: Json, tell: Tell) -> Json:
        return prompt_of(params)

    async def _completion_complete(self, params: Json, tell: Tell) -> Json:
        return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}


async def post(request: web.Request) -> web.StreamResponse:
    body: Json = json.loads(await request.read())
    request_id, method, params = body.get("id"), body.get("method", ""), body.get("params") or {}
    if request_id is None:
        return web.Response(status=202)
    if request.headers.get("MCP-Protocol-Version") != VERSION:
        data = {"supported": [VERSION], "requested": str(params.get("protocolVersion"))}
        facts = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        return web.json_response({"jsonrpc": "2.0", "id": request_id, "error": facts}, status=400)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    if method == "subscriptions/listen":
        await response.prepare(request)
        meta = {"io.modelcontextprotocol/subscriptionId": request_id}
        wanted = params.get("notifications") or {}
        honoured = {name: wanted[name] for name in ("resourceSubscriptions",) if name in wanted}
        facts = {"notifications": honoured, "_meta": meta}
        await _write(response, {"method": "notifications/subscriptions/acknowledged", "params": facts})
        await asyncio.Event().wait()

    async def tell(method: str, params: Json) -> None:
        if not response.prepared:
            await response.prepare(request)
        await _write(response, {"method": method, "params": params})

    try:
        answer: Json = {"id": request_id, "result": await Everything().answer(method, params, tell)}
    except Refused as refused:
        answer = {"id": request_id, "error": refused.facts}
    if response.prepared:
        await _write(response, answer)
        return response
    status = {-32601: 404, -32602: 400, -32021: 400}.get(answer.get("error", {}).get("code"), 200)
    return web.json_response({"jsonrpc": "2.0", **answer}, status=status)


async def _write(response: web.StreamResponse, message: Json) -> None:
    await response.write(
        b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"
    )


async def serve(port: int, port_file: str | None) -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/mcp", post)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    if port_file:
        with open(port_file + ".new", "w") as file:
            file.write(str(runner.addresses[0][1]))
        os.replace(port_file + ".new", port_file)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    options = parser.parse_args()
    asyncio.run(serve(options.port, options.port_file))


if __name__ == "__main__":
    main()
