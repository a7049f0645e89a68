"""Events of a run that nobody executes: it was accepted, or it was cancelled before anybody began."""

from typing import Any

from dragoman.run import Run, RunEvent, RunEventKind
from dragoman.runs.run_endings import finished_facts


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
