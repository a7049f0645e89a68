"""A home that an earlier Dragoman made opens with today's code, and what waited in it goes on.

Only through doors that people have, so that no rebuilding of the inside changes these tests.
"""

import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from old_home_service import (
    DIGEST_OF_PERSONAL,
    DIGEST_OF_SHARED,
    FACTS,
    KEYS,
    answer_approval,
    answer_question,
    call,
    copy_old_home,
    run_of,
    running_old_home,
    until,
)
from product import Service, run_dragoman

from dragoman.store.schema import HEAD


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server was told to send, one line each."""
    return tmp_path_factory.mktemp("server") / "journal"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, journal: Path) -> Generator[Service]:
    """A copy of the old home, served by today's code."""
    with running_old_home(copy_old_home(tmp_path_factory.mktemp("old")), journal) as service:
        yield service


def test_everything_is_there(old: Service) -> None:
    ann, boss = KEYS["ann"], KEYS["boss"]
    assert names(old.get("/api/workspaces")["workspaces"], "name") == {"acme", "local"}
    assert names(old.get("/api/users", boss)["users"], "name") >= {"ann", "boss"}
    assert names(old.get("/api/connectors", ann)["connectors"], "slug") >= {"mail", "notes"}
    assert "remote" not in names(old.get("/api/connectors", ann)["connectors"], "slug")
    assert names(old.get("/api/agents", ann)["agents"], "name") >= {"clerk"}
    tools = names(old.get("/api/tools", ann)["tools"], "name")
    assert tools >= {"mcp_notes_send", "mcp_notes_digest", "mcp_mail_send", "mcp_mail_digest"}
    messages = old.get(f"/api/threads/{FACTS['thread']}/messages", ann)["messages"]
    assert [(message["author"], message["text"]) for message in messages] == [
        ("person", "hello there"),
        ("agent", "Good day."),
        ("person", "hello again"),
        ("agent", "Good day."),
    ]
    assert len(old.get("/api/threads", ann)["threads"]) == 3
    assert "mcp_mail_digest" in {one["tool"] for one in old.get("/api/calls", ann)["calls"]}


def test_keys_let_in_as_they_did(old: Service) -> None:
    assert old.get("/api/me", KEYS["ann"])["user"]["name"] == "ann"
    assert old.get("/api/me", KEYS["eve"])["workspace"]["name"] == "acme"
    reading = old.ask("POST", "/api/call", {"tool": "mcp_notes_digest", "arguments": {}}, KEYS["reads"])
    assert (reading.status, reading.value["code"]) == (403, "denied")
    assert old.ask("GET", "/api/me", token=KEYS["revoked"]).status == 401
    assert "notes" not in names(old.get("/api/connectors", KEYS["eve"])["connectors"], "slug")


@pytest.mark.parametrize(
    ("tool", "variable", "secret"), [(*DIGEST_OF_SHARED, "shared"), (*DIGEST_OF_PERSONAL, "personal")]
)
def test_a_sealed_secret_reaches_its_server(old: Service, tool: str, variable: str, secret: str) -> None:
    output = call(old, KEYS["ann"], tool, name=variable)
    assert output["ok"], output
    assert output["result"] == hashlib.sha256(FACTS["secrets"][secret].encode()).hexdigest()


def test_the_secret_of_a_person_is_exported_to_that_person(old: Service) -> None:
    own = old.get("/api/export?include_secrets=true", KEYS["boss"])
    assert own["connectors"]["remote"]["secrets"] == {"auth": FACTS["secrets"]["remote"]}


def test_a_run_that_waits_for_an_answer_goes_on_and_ends(old: Service) -> None:
    (question,) = old.get("/api/questions", KEYS["ann"])["questions"]
    assert (question["run"], question["text"]) == (FACTS["painting"], "Which colour?")
    answer_question(old, "green")
    until(lambda: run_of(old, "painting")["status"] == "done")
    assert run_of(old, "painting")["answer"] == "I paint it green."


def test_a_run_that_waits_for_an_approval_makes_its_call_once_and_ends(old: Service, journal: Path) -> None:
    assert run_of(old, "sending")["status"] == "waiting"
    answer_approval(old, "from a run")
    until(lambda: run_of(old, "sending")["status"] == "done")
    assert run_of(old, "sending")["answer"] == "Done: sent from a run."
    assert sent(journal).count("from a run") == 1


def test_a_call_that_waits_for_an_approval_runs_after_it(old: Service, journal: Path) -> None:
    asked = {"text": "from a call"}
    assert call(old, KEYS["agent"], "mcp_notes_send", **asked)["error"]["code"] == "approval_pending"
    assert "from a call" not in sent(journal)
    answer_approval(old, "from a call")
    assert call(old, KEYS["agent"], "mcp_notes_send", **asked)["ok"]
    assert sent(journal).count("from a call") == 1


def test_the_audit_trail_is_whole(old: Service) -> None:
    for workspace, kept in (("local", 20), ("acme", 2)):
        verdict = old.get(f"/api/audit/verify?workspace={workspace}")
        assert verdict["is_whole"], verdict
        assert verdict["count"] >= kept
    entries = old.get("/api/audit?limit=1000")["entries"]
    assert names(entries, "action") >= {"call", "connector.added", "credential.set", "key.revoked"}
    assert names(entries, "outcome") >= {"ok", "approval_pending"}


@pytest.mark.slow
def test_the_command_works_on_it(old: Service) -> None:
    listed = run_dragoman(old.home, "connectors", "list", "--json")
    assert names(json.loads(listed.stdout)["connectors"], "slug") >= {"mail", "notes"}
    as_ann = {"DRAGOMAN_URL": old.url, "DRAGOMAN_TOKEN": KEYS["ann"]}
    shown = run_dragoman(old.home, "runs", "show", FACTS["painting"], variables=as_ann)
    assert shown.returncode == 0, shown.stderr
    assert "Which colour?" in shown.stdout


@pytest.mark.slow
def test_doctor_says_what_was_migrated(old: Service) -> None:
    told = json.loads(run_dragoman(old.home, "doctor", "--json").stdout)["findings"]
    (schema,) = (one for one in told if one["subject"] == "schema")
    assert schema["verdict"] == "ok"
    assert schema["text"].startswith(f"{HEAD}, migrated from 0004 at 20")
    assert [step[:4] for step in schema["details"]] == [f"{n:04}" for n in range(5, int(HEAD) + 1)]
    assert schema["details"][2].startswith("0007 Settings of workspaces")
    shown = run_dragoman(old.home, "doctor").stdout
    assert "\n  0007 Settings of workspaces" in shown


def names(found: list[dict[str, Any]], field: str) -> set[str]:
    return {one[field] for one in found}


def sent(journal: Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []
