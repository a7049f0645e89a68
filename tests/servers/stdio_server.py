"""A raw MCP server over stdio in both eras, which can be told to misbehave. Starts in some 50 ms.

No SDK: what it says is what a test wants it to say. One thread reads, slow tools get one each.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import protocol
from toolbox import CHANGES_LIST, Json, Log, Toolbox, is_open, spawn_grandchild, text

SLOW = frozenset({"sleep", "sleep_send", "progress", "steps", "hang_process", "ask_client"})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=["2025", "2026", "both"], default="both")
    parser.add_argument("--silent", action="store_true", help="no answer to unknown methods")
    parser.add_argument("--no-ping", action="store_true")
    parser.add_argument("--journal", help="one line per executed send")
    parser.add_argument(
        "--answer-after", type=float, default=0, help="most seconds from a send to its answer"
    )
    parser.add_argument("--log", help="one line of JSON per start and per message")
    parser.add_argument("--tools-file", help="JSON list of names of extra tools, read at start")
    parser.add_argument("--descriptions", default="The tool {name}", help="what tools say of themselves")
    parser.add_argument("--page", type=int, default=0, help="tools per page of the list")
    parser.add_argument("--start-delay", type=float, default=0)
    parser.add_argument("--start-gate", help="it waits until this file has a letter")
    parser.add_argument("--list-delay", type=float, default=0, help="seconds before the list is answered")
    parser.add_argument("--never-initialise", action="store_true")
    parser.add_argument("--crash-on-initialize", action="store_true")
    parser.add_argument("--exit-at-start", type=int)
    parser.add_argument("--require-file", help="exit at start while this file is missing")
    parser.add_argument("--stderr", default="", help="written at start")
    parser.add_argument("--ignore-sigterm", action="store_true", help="and the end of stdin as well")
    parser.add_argument("--spawn-child", action="store_true", help="a child that ignores SIGTERM")
    parser.add_argument("--label", default="", help="ignored; tells two command lines apart")
    parser.add_argument("--api-key", default="", help="ignored; a secret among the arguments")
    return parser.parse_args()


class Server:
    """One process, one client."""

    def __init__(self, options: argparse.Namespace) -> None:
        extra: list[str] = []
        if options.tools_file and os.path.exists(options.tools_file):
            with open(options.tools_file) as file:
                extra = json.load(file)
        self._options = options
        self._tools = Toolbox(options.journal, extra, options.descriptions)
        self._log = Log(options.log)
        self._is_legacy = False
        self._listeners: dict[Any, Json] = {}
        self._cancelled: dict[Any, threading.Event] = {}
        self._asked: dict[Any, Any] = {}
        self._asked_event = threading.Event()
        self._write_lock = threading.Lock()

    def serve(self) -> None:
        self._log.write("start")
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                self._log.write("garbage")
                continue
            self._receive(message)
        self._log.write("eof")

    def _receive(self, message: Json) -> None:
        method, request_id = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method is None:
            self._asked[request_id] = message
            self._asked_event.set()
            return
        self._log.write("message", method=method, id=request_id, tool=params.get("name"))
        if self._options.never_initialise:
            return
        if self._options.crash_on_initialize:
            print("crash on initialize", file=sys.stderr, flush=True)
            os._exit(9)
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        elif request_id is not None:
            self._request(request_id, method, params)

    def _cancel(self, request_id: Any) -> None:
        self._listeners.pop(request_id, None)
        if event := self._cancelled.get(request_id):
            event.set()

    def _request(self, request_id: Any, method: str, params: Json) -> None:
        is_modern = not self._is_legacy and self._options.era != "2025" and method != "initialize"
        if method == "initialize" and self._options.era == "2026":
            return self.send(protocol.no_handshake(request_id, params.get("protocolVersion")))
        if is_modern and (missing := protocol.missing_envelope(params)):
            return self.send(protocol.error(request_id, -32602, missing))
        body = getattr(self, "_on_" + method.replace("/", "_"), None)
        if body is None or (method == "server/discover" and not is_modern):
            if not self._options.silent:
                self.send(protocol.error(request_id, -32601, "Method not found", method))
            return None
        return body(request_id, params, is_modern)

    def _on_initialize(self, request_id: Any, params: Json, is_modern: bool) -> None:
        self._is_legacy = True
        self.send(protocol.answer(request_id, protocol.initialize(params)))

    def _on_server_discover(self, request_id: Any, params: Json, is_modern: bool) -> None:
        self.send(protocol.answer(request_id, protocol.discover()))

    def _on_ping(self, request_id: Any, params: Json, is_modern: bool) -> None:
        if is_modern or self._options.no_ping:
            return self.send(protocol.error(request_id, -32601, "Method not found", "ping"))
        return self.send(protocol.answer(request_id, {}))

    def _on_tools_list(self, request_id: Any, params: Json, is_modern: bool) -> None:
        time.sleep(self._options.list_delay)
        tools = self._tools.definitions()
        listed = protocol.tools_list(tools, params.get("cursor"), self._options.page, is_modern)
        self.send(protocol.answer(request_id, listed))

    def _on_subscriptions_listen(self, request_id: Any, params: Json, is_modern: bool) -> None:
        wanted = params.get("notifications") or {}
        self._listeners[request_id] = wanted
        self.send(protocol.acknowledged(request_id, wanted))

    def _on_tools_call(self, request_id: Any, params: Json, is_modern: bool) -> None:
        if params.get("name") in SLOW or (params.get("name") == "send" and self._options.answer_after):
            self._cancelled[request_id] = threading.Event()
            threading.Thread(target=self._call, args=(request_id, params, is_modern), daemon=True).start()
        else:
            self._call(request_id, params, is_modern)

    def _call(self, request_id: Any, params: Json, is_modern: bool) -> None:
        name, given = params.get("name", ""), params.get("arguments") or {}
        own = getattr(self, f"_tool_{name}", None)
        try:
            result = own(request_id, params, **given) if own else self._tools.run(name, given)
        except KeyError:
            result = text(f"Unknown tool: {name}", isError=True)
        except TypeError as wrong:
            result = text(str(wrong), isError=True)
        finally:
            self._cancelled.pop(request_id, None)
        if result is None:
            return
        if name == "send" and self._options.answer_after:
            time.sleep(random.uniform(0, self._options.answer_after))
        self.send(protocol.answer(request_id, protocol.stamped(result) if is_modern else result))
        if name in CHANGES_LIST:
            self._tell_list_changed()
        if name == "stop_reading":
            time.sleep(given["seconds"])
        if name == "close_stdin":
            os.close(0)
            threading.Event().wait()

    def _tell_list_changed(self) -> None:
        if self._is_legacy:
            return self.send(protocol.list_changed())
        for subscription, wanted in list(self._listeners.items()):
            if wanted.get("toolsListChanged"):
                self.send(protocol.list_changed(subscription))
        return None

    def _wait(self, request_id: Any, seconds: float, gate: str | None = None, letters: int = 1) -> bool:
        """So many seconds, or until the gate is open; False when the client cancelled: it gets no answer."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not is_open(gate, letters):
            if self._cancelled[request_id].wait(min(left, 0.01) if gate else left):
                self._log.write("cancelled", id=request_id)
                return False
        self._log.write("woke", id=request_id)
        return True

    def _tool_sleep(
        self, request_id: Any, params: Json, seconds: float, gate: str | None = None
    ) -> Json | None:
        return text(f"slept {seconds}") if self._wait(request_id, seconds, gate) else None

    def _tool_sleep_send(
        self, request_id: Any, params: Json, seconds: float, text: str, gate: str | None = None
    ) -> Json | None:
        return self._tools.run("send", {"text": text}) if self._wait(request_id, seconds, gate) else None

    def _tool_progress(self, request_id: Any, params: Json, n: int) -> Json:
        token = (params.get("_meta") or {}).get("progressToken")
        for done in range(n):
            if token is not None:
                self.send(protocol.progress(token, done + 1, n))
        return text(f"{n} steps, {'told' if token is not None else 'untold'}")

    def _tool_steps(
        self, request_id: Any, params: Json, count: int, seconds: float, gate: str | None = None
    ) -> Json | None:
        """So many steps, each told: of so many seconds, or one for each letter of the gate."""
        token = (params.get("_meta") or {}).get("progressToken")
        for done in range(count):
            if not self._wait(request_id, seconds, gate, done + 1):
                return None
            if token is not None:
                self.send(protocol.progress(token, done + 1, count))
        return text(f"{count} steps")

    def _tool_answer(self, request_id: Any, params: Json, result: Json) -> None:
        """Answers with just this, whatever a result should look like."""
        self.send(protocol.answer(request_id, result))

    def _tool_send_and_answer(self, request_id: Any, params: Json, text: str, result: Json) -> None:
        self._tools.write(text)
        self.send(protocol.answer(request_id, result))

    def _tool_hang_process(self, request_id: Any, params: Json) -> Json:
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.2)  # this thread may run on for a moment before all of them stand still
        return text("awake again")

    def _tool_ask_client(self, request_id: Any, params: Json) -> Json:
        self._asked_event.clear()
        self.send({"jsonrpc": "2.0", "id": f"ask-{request_id}", "method": "ping"})
        self._asked_event.wait(5)
        return text(json.dumps(self._asked.get(f"ask-{request_id}")))

    def _tool_garbage(self, request_id: Any, params: Json) -> Json:
        self.write(b'this is no JSON {"\n\n[1, 2]\n"a string"\nnull\n{"jsonrpc": "2.0"}\n')
        return text("after the garbage")

    def _tool_bad_utf8(self, request_id: Any, params: Json, inside_answer: bool = False) -> Json | None:
        if not inside_answer:
            self.write(b"\xff\xfe\xc3\x28 not UTF-8\n")
            return text("after the bad bytes")
        # A result type is stamped for the 2026 era; the era before ignores what it does not know.
        whole = json.dumps(protocol.answer(request_id, protocol.stamped(text("caf@"))))
        self.write(whole.encode().replace(b"@", b"\xe9") + b"\n")
        return None

    def _tool_half_line_and_exit(self, request_id: Any, params: Json) -> Json:
        self.write(json.dumps(protocol.answer(request_id, text("half"))).encode()[:30])
        os._exit(0)

    def _tool_close_stdout(self, request_id: Any, params: Json) -> None:
        os.close(1)
        threading.Event().wait()

    def _tool_close_stdin(self, request_id: Any, params: Json) -> Json:
        return text("closing stdin")

    def _tool_stop_reading(self, request_id: Any, params: Json, seconds: float) -> Json:
        return text("reading no more")

    def _tool_answer_twice(self, request_id: Any, params: Json, text: str) -> Json:
        result = protocol.stamped({"content": [{"type": "text", "text": text}]})
        self.send(protocol.answer(request_id, result))
        self.send(protocol.answer(987654, result))
        return result

    def send(self, message: Json) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        with self._write_lock:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


def main() -> None:
    options = arguments()
    Log(options.log).write("born")
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.stderr:
        print(options.stderr, file=sys.stderr, flush=True)
    if options.spawn_child:
        spawn_grandchild(ignore_sigterm=True)
    if options.require_file and not os.path.exists(options.require_file):
        Log(options.log).write("refused")
        print(f"missing {options.require_file}", file=sys.stderr, flush=True)
        os._exit(4)
    if options.exit_at_start is not None:
        Log(options.log).write("refused")
        os._exit(options.exit_at_start)
    time.sleep(options.start_delay)
    while options.start_gate and not is_open(options.start_gate):
        time.sleep(0.01)
    with contextlib.suppress(BrokenPipeError, OSError):
        Server(options).serve()
    while options.ignore_sigterm:
        time.sleep(60)
    os._exit(0)


if __name__ == "__main__":
    main()
