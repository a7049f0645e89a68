"""The tools that every test server offers, and their state in one process. Standard library only.

Knows no transport: what needs time, or breaks the wire itself, is done by the server that hosts it.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

Json = dict[str, Any]


def digest(value: str) -> str:
    """Shows that a server has a secret, which no result says."""
    return hashlib.sha256(value.encode()).hexdigest()


STRING: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
INTEGER: Json = {"type": "integer"}
BOOLEAN: Json = {"type": "boolean"}
READ_ONLY: Json = {"readOnlyHint": True}
IDEMPOTENT: Json = {"readOnlyHint": False, "idempotentHint": True}
WRITES: Json = {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True}

# name: (properties, required, annotations)
TOOLS: dict[str, tuple[Json, list[str], Json]] = {
    "echo": ({"text": STRING}, ["text"], READ_ONLY),
    "add": ({"a": NUMBER, "b": NUMBER}, ["a", "b"], IDEMPOTENT),
    "send": ({"text": STRING}, ["text"], WRITES),
    "count": ({}, [], WRITES),
    "environment": ({}, [], READ_ONLY),
    "sleep": ({"seconds": NUMBER, "gate": STRING}, ["seconds"], READ_ONLY),
    "sleep_send": ({"seconds": NUMBER, "text": STRING, "gate": STRING}, ["seconds", "text"], WRITES),
    "big": ({"bytes": INTEGER}, ["bytes"], READ_ONLY),
    "fail": ({"text": STRING}, ["text"], READ_ONLY),
    "die": ({}, [], WRITES),
    "die_once": ({"marker": STRING}, ["marker"], READ_ONLY),
    "die_after_send": ({"text": STRING}, ["text"], WRITES),
    "hang_process": ({}, [], READ_ONLY),
    "garbage": ({}, [], READ_ONLY),
    "bad_utf8": ({"inside_answer": BOOLEAN}, [], READ_ONLY),
    "half_line_and_exit": ({}, [], WRITES),
    "close_stdin": ({}, [], WRITES),
    "close_stdout": ({}, [], WRITES),
    "stop_reading": ({"seconds": NUMBER}, ["seconds"], READ_ONLY),
    "wrong_shape": ({}, [], READ_ONLY),
    "answer_twice": ({"text": STRING}, ["text"], READ_ONLY),
    "spawn_grandchild": ({"ignore_sigterm": BOOLEAN, "detached": BOOLEAN}, [], WRITES),
    "stderr": ({"text": STRING}, ["text"], READ_ONLY),
    "add_tool": ({"name": STRING}, ["name"], WRITES),
    "remove_tool": ({"name": STRING}, ["name"], WRITES),
    "change_tool": ({"name": STRING}, ["name"], WRITES),
    "progress": ({"n": INTEGER}, ["n"], READ_ONLY),
    "ask_client": ({}, [], READ_ONLY),
    "answer": ({"result": {"type": "object"}}, ["result"], READ_ONLY),
    "send_and_answer": ({"text": STRING, "result": {"type": "object"}}, ["text", "result"], WRITES),
    "steps": ({"count": INTEGER, "seconds": NUMBER, "gate": STRING}, ["count", "seconds"], READ_ONLY),
}
MEASURES: Json = {
    "type": "object",
    "properties": {"size": {"type": "integer"}, "unit": {"enum": ["cm", "in"]}},
    "required": ["size"],
}
STRICT: Json = {
    "type": "object",
    "properties": {
        "when": {"type": "string", "format": "date-time"},
        "copies": {"type": "integer", "minimum": 1},
    },
    "required": ["when"],
    "additionalProperties": False,
}

GRANDCHILD = "import signal, time; {ignore}time.sleep(600)"
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def is_open(gate: str | None, letters: int = 1) -> bool:
    """Whether a test has opened this gate: a file that has at least so many letters.

    What waits at a gate is under way for as long as the test wants, however busy the machine is.
    """
    try:
        return gate is not None and os.path.getsize(gate) >= letters
    except OSError:
        return False


def spawn_grandchild(ignore_sigterm: bool, detached: bool = False) -> int:
    """A sleeping process that inherits our pipes; `detached` takes it out of our process group."""
    program = GRANDCHILD.format(ignore=IGNORE if ignore_sigterm else "")
    child = subprocess.Popen([sys.executable, "-S", "-c", program], start_new_session=detached)
    threading.Thread(target=child.wait, daemon=True).start()
    return child.pid


def text(words: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": words}], **more}


def structured(facts: Json) -> Json:
    return text(json.dumps(facts), structuredContent=facts)


class Toolbox:
    """The definitions and the state of one server process."""

    def __init__(
        self,
        journal: str | None = None,
        extra: list[str] | None = None,
        descriptions: str = "The tool {name}",
    ) -> None:
        self._journal = journal
        self._descriptions = descriptions
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._changes: dict[str, int] = {}
        self._extra = list(extra or [])

    def definitions(self) -> list[Json]:
        tools = [self._definition(name, *facts) for name, facts in TOOLS.items()]
        tools.append(
            {
                "name": "strict",
                "description": "Checks its arguments",
                "inputSchema": STRICT,
                "annotations": READ_ONLY,
            }
        )
        for name, marks in (("measure", READ_ONLY), ("send_measure", WRITES)):
            made = self._definition(name, {"found": {}}, [], marks)
            tools.append({**made, "outputSchema": MEASURES})
        tools += [self._definition(name, {"text": STRING}, [], READ_ONLY) for name in self._extra]
        return tools

    def _definition(self, name: str, properties: Json, required: list[str], annotations: Json) -> Json:
        changes = self._changes.get(name, 0)
        described = self._descriptions.replace("{name}", name)
        description = described + (f", changed {changes} times" if changes else "")
        schema = {"type": "object", "properties": properties, "required": required}
        return {
            "name": name,
            "description": description,
            "inputSchema": schema,
            "annotations": annotations,
        }

    def write(self, line: str) -> None:
        """One line of the journal: the proof that something was executed."""
        if self._journal is None:
            return
        with open(self._journal, "a") as journal:
            journal.write(line + "\n")

    def run(self, name: str, arguments: Json, session: str = "") -> Json:
        """What an instantaneous tool answers. `KeyError` when there is no such tool."""
        if name in self._extra:
            return text(f"{name} says {arguments.get('text', '')}")
        body = getattr(self, f"_run_{name}", None)
        if body is None:
            raise KeyError(name)
        return body(session, **arguments)

    def _run_echo(self, session: str, text: str, **_: Any) -> Json:
        return {"content": [{"type": "text", "text": text}]}

    def _run_add(self, session: str, a: float, b: float) -> Json:
        return structured({"sum": a + b})

    def _run_send(self, session: str, text: str) -> Json:
        self.write(text)
        return {"content": [{"type": "text", "text": f"sent {text}"}]}

    def _run_count(self, session: str) -> Json:
        with self._lock:
            count = self._counts[session] = self._counts.get(session, 0) + 1
        return structured({"count": count, "pid": os.getpid()})

    def _run_environment(self, session: str) -> Json:
        digests = {name: digest(value) for name, value in os.environ.items()}
        facts = {"env": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "digests": digests}
        return structured({**facts, "argv_digest": digest(" ".join(sys.argv[1:]))})

    def _run_big(self, session: str, bytes: int) -> Json:
        return text("x" * bytes)

    def _run_fail(self, session: str, text: str) -> Json:
        return {"content": [{"type": "text", "text": text}], "isError": True}

    def _run_die(self, session: str) -> Json:
        os._exit(3)

    def _run_die_once(self, session: str, marker: str) -> Json:
        if not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(3)
        return text("survived")

    def _run_die_after_send(self, session: str, text: str) -> Json:
        self.write(text)
        os._exit(3)

    def _run_wrong_shape(self, session: str) -> Json:
        return {"content": "not a list", "isError": "perhaps"}

    def _run_spawn_grandchild(
        self, session: str, ignore_sigterm: bool = False, detached: bool = False
    ) -> Json:
        return structured({"pid": spawn_grandchild(ignore_sigterm, detached)})

    def _run_measure(self, session: str, found: Any = None) -> Json:
        return text("measured") if found is None else text("measured", structuredContent=found)

    def _run_send_measure(self, session: str, found: Any = None) -> Json:
        self.write("measured")
        return self._run_measure(session, found)

    def _run_stderr(self, session: str, text: str) -> Json:
        print(text, file=sys.stderr, flush=True)
        return {"content": [{"type": "text", "text": "written"}]}

    def _run_strict(self, session: str, when: str, copies: int = 1) -> Json:
        self.write(f"strict {when}")
        return structured({"when": when, "copies": copies})

    def _run_add_tool(self, session: str, name: str) -> Json:
        self._extra.append(name)
        return text(f"added {name}")

    def _run_remove_tool(self, session: str, name: str) -> Json:
        self._extra = [other for other in self._extra if other != name]
        return text(f"removed {name}")

    def _run_change_tool(self, session: str, name: str) -> Json:
        self._changes[name] = self._changes.get(name, 0) + 1
        return text(f"changed {name}")


CHANGES_LIST = frozenset({"add_tool", "remove_tool", "change_tool"})


class Log:
    """Lines of JSON about what reached the server, for tests that count."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def write(self, event: str, **facts: Any) -> None:
        if self._path:
            line = json.dumps({"event": event, "pid": os.getpid(), "time": time.time(), **facts})
            with open(self._path, "a") as log:
                log.write(line + "\n")
