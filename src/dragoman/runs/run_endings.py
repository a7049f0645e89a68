"""What the beginning and the end of a run say: to its thread, to listeners, to the numbers of its agent."""

from collections.abc import Mapping
from typing import Any

from dragoman.agent import AgentNumbers
from dragoman.agents.citations import all_failed, cited_in
from dragoman.hints import worded
from dragoman.run import HEARD_OTHERS, Message, Run, RunEvent, RunEventKind, RunUsage


def queued(run: Run) -> RunEvent:
    """The first of every root run, written with it."""
    facts: dict[str, Any] = {"agent": run.agent, "request": run.request[:500]}
    return _event(run, "run.queued", 1, facts)


def never_began(run: Run, number: int) -> RunEvent:
    return _event(run, "run.finished", number, finished_facts(run))


def _event(run: Run, kind: RunEventKind, number: int, data: dict[str, Any]) -> RunEvent:
    return RunEvent(
        workspace=run.workspace,
        root=run.root,
        run=run.id,
        kind=kind,
        number=number,
        agent=run.agent,
        data=data,
    )


def finished_facts(run: Run) -> dict[str, Any]:
    """What the event of the end carries."""
    usage = run.usage
    outcome: Mapping[str, Any] = run.options.get("outcome") or {}
    cited = cited_in(run.answer or "") if outcome.get("contexts") else ()
    return {
        "status": run.status,
        "answer": run.answer,
        "error": None if run.error is None else run.error.facts(),
        "contexts": [one for one in outcome.get("contexts", ()) if one["id"] in cited],
        "model": run.model,
        "usage": {
            "requests": usage.requests,
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
            "tokens_saved": usage.tokens_saved,
            "unpriced": usage.unpriced,
        },
    }


def last_message(run: Run) -> Message | None:
    """The answer in the thread, or why there is none. Of child runs only those that people see there."""
    is_shown = run.is_root or run.options.get("visible")
    if not is_shown or not run.thread:
        return None
    facts: dict[str, Any] = {"status": run.status, HEARD_OTHERS: bool(run.options.get(HEARD_OTHERS))}
    if run.options.get("outcome"):
        facts["outcome"] = run.options["outcome"]
    if run.status == "done":
        if not run.answer:
            return None
        return said(run, "agent", run.answer, facts)
    if run.answer:  # as far as it came
        return said(run, "agent", run.answer, facts)
    # Kept as a text, which every door and every model reads: in words that are none of a door's.
    plain = worded(run.error.command_hint, "plain") if run.error else None
    hint = f" {plain}" if plain else ""
    return said(run, "system", f"{run.error.message if run.error else run.status}.{hint}", facts)


def said(run: Run, author: Any, text: str, details: Mapping[str, Any]) -> Message:
    return Message(
        workspace=run.workspace,
        user=run.user,
        thread=run.thread,
        author=author,
        agent=run.agent or None,
        text=text,
        run=run.id,
        details=details,
    )


def numbers_of(run: Run, own: RunUsage, outcome: Mapping[str, Any], seconds: float) -> AgentNumbers | None:
    """What a run adds to those of its agent: what it used itself, without its child runs.

    `seconds` are those of its work: what people took to answer is no part of it.
    """
    if run.started_at is None or run.finished_at is None:
        return None
    return AgentNumbers(
        runs=1,
        errors=int(run.status == "failed" or all_failed(outcome)),
        calls=own.calls,
        milliseconds=seconds * 1000,
        input_tokens=own.input_tokens,
        output_tokens=own.output_tokens,
        cost=own.cost,
        unpriced=own.unpriced,
        last_used=run.finished_at,
    )
