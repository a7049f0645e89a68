"""Events of a run that nobody executes: it was accepted, or it was cancelled before anybody began."""

from dragoman.run import Run, RunEvent


def queued(run: Run) -> RunEvent:
    """The first of every root run, written with it."""
    facts = {"agent": run.agent, "request": run.request[:500]}
    return _event(run, "run.queued", 1, facts)


def never_began(run: Run, number: int) -> RunEvent:
    facts = {"status": run.status, "answer": None, "error": run.error, "model": None, "usage": {}}
    return _event(run, "run.finished", number, facts)


def _event(run: Run, kind: str, number: int, data: dict[str, object]) -> RunEvent:
    return RunEvent(
        workspace=run.workspace,
        root=run.root,
        run=run.id,
        kind=kind,  # pyright: ignore[reportArgumentType]
        number=number,
        agent=run.agent,
        data=data,
    )
