"""A server whose tools answer with tasks, in either era, kept in a folder so that they outlive the process.

`--era 2026`: the extension; `--era 2025`: the experimental form, in which tools want to be called as tasks.
A task of `work` ends when the file `finish` is there; `forever` never ends; `other` answers for another task;
`forgets` loses it; `asks` wants a name first; `quick` has ended as soon as it is looked at; `fails` fails.
What was begun, cancelled and looked at is written to `log`.
"""

import argparse
import asyncio
import json
import os
import secrets
import socket
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Json = dict[str, Any]
NAMES = ("work", "forever", "other", "forgets", "asks", "quick", "fails")
EXTENSION = "io.modelcontextprotocol/tasks"
META = {"io.modelcontextprotocol/serverInfo": {"name": "tasks", "version": "1"}}
MOMENT = "2026-11-17T12:00:00Z"
PAUSE = 50  # milliseconds


class RpcFault(Exception):
    pass


class TaskServer:
    def __init__(self, folder: Path, era: str) -> None:
        self._folder = folder
        self._is_modern = era == "2026"

    async def answer(self, request: Request) -> Response:
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = await self._result(message["method"], message.get("params") or {})
        except RpcFault as fault:
            reply["error"] = {"code": fault.args[0], "message": fault.args[1]}
        return JSONResponse(reply, headers={} if self._is_modern else {"Mcp-Session-Id": "one"})

    async def _result(self, method: str, params: Json) -> Json:
        if method == "initialize" and not self._is_modern:
            requests = {"tools": {"call": {}}}
            capabilities: Json = {"tools": {}, "tasks": {"cancel": {}, "requests": requests}}
            info = {"name": "tasks", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        if method == "server/discover" and self._is_modern:
            capabilities = {"tools": {}, "extensions": {EXTENSION: {}}}
            facts: Json = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
            return self._stamped({**facts, "ttlMs": 0, "cacheScope": "private"})
        if method == "tools/list":
            facts = {"tools": [self._tool(name) for name in NAMES]}
            return self._stamped({**facts, "ttlMs": 0, "cacheScope": "private"} if self._is_modern else facts)
        if method == "tools/call":
            return self._begun(params)
        if method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
            return await self._about(method, params)
        if method == "ping":
            return {}
        raise RpcFault(-32601, f"no {method}")

    def _tool(self, name: str) -> Json:
        tool: Json = {"name": name, "description": name, "inputSchema": {"type": "object"}}
        return tool if self._is_modern else {**tool, "execution": {"taskSupport": "required"}}

    def _begun(self, params: Json) -> Json:
        if self._is_modern:
            declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert EXTENSION in declared["extensions"], declared
        elif "task" not in params:
            raise RpcFault(-32601, "this tool is called as a task")
        task_id = f"{params['name']}-{secrets.token_hex(8)}"
        self._log("begun", task_id)
        (self._folder / task_id).write_text("working")
        task = self._task(task_id, "working")
        return self._stamped({**task, "resultType": "task"}) if self._is_modern else {"task": task}

    async def _about(self, method: str, params: Json) -> Json:
        task_id = params["taskId"]
        file, name = self._folder / task_id, task_id.partition("-")[0]
        self._log(method, task_id)
        if not file.exists() or (name == "forgets" and method == "tasks/get"):
            raise RpcFault(-32602, "Failed to retrieve task: Task not found")
        if method == "tasks/cancel":
            file.write_text("cancelled")
            return self._stamped({}) if self._is_modern else self._task(task_id, "cancelled")
        if method == "tasks/update":
            file.write_text(json.dumps(params["inputResponses"]))
            return self._stamped({})
        if method == "tasks/result":
            while not (ended := self._ended(name, file)):
                await asyncio.sleep(0.02)
            return {**ended, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": task_id}}}
        return self._looked(task_id, name, file)

    def _looked(self, task_id: str, name: str, file: Path) -> Json:
        if name == "other":
            return self._stamped(self._task("another", "working"))
        if name == "fails" and self._is_modern:
            error = {"code": -32000, "message": "broke"}
            return self._stamped({**self._task(task_id, "failed"), "error": error})
        if name == "asks" and file.read_text() == "working":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            params = {"message": "Who?", "requestedSchema": schema}
            asked = {"who": {"method": "elicitation/create", "params": params}}
            return self._stamped({**self._task(task_id, "input_required"), "inputRequests": asked})
        ended = self._ended(name, file)
        if not ended:
            return self._stamped(self._task(task_id, "working"))
        task = self._task(task_id, "completed")
        return self._stamped({**task, "result": ended}) if self._is_modern else task

    def _ended(self, name: str, file: Path) -> Json | None:
        said = file.read_text()
        if name == "asks" and said != "working":
            return _text(json.loads(said)["who"].get("content", {}).get("name", "nobody"))
        if name == "fails":
            return {**_text("broke"), "isError": True}
        is_over = name == "quick" or (name == "work" and (self._folder / "finish").exists())
        return _text(f"{name} is done") if is_over else None

    def _task(self, task_id: str, status: str) -> Json:
        facts: Json = {"taskId": task_id, "status": status, "statusMessage": f"it is {status}"}
        facts |= {"createdAt": MOMENT, "lastUpdatedAt": MOMENT}
        return facts | (
            {"ttlMs": None, "pollIntervalMs": PAUSE}
            if self._is_modern
            else {"ttl": None, "pollInterval": PAUSE}
        )

    def _stamped(self, result: Json) -> Json:
        return {"resultType": "complete", **result, "_meta": META} if self._is_modern else result

    def _log(self, what: str, task_id: str) -> None:
        with (self._folder / "log").open("a") as log:
            log.write(f"{what} {task_id}\n")


def _text(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--era", default="2026")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    server = TaskServer(options.folder, options.era)
    app = Starlette(routes=[Route("/mcp", server.answer, methods=["POST"])])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen()
    if options.port_file:
        temporary = options.port_file.with_suffix(".part")
        temporary.write_text(str(listener.getsockname()[1]))
        os.replace(temporary, options.port_file)
    uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off")).run(sockets=[listener])


if __name__ == "__main__":
    main()
