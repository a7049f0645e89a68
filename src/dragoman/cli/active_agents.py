"""Who works on what in a run and under it, as its events tell. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.cli.run_lines import title_of

Event = Mapping[str, Any]
Key = tuple[str, str]  # run and call
_TO_PERSON = "ask_person"


@dataclass(slots=True)
class _Working:
    agent: str
    parent: str | None
    call: str | None
    calls: dict[str, str] = field(default_factory=dict[str, str])


class ActiveAgents:
    """Told every event of a root run in order."""

    def __init__(self) -> None:
        self._runs: dict[str, _Working] = {}
        self._depths: dict[str, int] = {}
        self._waits: set[str] = set()
        self._approvals: dict[str, list[str]] = {}
        self.titles: dict[Key, str] = {}

    def hear(self, event: Event) -> None:
        run, data = event["run"], event["data"]
        match event["kind"]:
            case "run.started" | "run.resumed":
                self._begin(run, event["agent"], data)
            case "run.finished":
                self._runs.pop(run, None)
            case "call.started":
                self.titles[run, data["call"]] = title_of(data)
                if run in self._runs:
                    self._runs[run].calls[data["call"]] = data["tool"]
            case "call.finished":
                if run in self._runs:
                    self._runs[run].calls.pop(data["call"], None)
            case "question.asked":
                self._waits.add(data["question"])
            case "question.answered":
                self._waits.discard(data["question"])
            case "approval.requested":
                self._approvals.setdefault(run, []).append(data["approval"])
            case "approval.answered":
                # The event does not say which: those of one run are answered in turn.
                if self._approvals.get(run):
                    self._approvals[run].pop(0)
            case _:
                pass

    def depth(self, run: str) -> int:
        """0 for whom the person wrote to; a mention of several is nobody's work."""
        return self._depths.get(run, 0)

    @property
    def is_waiting(self) -> bool:
        """Whether nothing goes on but waiting for a person."""
        waits = len(self._waits) + sum(map(len, self._approvals.values()))
        return waits > 0 and waits >= sum(map(self._own_calls, self._runs))

    def line(self) -> str:
        """`email runs Read emails · tracker is typing`: exactly those at work, and what they execute."""
        return " · ".join(filter(None, map(self._activity, self._runs)))

    def _activity(self, run: str) -> str:
        working = self._runs[run]
        if not working.agent or self._has_child(run):
            return ""
        path = f"{self._chain(run)}{working.agent}"
        if not working.calls:
            return f"{path} is typing"
        titles = [self.titles[run, call] for call, tool in working.calls.items() if tool != _TO_PERSON]
        if not titles or self._approvals.get(run):
            return f"{path} waits for you"
        return f"{path} runs {', '.join(dict.fromkeys(titles))}"

    def _chain(self, run: str) -> str:
        parent = self._runs[run].parent
        if parent is None or parent not in self._runs or not self._runs[parent].agent:
            return ""
        return f"{self._chain(parent)}{self._runs[parent].agent} › "

    def _begin(self, run: str, agent: str, data: Mapping[str, Any]) -> None:
        parent = data.get("parent")
        # After an interruption the calls come again.
        self._runs[run] = _Working(agent, parent, data.get("call"))
        self._approvals.pop(run, None)
        is_named = parent in self._runs and bool(self._runs[parent].agent)
        self._depths[run] = self.depth(parent) + 1 if parent and is_named else 0

    def _has_child(self, run: str) -> bool:
        return any(other.parent == run for other in self._runs.values())

    def _own_calls(self, run: str) -> int:
        """Calls under way that are no delegation; thinking counts as one."""
        delegations = {other.call for other in self._runs.values() if other.parent == run}
        own = len(self._runs[run].calls.keys() - delegations)
        return own if own or self._has_child(run) else 1
