"""The events of a run, one after the other, also over a service that was away for a while."""

import json
import time
from collections.abc import Generator
from typing import Any

from dragoman.cli.door import Door, path_of
from dragoman.errors import Unreachable

Event = dict[str, Any]
_PATIENCE = 30.0  # seconds in which a service that went away may come back
_PAUSE = 0.25


def events_of(door: Door, run: str, after: int = 0) -> Generator[Event]:
    """From a number on, until the root run has ended. `Unreachable` when the service does not come back."""
    lost_at: float | None = None
    while True:
        try:
            with door.follow(path_of("runs", run, "events"), after) as lines:
                for line in lines:
                    lost_at = None
                    if not line.startswith(b"data: "):
                        continue
                    event: Event = json.loads(line[6:])
                    after = event["number"]
                    yield event
                    if event["kind"] == "run.finished" and event["run"] == event["root"]:
                        return
            if is_over(door.ask("GET", path_of("runs", run))["family"][0]):
                return
        except Unreachable as error:
            if lost_at is not None and time.monotonic() - lost_at > _PATIENCE:
                raise Unreachable(
                    error.message, hint=f"the run goes on when it is back: dragoman runs follow {run}"
                ) from None
        lost_at = lost_at or time.monotonic()
        time.sleep(_PAUSE)


def is_over(run: Event) -> bool:
    return run["status"] in ("done", "failed", "cancelled")
