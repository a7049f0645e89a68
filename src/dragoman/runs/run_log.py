"""The log of a run: one line for each step that a person would ask about, made from the run's events.

All lines of a run and of its child runs have the same `root`. Arguments, results and texts are the short ones
without secrets that the events carry; the log takes secrets out once more.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.agents.offers import Offer
from dragoman.run import Run, RunEvent, RunEventKind
from dragoman.telemetry.logs import get_logger
from dragoman.tokens import count_tokens
from dragoman.tool import json_bytes

_LONGEST = 200
_LINES: Mapping[RunEventKind, tuple[str, ...]] = {
    "run.started": ("request", "parent"),
    "run.resumed": ("request", "parent"),
    "plan.stated": ("steps",),
    "call.started": ("call", "tool", "connector", "arguments"),
    "call.finished": ("call", "tool", "ok", "code", "duration_ms", "preview"),
    "question.asked": ("question", "text"),
    "question.answered": ("question",),
    "approval.requested": ("approval", "call"),
    "approval.answered": ("approval", "call"),
    "run.finished": ("status", "model"),
}
"""What a line of `info` tells of each event. Events that are not here are lines of `debug`, with all they
have."""
_NEVER = frozenset({"text"})  # an answer piece by piece: its message is told whole


def log_event(event: RunEvent) -> None:
    log = logging.getLogger("dragoman")
    if not log.isEnabledFor(logging.INFO):
        return
    if (fields := _LINES.get(event.kind)) is not None:
        get_logger().info(event.kind, **_whose(event), **_facts(event, fields))
    elif log.isEnabledFor(logging.DEBUG) and event.kind not in _NEVER:
        get_logger().debug(event.kind, **_whose(event), data=_short(event.data))


def log_offered(run: Run, why: str, offers: Sequence[Offer]) -> None:
    """What a model may call from its next request on, and why in this way; told whenever that changes."""
    if not logging.getLogger("dragoman").isEnabledFor(logging.INFO):
        return
    whose = {"run": run.id, "root": run.root, "agent": run.agent}
    tokens = count_tokens(json_bytes([[one.name, one.description, one.schema] for one in offers]))
    told = {"exposure": run.exposure, "why": why, "functions": len(offers), "tokens": tokens}
    get_logger().info("run.offered", **whose, **told)
    get_logger().debug("run.offered", **whose, names=[one.name for one in offers])


def _whose(event: RunEvent) -> dict[str, Any]:
    return {"run": event.run, "root": event.root, "agent": event.agent}


def _facts(event: RunEvent, fields: Sequence[str]) -> dict[str, Any]:
    facts = {name: _short(event.data[name]) for name in fields if event.data.get(name) is not None}
    if event.kind == "run.finished":
        error: Mapping[str, Any] = event.data.get("error") or {}
        facts |= {f"error_{name}": error[name] for name in ("code", "message") if error.get(name)}
        facts |= event.data.get("usage") or {}
    return facts


def _short(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
