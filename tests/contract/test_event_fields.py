"""Which events there are and what each holds, as a listener hears them: a committed snapshot."""

import json
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from old_home_service import (
    FACTS,
    KEYS,
    answer_approval,
    answer_question,
    copy_old_home,
    run_of,
    running_old_home,
    until,
)
from product import LIMIT, Service

from dragoman.events import EventKind
from dragoman.run import RunEventKind
from servers.processes import stdio

ANN = KEYS["ann"]
Fields = dict[str, set[str]]


@pytest.mark.slow
def test_the_events_and_their_fields_are_these(compare: Callable[[str, str], None], tmp_path: Path) -> None:
    """One after the other, whatever makes an event; those that were not heard are named as well."""
    with running_old_home(copy_old_home(tmp_path), tmp_path / "journal") as service:
        heard, listener = listen(service)
        runs = make_things_happen(service)
        of_runs: Fields = {}
        for run in runs:  # each stream ends with its run
            for line in service.ask("GET", f"/api/runs/{run}/events", token=ANN).text.splitlines():
                take(line, of_runs)
        until(lambda: heard.keys() >= {*get_args(EventKind)} - {"events.lost"})  # that takes thousands
    listener.join(LIMIT)
    facts = {
        "of an installation": described(heard, get_args(EventKind)),
        "of a run": described(of_runs, get_args(RunEventKind)),
    }
    compare("events.json", json.dumps(facts, indent=2, sort_keys=True) + "\n")


def make_things_happen(service: Service) -> list[str]:
    """The runs that were told of."""

    def ask(method: str, path: str, token: str | None = ANN, **body: Any) -> Any:
        reply = service.ask(method, path, body, token)
        assert 200 <= reply.status < 300, reply.text
        return reply.value if reply.body else None

    ask("POST", "/api/connectors", None, name="raw", shared=True, **stdio())
    ask("PATCH", "/api/connectors/raw", None, description="A server of the tests")
    ask("POST", "/api/connectors/mail/connect")
    ask("PUT", "/api/credentials/mail", values={"env:MAIL_TOKEN": "another"})
    ask("POST", "/api/agents", name="helper")
    ask("POST", "/api/bundles", name="some", tools=["raw"])
    ask("PUT", "/api/rollout", None, share=0)
    thread = ask("POST", "/api/threads")["id"]
    ask("POST", "/api/tools/load", thread=thread, tools=["mcp_notes_digest"])
    ask("POST", "/api/tools/unload", thread=thread, tools=["mcp_notes_digest"])
    counting = ask("POST", f"/api/threads/{thread}/messages?wait=true", text="count to two")["run"]["id"]
    planning = ask("POST", "/api/connectors/notes/query", query="look")["metadata"]["run"]
    ask("PATCH", f"/api/workspaces/{ask('GET', '/api/me')['workspace']['id']}", None, recipes=True)
    ask("POST", "/api/recipes", run=planning)
    answer_approval(service, "from a run")
    answer_question(service, "green")
    for name in ("sending", "painting"):
        until(lambda name=name: run_of(service, name)["status"] == "done")
    painting = ask("POST", "/api/messages?wait=true", text="which colour now")["run"]["id"]
    answer_question(service, "red")
    sending = ask("POST", "/api/messages?wait=true", text="send it")["run"]["id"]
    answer_approval(service, "from a run")
    ask("PATCH", "/api/preferences", auto_load=False)
    ask("DELETE", "/api/connectors/raw", None)
    return [counting, planning, FACTS["sending"], FACTS["painting"], painting, sending]


def listen(service: Service) -> tuple[Fields, threading.Thread]:
    """What is heard from now on until the service stops, which ends the thread."""
    heard: Fields = {}
    request = urllib.request.Request(service.url + "/api/events", headers={"Authorization": f"Bearer {ANN}"})
    stream = urllib.request.urlopen(request, timeout=LIMIT)
    first = stream.readline()
    assert first.startswith(b":"), first  # from here on nothing is missed

    def read() -> None:
        with stream:
            for line in stream:
                take(line.decode(), heard)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return heard, thread


def take(line: str, heard: Fields) -> None:
    """Adds the fields of an event to those of its kind; what is inside of `data` is written with a dot."""
    if line.startswith("data:"):
        event = json.loads(line.removeprefix("data:"))
        inside = {f"data.{name}" for name in event["data"]}
        heard.setdefault(event["kind"], set()).update({*event, *inside} - {"data"})


def described(heard: Fields, kinds: tuple[str, ...]) -> dict[str, list[str] | str]:
    assert heard.keys() <= {*kinds}
    return {kind: sorted(heard[kind]) if kind in heard else "not heard here" for kind in kinds}
