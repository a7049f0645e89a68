"""A model that decides from what it is offered: it reads the functions, the instructions and the history.

It replays nothing. A message is cut into clauses; for each the function whose name, description and
parameters fit best is called with what the clause says, by whichever way there is: directly, after
`search_tools`, in `run_code`, through `query_mcp_connector`, `ask_agent` or `manage`. "It" and "the first
one" are what the clause before brought. At last it tells what came of it. `Fault` says how it goes wrong.

    async with open_scripted_openai(RuleModel()) as server: …
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal
from uuid import uuid4

from servers.rule_sentences import (
    QUOTED,
    Function,
    clauses_of,
    filled,
    function_of,
    functions_of,
    items_of,
    line_of,
    orders_in,
    refers,
    resolved,
    verb_of,
    words,
)
from servers.scenarios import Call, Reply, Result, Turn, unfenced

Json = dict[str, Any]
ServiceFault = Literal["slow", "stalled", "cut", "rate_limited", "garbage"]
ModelFault = Literal["wrong_tool", "wrong_types", "parallel", "repeats", "obeys"]
FaultKind = ServiceFault | ModelFault


@dataclass(frozen=True)
class Fault:
    """`times` is how many requests it meets, None all. `seconds` is how long, or when to come again."""

    kind: FaultKind
    times: int | None = None
    seconds: float = 0.0


_CITED = re.compile(r"\bcite (\[c\d+\])")
_HELPERS = {
    "search_tools",
    "run_code",
    "query_mcp_connector",
    "ask_agent",
    "manage",
    "ask_person",
    "state_plan",
}


@dataclass
class RuleModel:
    """A script for a scripted server. It keeps no conversation; only the faults count their requests.

    `summary` is what it makes of every thread.
    """

    faults: Sequence[Fault] = ()
    summary: str = "They talked."
    met: dict[FaultKind, int] = field(default_factory=dict[FaultKind, int])

    def __call__(self, turn: Turn) -> Reply:
        if turn.system.startswith("Sum up this conversation"):
            return Reply(text=self.summary)
        if fault := self._meets("rate_limited"):
            return Reply(status=429, text="slow down", retry_after=fault.seconds)
        reply = Decision(turn, obeys=self._meets("obeys") is not None).reply()
        if (reply.tool_calls or turn.recent) and (fault := self._meets("repeats")):
            reply = repeated(turn) or reply
        if reply.tool_calls and self._meets("parallel"):
            again = [replace(call, id=None) for call in reply.tool_calls]
            reply = replace(reply, tool_calls=(*reply.tool_calls, *again, *again))
        if reply.tool_calls and self._meets("wrong_types"):
            mistyped = [replace(call, arguments=_mistyped(call.arguments)) for call in reply.tool_calls]
            reply = replace(reply, tool_calls=tuple(mistyped))
        if turn.number == 1 and self._meets("wrong_tool"):
            reply = Reply(tool_calls=(Call("look_into_everything", {"everywhere": True}),))
        if fault := self._meets("slow"):
            reply = replace(reply, delay=fault.seconds)
        if fault := self._meets("stalled"):
            reply = replace(reply, stall=fault.seconds)
        return replace(reply, cut=self._meets("cut") is not None, garbage=self._meets("garbage") is not None)

    def _meets(self, kind: FaultKind) -> Fault | None:
        fault = next((one for one in self.faults if one.kind == kind), None)
        if fault is None or (fault.times is not None and self.met.get(kind, 0) >= fault.times):
            return None
        self.met[kind] = self.met.get(kind, 0) + 1
        return fault


def repeated(turn: Turn) -> Reply | None:
    """The first call of the conversation, once more."""
    for message in turn.request["messages"]:
        for call in message.get("tool_calls") or ():
            return Reply(
                tool_calls=(Call(call["function"]["name"], json.loads(call["function"]["arguments"])),)
            )
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                return Reply(tool_calls=(Call(block["name"], block["input"]),))
    return None


def _mistyped(arguments: Json) -> Json:
    return {
        name: str(value).lower() if isinstance(value, bool | int | float) else value
        for name, value in arguments.items()
    }


class Decision:
    """One request: what to call next, or what to say."""

    def __init__(self, turn: Turn, obeys: bool = False) -> None:
        self._turn = turn
        self._functions = functions_of(turn.request)
        self._offered = {one.name: one for one in self._functions}
        self._obeys = obeys

    def reply(self) -> Reply:
        calls: list[Call] = []
        told: list[str] = []
        before = self._before()
        is_open = False
        for place, original in enumerate(self._clauses()):
            steps = self._steps(original)
            if place and refers(original) and is_open:
                continue  # it needs what is still to come
            clause = resolved(original, before if refers(original) else None)
            if steps and not self._goes_on(steps[-1]):
                before = steps[-1].raw
                told += [line_of(*item) for item in items_of(before)] or ["- nothing was found"]
            elif (call := self._call(clause, steps)) is not None:
                is_open = True
                if call == Call("manage", {}) and any(one.name == "manage" for one in calls):
                    continue  # one look at the actions is enough
                calls.append(replace(call, id=f"{_mark(original)}_{uuid4().hex[:12]}"))
            else:
                told.append("- I have no tool for that.")
        if calls:
            return Reply(tool_calls=(*self._plan(calls), *calls))
        told += (
            [f"- {mark}" for text in self._texts() for mark in _CITED.findall(text)] if self._obeys else []
        )
        return Reply(text="\n".join(dict.fromkeys(told)))

    def _before(self) -> Any:
        """What was found last before the person spoke."""
        earlier = self._turn.results[: len(self._turn.results) - len(self._turn.recent)]
        return next((one.raw for one in reversed(earlier) if not self._goes_on(one)), None)

    def _clauses(self) -> list[str]:
        text = re.sub(r"(?<!\w)@[\w-]+ ", "", unfenced(self._turn.user), count=1)
        found = clauses_of(text.replace("\n\nContext:\n", "; "))
        if self._obeys:
            for text in self._texts():
                found += [one for one in orders_in(text) if one not in found]
        return found

    def _texts(self) -> Iterable[str]:
        """All that it can read: instructions, descriptions, the conversation, and what came back."""
        yield from self._turn.system.split("\n")
        for message in self._turn.request["messages"][:-1]:
            if message["role"] == "user":
                yield from (line for text in texts_in(message["content"]) for line in text.split("\n"))
        yield from (one.description for one in self._functions)
        for result in self._turn.results:
            yield from texts_in(result.raw)

    def _steps(self, clause: str) -> list[Result]:
        mark = _mark(clause)
        return [one for one in self._turn.recent if one.call_id.startswith(f"{mark}_")]

    def _goes_on(self, step: Result) -> bool:
        """Whether that was only the way to the call."""
        is_manual = step.tool == "manage" and isinstance(step.value, dict) and "actions" in step.value
        is_missing = isinstance(step.value, str) and " needs " in step.value and "ask_person" in step.value
        return step.tool in ("search_tools", "ask_person", "state_plan") or is_manual or is_missing

    def _call(self, clause: str, steps: Sequence[Result]) -> Call | None:
        for step in steps:
            if step.tool == "ask_person" and isinstance(step.value, str):
                clause = f"{clause} {step.value}"
        function = self._chosen(clause, steps)
        can_search = "search_tools" in self._offered and not steps
        # What was found for something else may only look like it; what a recipe names was right before.
        is_sure = function is not None and (
            function.name == "manage"
            or verb_of(clause) in function.name_words
            or f". {function.name}(" in self._turn.system
        )
        if function is not None and (is_sure or not can_search):
            return self._filled(function, clause, steps)
        if can_search:
            return Call("search_tools", {"query": QUOTED.sub("", clause).strip()})
        return self._handed_on(clause) if not steps else None

    def _chosen(self, clause: str, steps: Sequence[Result]) -> Function | None:
        known = [one for one in self._functions if one.name not in _HELPERS]
        manuals = [one for one in self._turn.recent if one.tool == "manage"]
        for step in [*steps, *manuals]:
            known += self._found(step.value)
        if "manage" in self._offered and {"agent", "connector"} & words(QUOTED.sub("", clause)):
            if not any(one.by == "manage" for one in known):
                return self._offered["manage"]
            known = [one for one in known if one.by == "manage"]
        best = max(known, key=lambda one: one.fit(clause), default=None)
        return best if best is not None and best.fit(clause) >= 3 else None

    def _found(self, value: Any) -> list[Function]:
        """Functions that a result describes: those of code, and the actions of `manage`."""
        if not isinstance(value, dict):
            return []
        stubs = [function_of(one["function"]) for one in value.get("tools", ()) if "function" in one]
        actions = [
            Function(name, facts["what"], facts["arguments"], facts["required"], by="manage")
            for name, facts in (value.get("actions") or {}).items()
        ]
        return [*filter(None, stubs), *actions]

    def _filled(self, function: Function, clause: str, steps: Sequence[Result]) -> Call:
        if function.name == "manage":
            return Call("manage", {})
        given = filled(function, clause)
        missing = [name for name in function.required if given.get(name) in (None, "", [])]
        has_asked = any(step.tool == "ask_person" for step in steps)
        if missing and "ask_person" in self._offered and not has_asked:
            return Call("ask_person", {"question": f"Which {' and '.join(missing)}?"})
        if function.by == "manage":
            return Call("manage", {"action": function.name, "arguments": given})
        if function.code:
            listed = ", ".join(f"{name}={value!r}" for name, value in given.items())
            return Call("run_code", {"code": f"await {function.name}({listed})"})
        return Call(function.name, given)

    def _handed_on(self, clause: str) -> Call | None:
        """To the agent that is named, else to the connector whose card fits."""
        cards = dict(re.findall(r"^- ([\w.-]+): (.+)$", self._turn.system, re.MULTILINE))
        asked = words(QUOTED.sub("", clause))
        if "ask_agent" in self._offered:
            for name in cards:
                if re.search(rf"\b(?:ask|have|let|tell) @?{re.escape(name)}\b", clause, re.IGNORECASE):
                    return Call("ask_agent", {"agent": name, "request": clause})
        if "query_mcp_connector" not in self._offered:
            return None
        ranked = [Function(name, about, {}) for name, about in cards.items()]
        best = max(
            ranked,
            key=lambda one: 3 * len(asked & one.name_words) + len(asked & one.other_words),
            default=None,
        )
        if best is None or not asked & (best.name_words | best.other_words):
            return None
        return Call("query_mcp_connector", {"connector_id": best.name, "query": clause})

    def _plan(self, calls: Sequence[Call]) -> list[Call]:
        """Said once, with the first calls."""
        if "state_plan" not in self._offered or any(one.tool == "state_plan" for one in self._turn.recent):
            return []
        steps = [{"tool": call.name, "reason": "it fits what was asked"} for call in calls]
        return [Call("state_plan", {"steps": steps})]


def _mark(clause: str) -> str:
    """In the ids of the calls that are made for a clause: so their results are known again."""
    return f"k{blake2b(clause.encode(), digest_size=6).hexdigest()}"


def texts_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts_in(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts_in(one)]
    return [value] if isinstance(value, str) else []
