"""Tools and the definitions they have had, as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, select

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import ToolVersion
from dragoman.store.shielded import shielded
from dragoman.tool import Annotations, Tool, ToolDefinition

_rows = tables.tools
_versions = tables.tool_versions
_delete = delete(_rows).where(
    _rows.c.workspace == bindparam("of_workspace"),
    _rows.c.connector_id == bindparam("of_connector"),
    _rows.c.identity == bindparam("of_identity"),
    _rows.c.name == bindparam("of_name"),
)


class SqlTools:
    """Fills `ToolRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def list(self, workspace: str | None = None) -> Sequence[Tool]:
        query = select(_rows)
        if workspace is not None:
            query = query.where(_rows.c.workspace == workspace)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return sorted(map(_tool, rows), key=lambda tool: (tool.workspace, tool.name, tool.identity))

    @shielded
    async def save(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        gone = [
            {
                "of_workspace": tool.workspace,
                "of_connector": tool.connector_id,
                "of_identity": tool.identity,
                "of_name": tool.name,
            }
            for tool in removed
        ]
        new = _version_rows(versions, tools)
        if not (tools or new or gone):
            return
        async with self._database.write() as connection:
            if gone:
                await connection.execute(_delete, gone)
            if tools:
                upsert = self._database.upsert(_rows, keep=frozenset({"first_seen"}))
                await connection.execute(upsert, [_row(tool) for tool in tools])
            if new:
                await connection.execute(self._database.upsert(_versions), new)

    @shielded
    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        query = (
            select(_versions)
            .where(
                _versions.c.workspace == tool.workspace,
                _versions.c.connector_id == tool.connector_id,
                _versions.c.identity == tool.identity,
                _versions.c.tool == tool.name,
            )
            .order_by(_versions.c.version)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [_version(row) for row in rows]


def _version_rows(versions: Sequence[ToolVersion], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """A version names its tool only; whose it is, the tool saved beside it says."""
    owners = {tool.name: tool for tool in tools}
    if versions and len(owners) != len(tools):
        raise ValueError("versions can be saved for one connector and identity at a time")
    rows: list[dict[str, Any]] = []
    for version in versions:
        if version.tool not in owners:
            raise ValueError(f"a version of {version.tool!r} without the tool itself")
        rows.append(
            {
                "workspace": owners[version.tool].workspace,
                "connector_id": owners[version.tool].connector_id,
                "identity": owners[version.tool].identity,
                "tool": version.tool,
                "version": version.version,
                "fingerprint": version.fingerprint,
                "definition": _document(version.definition),
                "diff": version.diff,
                "seen_at": version.seen_at,
            }
        )
    return rows


def _row(tool: Tool) -> dict[str, Any]:
    facts = {column.name: getattr(tool, column.name) for column in _rows.columns}
    facts["definition"] = _document(tool.definition)
    facts["allowed_callers"] = sorted(tool.allowed_callers)
    facts["required_capabilities"] = sorted(tool.required_capabilities)
    return facts


def _tool(row: RowMapping) -> Tool:
    facts = dict(row)
    facts["definition"] = _definition(facts["definition"])
    facts["allowed_callers"] = frozenset(facts["allowed_callers"])
    facts["required_capabilities"] = frozenset(facts["required_capabilities"])
    return Tool(**facts)


def _version(row: RowMapping) -> ToolVersion:
    return ToolVersion(
        tool=row["tool"],
        version=row["version"],
        fingerprint=row["fingerprint"],
        definition=_definition(row["definition"]),
        diff=row["diff"],
        seen_at=row["seen_at"],
    )


def _document(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "original_name": definition.original_name,
        "title": definition.title,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "annotations": asdict(definition.annotations),
        "meta": definition.meta,
    }


def _definition(document: Mapping[str, Any]) -> ToolDefinition:
    facts = dict(document)
    facts["annotations"] = Annotations(**facts["annotations"])
    return ToolDefinition(**facts)
