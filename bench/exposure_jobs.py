"""Five jobs over the demo's four connectors, and a scripted model that does each by every way to tools.

A job is steps of calls, each step after the one before; the model turns it into what the way wants: calls,
a search and calls, a job per connector, or programs. Knows no hub.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse

Call = tuple[str, str, dict[str, Any]]  # connector, tool, arguments
Said = Sequence[tuple[str, dict[str, Any]]] | str


@dataclass(frozen=True, slots=True)
class Job:
    text: str
    steps: Sequence[Sequence[Call]]
    answer: str = "That is what there is."

    @property
    def connectors(self) -> list[str]:
        return [*dict.fromkeys(connector for step in self.steps for connector, _, _ in step)]


JOBS = (
    Job("Check my 2 latest e-mails.", [[("email", "read-emails", {"limit": 2})]]),
    Job(
        "Which open issues of repository xyne are assigned to octocat?",
        [
            [("tracker", "search_repositories", {"query": "xyne"})],
            [("tracker", "list_issues", {"repository": "lantern/xyne", "assignee": "octocat"})],
        ],
    ),
    Job(
        "List the tasks and the issues that are assigned to me.",
        [[("tasks", "list_tasks", {"assignee": "me"}), ("tracker", "list_issues", {"assignee": "me"})]],
    ),
    Job(
        "File an issue in xyne for the bug in the latest chat message of oncall.",
        [
            [("chat", "read_messages", {"sender": "oncall", "limit": 1})],
            [("tracker", "create_issue", {"repository": "lantern/xyne", "title": "The bug of the chat"})],
        ],
    ),
    Job(
        "Send ann, bob and cid at example.com the reminder 'Tea at four'.",
        [
            [
                ("email", "send-email", {"to": f"{name}@example.com", "subject": "Tea", "body": "At four."})
                for name in ("ann", "bob", "cid")
            ]
        ],
    ),
)


def said_next(job: Job, messages: Sequence[ModelMessage], offered: Sequence[str], way: str) -> Said:
    """What the model says to this request. Whose agent it is, it knows from what it is offered."""
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if "state_plan" in offered:
        return _below(job, turn, offered)
    match way:
        case "direct":
            return _called(job.steps, turn, job.answer)
        case "search":
            words = [{"query": f"{tool} {connector}"} for connector, tool in _tools(job)]
            searches: Said = [("search_tools", one) for one in words]
            return searches if turn == 0 else _called(job.steps, turn - 1, job.answer)
        case "delegate":
            # Connectors that need each other's results one after the other, all others at once.
            rounds = [[one] for one in job.connectors] if len(job.steps) > 1 else [job.connectors]
            if turn == len(rounds):
                return job.answer
            return [("query_mcp_connector", {"connector_id": one, "query": job.text}) for one in rounds[turn]]
        case _:
            return _coded(job, turn)


def _below(job: Job, turn: int, offered: Sequence[str]) -> Said:
    """A connector's agent: its part of the job, with a plan beside the first calls."""
    own = [[call for call in step if _name(call) in offered] for step in job.steps]
    steps = [step for step in own if step]
    said = _called(steps, turn, f"{job.answer} [c1]")
    if turn or isinstance(said, str):
        return said
    plan = [{"tool": _name(call), "reason": "the job needs it"} for step in steps for call in step]
    return [("state_plan", {"steps": plan}), *said]


def _called(steps: Sequence[Sequence[Call]], turn: int, answer: str) -> Said:
    return [(_name(call), call[2]) for call in steps[turn]] if turn < len(steps) else answer


def _coded(job: Job, turn: int) -> Said:
    """A search for the functions, then one program; tools that change something are called by name."""
    if turn == 0:
        return [("search_tools", {"query": f"{tool} {connector}"}) for connector, tool in _tools(job)]
    reads = [[call for call in step if not _changes(call)] for step in job.steps]
    changes = [(_name(call), call[2]) for step in job.steps for call in step if _changes(call)]
    rounds: list[Said] = []
    if any(reads):
        lines = [f"print(await {_function(call)})" for step in reads for call in step]
        rounds.append([("run_code", {"code": "\n".join(lines)})])
    if changes:
        rounds.append(changes)
    return rounds[turn - 1] if turn <= len(rounds) else job.answer


def _tools(job: Job) -> list[tuple[str, str]]:
    return [*dict.fromkeys((connector, tool) for step in job.steps for connector, tool, _ in step)]


def _changes(call: Call) -> bool:
    return call[1].startswith(("create", "send"))


def _name(call: Call) -> str:
    return f"mcp_{call[0]}_{call[1]}"


def _function(call: Call) -> str:
    arguments = ", ".join(f"{name}={json.dumps(value)}" for name, value in call[2].items())
    group = "" if call[0] == "tasks" else f"{call[0]}."  # operations of a service stand alone
    return f"{group}{call[1].replace('-', '_')}({arguments})"
