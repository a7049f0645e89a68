"""Whose a row is: every table says it, and what is erased is in no table and no file any more."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, Float, Integer, LargeBinary, Table, insert, select

from dragoman.scope import Caller, identity_of
from dragoman.store import open_store
from dragoman.store.audit_chain import ERASURE, verify
from dragoman.store.columns import UtcDateTime
from dragoman.store.database import Database, open_database
from dragoman.store.location import DatabaseLocation
from dragoman.store.personal_data import NOBODYS, STAYS, THEIRS, SqlPersonalData
from dragoman.store.records import AuditEntry
from dragoman.store.tables import metadata

pytestmark = pytest.mark.anyio
WORKSPACE = "wsp_1"


@dataclass(frozen=True)
class Person:
    id: str
    word: str
    """Stands in everything that is theirs, and nowhere else."""


ADA = Person("usr_ada0000000000001", "canaryofada")
BOB = Person("usr_bob0000000000002", "canaryofbob")


def test_every_table_says_whose_its_rows_are() -> None:
    answers = [*THEIRS, *STAYS, *NOBODYS]
    assert len(answers) == len({*answers})
    missing = {*metadata.tables} - {table.name for table in answers}
    assert not missing, f"say in store/personal_data.py how rows of {sorted(missing)} belong to a person"


def test_what_is_nobodys_has_no_column_for_a_person() -> None:
    for table in NOBODYS:
        assert not {"user", "owner"} & {*table.c.keys()}, table.name


def row_of(table: Table, person: Person) -> dict[str, Any]:
    """One that belongs to them, with their word in every column that can hold it."""
    known: dict[str, Any] = {
        "workspace": WORKSPACE,
        "user": person.id,
        "owner": person.id,
        "connector_id": f"con_{person.word}",
        "run": f"run_{person.word}",
        "root": f"run_{person.word}",
        "identity": identity_of(Caller(WORKSPACE, person.id, thread=person.word), "thread"),
        "subject": f"oauth:con_1:{person.id}",
        "tool": "t",
        "kind": "thread",
    }
    ids = {"users": person.id, "runs": f"run_{person.word}", "connectors": f"con_{person.word}"}
    known["id"] = ids.get(table.name, f"agt_{person.word}")
    if table.name == "agent_numbers":
        known["agent"] = f"agt_{person.word}"
    if table.name == "tools":
        known["name"] = "t"
    columns = [one for one in table.columns if (table.name, one.name) != ("changes", "number")]
    return {column.name: known.get(column.name, filled(column, person)) for column in columns}


def filled(column: Column[Any], person: Person) -> Any:
    kinds: list[tuple[Any, Any]] = [
        (UtcDateTime, datetime.now(UTC)),
        (JSON, {"words": [person.word]}),
        (LargeBinary, person.word.encode()),
        (Boolean, True),
        (Integer, 1),
        (Float, 1.0),
    ]
    return next((value for kind, value in kinds if isinstance(column.type, kind)), person.word)


def entry(user: str, subject: str, **details: Any) -> AuditEntry:
    return AuditEntry(
        time=datetime.now(UTC),
        workspace=WORKSPACE,
        user=user,
        agent=None,
        way="direct",
        action="call",
        subject=subject,
        outcome="ok",
        details=details,
    )


async def all_rows(database: Database) -> dict[str, list[dict[Any, Any]]]:
    return {
        table.name: [dict(row) for row in await database.rows(select(table))]
        for table in metadata.tables.values()
    }


async def test_what_is_erased_is_in_no_table_and_no_file(database_url: str) -> None:
    """A row of each of two people in every table that has rows of people; one of them is erased."""
    location = DatabaseLocation.of(database_url)
    async with open_store(database_url) as store, open_database(location, 10) as database:
        async with database.write() as connection:
            workspace = {"id": WORKSPACE, "name": "acme", "approval": "default", "limits": {}}
            await connection.execute(
                insert(metadata.tables["workspaces"]), [{**workspace, "created_at": datetime.now(UTC)}]
            )
            for table in metadata.sorted_tables:
                if table in THEIRS or table.name == "changes":
                    for person in (ADA, BOB):
                        await connection.execute(insert(table), [row_of(table, person)])
        approvals = metadata.tables["approvals"]
        answered = approvals.update().where(approvals.c.user == BOB.id).values(answered_by=ADA.id)
        await database.execute(answered)
        await store.audit.append(
            [
                entry(ADA.id, ADA.word, words=ADA.word),
                entry(BOB.id, "usr_admin", about=ADA.id),
                entry(BOB.id, f"con_{ADA.word}", name=f"of {ADA.word}"),
                entry(BOB.id, BOB.word, words=BOB.word),
            ]
        )
        theirs = [name async for name, _ in SqlPersonalData(database).rows(WORKSPACE, ADA.id)]
        assert {*theirs} == {*(table.name for table in THEIRS), "audit"}
        assert len(theirs) == len(THEIRS) + 1
        before = await all_rows(database)

        told = replace(entry("usr_admin", "erased_1"), action=ERASURE)
        changed = await store.personal.erase(WORKSPACE, ADA.id, [ADA.word], told)
        assert await store.personal.compact()

        after = await all_rows(database)
        entries = await store.audit.read(WORKSPACE)
        anchor = await store.audit.anchor(WORKSPACE)
    for table, rows in after.items():
        for row in rows:
            assert ADA.word not in repr(row), (table, row)
            assert ADA.id not in repr(row) or table == "changes", (table, row)
    assert changed == 3
    assert [one.user for one in entries] == ["erased_1", BOB.id, BOB.id, BOB.id, "usr_admin"]
    verdict = verify(entries, anchor)
    assert (verdict.is_whole, verdict.erased, verdict.unexplained) == (True, 3, {"erased_1": 0})
    for table in THEIRS:
        of_bob = [row for row in before[table.name] if BOB.word in repr(row)]
        if table.name == "approvals":  # which she had answered
            of_bob = [{**row, "answered_by": "erased_1"} for row in of_bob]
        assert after[table.name] == of_bob, table.name
    if location.is_sqlite:
        for file in Path(location.shown).parent.iterdir():
            assert ADA.word.encode() not in file.read_bytes(), file


async def test_an_entry_that_lost_its_content_without_a_word_breaks_the_trail(sqlite_url: str) -> None:
    async with (
        open_store(sqlite_url) as store,
        open_database(DatabaseLocation.of(sqlite_url), 10) as database,
    ):
        await store.audit.append([entry(ADA.id, "one"), entry(BOB.id, "two"), entry(BOB.id, "three")])
        told = replace(entry("usr_admin", "erased_1"), action=ERASURE)
        assert await store.personal.erase(WORKSPACE, ADA.id, [], told) == 1
        assert verify(await store.audit.read(WORKSPACE), (0, "")).unexplained == {"erased_1": 0}
        audit = metadata.tables["audit"]
        hidden = audit.update().where(audit.c.number == 2).values(subject="", details={"erased": "erased_1"})
        await database.execute(hidden)
        assert verify(await store.audit.read(WORKSPACE), (0, "")).unexplained == {"erased_1": 1}
