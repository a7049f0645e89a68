"""Nodes of two versions side by side: messages and tables of the version before are read by this one.

`versions/` has what each version says, as it was recorded, and its tables. A message that is new gets its
record with the version that first says it; a record is never changed.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman.cluster import ROLES, Node, messages
from dragoman.cluster.messages import EventBatch, Unreadable
from dragoman.cluster.places import Place
from dragoman.run import RunEvent

VERSIONS = Path(__file__).parent / "versions"
NOW_TABLES = Path(__file__).parents[1] / "contract" / "snapshots" / "schema_postgresql.txt"
RECORDED = {path.name.removesuffix("_messages.json"): path for path in VERSIONS.glob("*_messages.json")}
AT = datetime(2026, 11, 17, 1, tzinfo=UTC)
HELLO = RunEvent(
    workspace="local",
    root="run_1",
    run="run_1",
    kind="text",
    number=4,
    agent="assistant",
    data={"delta": "Hello", "turn": 1},
    time=AT,
)
MEANT: dict[str, Any] = {
    "lease": "5f2a",
    "place": Place(connector="con_1", identity="user:local:ada", node="6b1f0e", lease="5f2a"),
    "agreed": {"database": "the one of 2026-11-17T01:00:00+00:00"},
    "events": EventBatch("local", "run_1", 3, [HELLO]),
    "node": Node(id="6b1f0e", host="one", pid=7, version="0.1.0", started_at=AT, roles=("doors", "work")),
    "notice": ("6b1f0e", "answered", "apv_1"),
    "run": ("local", "run_1"),
}


@pytest.mark.parametrize("version", RECORDED)
def test_what_a_version_says_is_understood(version: str) -> None:
    for name, text in json.loads(RECORDED[version].read_text()).items():
        assert getattr(messages, f"load_{name}")(text.encode()) == MEANT[name], name


def test_every_message_is_on_record_as_this_version_says_it() -> None:
    said = {name.removeprefix("dump_") for name in vars(messages) if name.startswith("dump_")}
    on_record = {
        name: text for path in RECORDED.values() for name, text in json.loads(path.read_text()).items()
    }
    assert said == set(on_record)
    for name in said:
        meant = MEANT[name]
        words = meant if name == "notice" else (meant,)
        assert getattr(messages, f"dump_{name}")(*words).decode() == on_record[name], name


def test_a_node_that_says_nothing_of_roles_has_all() -> None:
    before = b'{"v":1,"id":"a","host":"b","pid":1,"version":"0","started_at":"2026-11-17T01:00:00+00:00"}'
    assert messages.load_node(before).roles == ROLES
    with pytest.raises(Unreadable):
        messages.load_node(before.replace(b'"v":1', b'"v":99'))


def test_tables_of_the_version_before_are_still_there_and_take_its_rows() -> None:
    """A process of the version before goes on while this one has migrated the tables."""
    *_, newest = sorted(VERSIONS.glob("*_schema.txt"))
    before, now = newest.read_text().splitlines(), NOW_TABLES.read_text().splitlines()
    columns = [line for line in before if " column " in line]
    assert [line for line in columns if line not in now] == []
    old_tables = {line.split()[0] for line in before}
    for line in now:
        table, kind, *words = line.split()
        if table in old_tables and kind == "column" and line not in before:
            assert "NOT NULL" not in line or "DEFAULT" in line, f"{line}: the version before cannot write it"
        if table in old_tables and kind == "constraint" and line not in before:
            assert "CHECK" not in words, f"{line}: the version before does not know it"
