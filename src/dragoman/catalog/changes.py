"""What one listing changes in what is known. Computed first, written later, all or nothing."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import unified_diff
from time import perf_counter
from typing import Any, Protocol

import orjson

from dragoman.catalog.connector_tools import ConnectorTools
from dragoman.catalog.naming import NameAllocator
from dragoman.catalog.schemas import problem_with
from dragoman.connections.source import Listing
from dragoman.store.records import ToolVersion
from dragoman.tool import HELD_BACK, NEVER_ACCEPTED, Tool, ToolDefinition

MAX_LINES = 400
MAX_LINE = 500


def readable_diff(before: ToolDefinition, after: ToolDefinition) -> str:
    """Lines that begin with `-` were, lines that begin with `+` are; a few unchanged ones around."""
    old, new = list(_lines(before)), list(_lines(after))
    if len(old) > MAX_LINES or len(new) > MAX_LINES:
        return _summary(before, after)
    lines = [line for line in unified_diff(old, new, n=2, lineterm="") if not line.startswith(("---", "+++"))]
    return "\n".join(lines)


def _lines(definition: ToolDefinition) -> Iterator[str]:
    yield f"name: {definition.original_name}"
    if definition.title is not None:
        yield f"title: {definition.title}"
    first, *rest = definition.description.splitlines() or [""]
    yield from _cut(f"description: {first}")
    for line in rest:
        yield from _cut(f"  {line}")
    marks = definition.annotations
    for name in ("read_only", "destructive", "idempotent", "open_world"):
        value = getattr(marks, name)
        yield f"{name}: {'not said' if value is None else 'yes' if value else 'no'}"
    yield from _schema_lines("input", definition.input_schema)
    if definition.output_schema is not None:
        yield from _schema_lines("output", definition.output_schema)


def _schema_lines(label: str, schema: Mapping[str, Any]) -> Iterator[str]:
    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    yield f"{label}:"
    for line in orjson.dumps(schema, option=options).decode().splitlines():
        yield from _cut(f"  {line}")


def _cut(line: str) -> Iterator[str]:
    """Nothing is left out: what a poisoned description hides is often at the end of a long line."""
    for start in range(0, len(line), MAX_LINE) or (0,):
        yield line[start : start + MAX_LINE]


def _summary(before: ToolDefinition, after: ToolDefinition) -> str:
    pairs = (
        ("title", before.title, after.title),
        ("description", before.description, after.description),
        ("annotations", before.annotations, after.annotations),
        ("input schema", before.input_schema, after.input_schema),
        ("output schema", before.output_schema, after.output_schema),
    )
    changed = [
        f"{label} ({len(str(old)):,} → {len(str(new)):,} characters)"
        for label, old, new in pairs
        if old != new
    ]
    return f"too large to show line by line; changed: {', '.join(changed)}"


_SLICE = 0.002  # seconds of work between two looks at what else waits: ten connectors may be listed at once
_MAX_TOOL_NAME = 1000
_HELD = "held back by a hook: "


class ToolHistory(Protocol):
    """What is remembered of a tool that came and went."""

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    """One tool whose definition is another than before. `is_blocked` until a person accepts it."""

    tool: Tool
    diff: str
    is_blocked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanges:
    """What a refresh found. `skipped` says which tools cannot be offered, and why."""

    connector_id: str
    slug: str
    identity: str = ""
    added: tuple[Tool, ...] = ()
    changed: tuple[ToolChange, ...] = ()
    removed: tuple[Tool, ...] = ()
    unchanged: int = 0
    skipped: tuple[str, ...] = ()

    @property
    def blocked(self) -> tuple[Tool, ...]:
        """What a pinned connector refuses to call until a person accepts it."""
        new = (tool for tool in self.added if tool.accepted_version <= NEVER_ACCEPTED)
        return tuple(
            {tool.name: tool for tool in (*new, *(c.tool for c in self.changed if c.is_blocked))}.values()
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(slots=True)
class CatalogUpdate:
    """A listing compared with the known tools: what to write, what to show afterwards, what to report."""

    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    saved: list[Tool] = field(default_factory=list[Tool])
    versions: list[ToolVersion] = field(default_factory=list[ToolVersion])
    added: list[Tool] = field(default_factory=list[Tool])
    changed: list[ToolChange] = field(default_factory=list[ToolChange])
    removed: list[Tool] = field(default_factory=list[Tool])
    skipped: list[str] = field(default_factory=list[str])
    unchanged: int = 0

    def changes(self, connector_tools: ConnectorTools, identity: str) -> ToolChanges:
        return ToolChanges(
            connector_id=connector_tools.connector.id,
            slug=connector_tools.connector.slug,
            identity=identity,
            added=tuple(self.added),
            changed=tuple(self.changed),
            removed=tuple(self.removed),
            unchanged=self.unchanged,
            skipped=tuple(self.skipped),
        )


class UpdatePlanner:
    """Compares one listing with the known tools. Changes nothing but the names that it has given out."""

    def __init__(
        self, connector_tools: ConnectorTools, identity: str, naming: NameAllocator, history: ToolHistory
    ) -> None:
        self._connector_tools = connector_tools
        self._identity = identity
        self._naming = naming
        self._history = history
        self._known = connector_tools.tools(identity)
        self._is_blocking = connector_tools.connector.configuration.pin == "block"
        self._held: Mapping[str, str] = {}
        self._plan = CatalogUpdate()

    async def plan(self, listing: Listing) -> CatalogUpdate:
        plan = self._plan
        self._held = listing.held
        plan.skipped.extend(listing.skipped)
        breath = Breath()
        for definition in listing.tools:
            await breath.take()
            tool = self._judged(definition)
            if tool is None:
                continue
            known = self._known.get(definition.original_name)
            await (self._add(tool) if known is None else self._compare(known, tool))
        plan.removed.extend(tool for name, tool in self._known.items() if name not in plan.tools)
        return plan

    def plan_at_once(self, definitions: Sequence[ToolDefinition]) -> CatalogUpdate:
        """For tools of this process: no history, no versions, nothing to wait for."""
        for definition in definitions:
            tool = self._judged(definition)
            if tool is None:
                continue
            known = self._known.get(definition.original_name)
            if known is None:
                self._plan.added.append(tool)
            self._plan.tools[definition.original_name] = tool
        return self._plan

    def _judged(self, definition: ToolDefinition) -> Tool | None:
        """The tool as if it were listed for the first time, or None and a reason among the skipped."""
        try:
            reason = self._reason_to_skip(definition)
            fingerprint = "" if reason else definition.fingerprint
        except (TypeError, ValueError, RecursionError) as error:
            reason, fingerprint = f"its definition is no JSON: {error!s:.200}", ""
        connector = self._connector_tools.connector
        name = None if reason else self._naming.name_for(connector, definition.original_name)
        if name is None:
            reason = reason or "the name is taken, or not legal for a native tool"
            self._plan.skipped.append(f"{definition.original_name!r:.120}: {reason}")
            return None
        return Tool(
            name=name,
            workspace=connector.workspace,
            connector_id=connector.id,
            slug=connector.slug,
            definition=definition,
            fingerprint=fingerprint,
            identity=self._identity,
            is_mcp=connector.kind == "mcp",
            **self._connector_tools.settings_of(definition.original_name),
        )

    def _reason_to_skip(self, definition: ToolDefinition) -> str | None:
        name = definition.original_name
        if not name or len(name) > _MAX_TOOL_NAME:
            return f"a name must have 1 to {_MAX_TOOL_NAME} characters, this one has {len(name)}"
        if name in self._plan.tools:
            return "the server lists this name twice; the first one is kept"
        known = self._known.get(name)
        # The same object twice in a row, or an equal one, was judged before.
        if known is not None and known.definition.input_schema == definition.input_schema:
            return None
        return problem_with(definition.input_schema)

    async def _add(self, tool: Tool) -> None:
        past = () if self._connector_tools.is_new else await self._history.versions(tool)
        if past:
            tool = self._returned(tool, past)
        else:
            if tool.original_name in self._held:
                tool = replace(tool, accepted_version=HELD_BACK)
            elif self._is_blocking and not self._connector_tools.is_new:
                # Else a server could change a pinned tool by taking it away and offering it anew.
                tool = replace(tool, accepted_version=NEVER_ACCEPTED)
            self._plan.versions.append(_version(tool, self._noted(tool, "")))
        self._keep(tool)
        self._plan.added.append(tool)

    def _returned(self, tool: Tool, past: Sequence[ToolVersion]) -> Tool:
        """A tool that was gone goes on where it was: going and coming back accepts nothing."""
        last, is_held = past[-1], tool.original_name in self._held
        is_same = last.fingerprint == tool.fingerprint and (not is_held or last.diff.startswith(_HELD))
        version = last.version if is_same else last.version + 1
        is_accepted = not self._is_blocking or (is_same and len(past) == 1)
        accepted = HELD_BACK if is_held else version if is_accepted else NEVER_ACCEPTED
        tool = replace(tool, version=version, accepted_version=accepted)
        if not is_same:
            diff = self._noted(tool, readable_diff(last.definition, tool.definition))
            self._plan.versions.append(_version(tool, diff))
            is_blocked = is_held or not is_accepted
            self._plan.changed.append(ToolChange(tool=tool, diff=diff, is_blocked=is_blocked))
        return tool

    async def _compare(self, known: Tool, listed: Tool) -> None:
        definition = listed.definition
        is_held = definition.original_name in self._held
        is_same = listed.fingerprint == known.fingerprint
        if is_same and (not is_held or await self._was_held(known)):
            self._plan.unchanged += 1
            if definition.meta == known.definition.meta:
                self._plan.tools[known.original_name] = known
            else:
                self._keep(replace(known, definition=definition))
            return
        version = known.version + 1
        is_blocked = is_held or (
            self._is_blocking and not await self._was_accepted(known, listed.fingerprint)
        )
        tool = replace(
            known,
            definition=definition,
            fingerprint=listed.fingerprint,
            version=version,
            accepted_version=HELD_BACK if is_held else known.accepted_version if is_blocked else version,
        )
        diff = self._noted(tool, readable_diff(known.definition, definition))
        self._plan.versions.append(_version(tool, diff))
        self._plan.changed.append(ToolChange(tool=tool, diff=diff, is_blocked=is_blocked))
        self._keep(tool)

    async def _was_accepted(self, known: Tool, fingerprint: str) -> bool:
        """A server that takes its change back offers again what a person has accepted."""
        past = await self._history.versions(known)
        return any(
            version.fingerprint == fingerprint
            for version in past
            if version.version == known.accepted_version
        )

    async def _was_held(self, known: Tool) -> bool:
        """Whether this very version was held back before: then a person has decided about it, or will."""
        past = await self._history.versions(known)
        return any(one.version == known.version and one.diff.startswith(_HELD) for one in past)

    def _noted(self, tool: Tool, diff: str) -> str:
        """What people read before they accept it."""
        why = self._held.get(tool.original_name)
        return diff if why is None else f"{_HELD}{why}\n{diff}".rstrip()

    def _keep(self, tool: Tool) -> None:
        self._plan.tools[tool.original_name] = tool
        self._plan.saved.append(tool)


def _version(tool: Tool, diff: str) -> ToolVersion:
    return ToolVersion(
        tool=tool.name,
        version=tool.version,
        fingerprint=tool.fingerprint,
        definition=tool.definition,
        diff=diff,
        seen_at=datetime.now(UTC),
    )


class Breath:
    """Lets others run now and then, however long the list is."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def take(self) -> None:
        if perf_counter() - self._since > _SLICE:
            await asyncio.sleep(0)
            self._since = perf_counter()
