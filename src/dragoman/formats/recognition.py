"""From a text to what it says: told apart by its content, by its name only where two formats agree."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from dragoman.errors import InvalidConfig
from dragoman.formats.action_servers import read_action_servers, read_agent
from dragoman.formats.dragoman_files import read_dragoman_file
from dragoman.formats.import_plan import FoundConnector, ImportPlan, not_taken
from dragoman.formats.mcp_servers import looks_like_server, read_inputs, read_servers
from dragoman.formats.parsing import entries, read_document, table
from dragoman.formats.variables import BaseFolders
from dragoman.names import slug_from

UNNAMED = "the text"
EXPECTED = (
    "expected one of: mcpServers (Claude, Cursor, Windsurf), servers (VS Code), action_servers, an agent's"
    " configuration, dragoman.toml with [connectors.NAME], or a Dragoman export"
)
_AGENT_WORDS = frozenset({"instructions", "system_prompt", "prompt", "model"})


def read(text: str, name: str = UNNAMED, places: BaseFolders = BaseFolders()) -> ImportPlan:  # noqa: B008 - frozen
    """Everything that a text says. `InvalidConfig` only where nothing of it can be understood."""
    document = read_document(text, name)
    file = PurePath(name)
    if isinstance(document, list):
        if not any(isinstance(item, Mapping) for item in entries(document)):
            raise InvalidConfig(f"{name} is a list without entries", hint=EXPECTED)
        return replace(read_action_servers(document, places), source=name)
    if not isinstance(document, Mapping):
        raise InvalidConfig(f"{name} holds no table", hint=EXPECTED)
    return replace(_understood(table(document), file, places), source=name)


def servers_only(text: str, name: str) -> str:
    """Claude Code keeps histories and accounts beside its servers: only the servers are handed on."""
    try:
        document = read_document(text, name)
    except InvalidConfig:
        return text  # told when it is read in earnest
    if not isinstance(document, Mapping) or "projects" not in document:
        return text
    found = table(document)
    projects = {
        folder: {"mcpServers": table(project)["mcpServers"]}
        for folder, project in table(found["projects"]).items()
        if table(project).get("mcpServers")
    }
    return json.dumps({"mcpServers": found.get("mcpServers") or {}, "projects": projects})


def _understood(document: dict[str, Any], file: PurePath, places: BaseFolders) -> ImportPlan:
    # VS Code's settings keep the same tables under `mcp`.
    if isinstance(document.get("mcp"), Mapping) and "mcpServers" not in document:
        document = {**document, **table(document["mcp"])}
    is_own = "dragoman" in document or any(
        isinstance(document.get(name), Mapping) for name in ("connectors", "bundles")
    )
    if is_own or document.keys() == {"defaults"}:
        return read_dragoman_file(document, places)
    if _has_servers(document):
        return _read_clients(document, places)
    if found := _find_action_servers(document, file, places):
        return found
    if isinstance(document.get("servers"), Mapping):
        inputs = read_inputs(entries(document.get("inputs")))
        return replace(read_servers(table(document["servers"]), places, inputs), format="vscode")
    if _is_agent(document):
        return read_agent(document, "" if file.name == UNNAMED else file.stem, places)
    bare = {key: value for key, value in document.items() if not key.startswith("$")}
    if bare and all(looks_like_server(value) for value in bare.values()):
        return read_servers(bare, places)
    if looks_like_server(document):
        raise InvalidConfig(
            f"{file} holds one server without a name", hint='write it as {"mcpServers": {"NAME": { … }}}'
        )
    found_keys = ", ".join(sorted(document)[:6])
    raise InvalidConfig(
        f"{file} is nothing that Dragoman can import"
        + (f"; it has {found_keys[:200]}" if found_keys else ""),
        hint=EXPECTED,
    )


def _find_action_servers(
    document: Mapping[str, Any], file: PurePath, places: BaseFolders
) -> ImportPlan | None:
    """Lists of tables; a list of names belongs to an agent."""
    for key in ("action_servers", "actionServers", "servers"):
        value = document.get(key)
        is_listed = isinstance(value, list) and not _AGENT_WORDS & document.keys()
        has_tables = is_listed and (not value or any(isinstance(item, Mapping) for item in entries(value)))
        is_tabled = isinstance(value, Mapping) and (
            key != "servers" or file.stem.startswith("action_servers")
        )
        if has_tables or is_tabled:
            default = document.get("auto_discover")
            plan = read_action_servers(value, places, auto_discover=default is not False)
            return replace(plan, warnings=not_taken(document, (key, "auto_discover")))
    return None


def _is_agent(document: Mapping[str, Any]) -> bool:
    names = any(
        isinstance(document.get(key), list) and all(isinstance(item, str | Mapping) for item in document[key])
        for key in ("action_servers", "connectors", "servers")
    )
    return names or bool({"instructions", "system_prompt", "agent_name"} & document.keys())


def _has_servers(document: Mapping[str, Any]) -> bool:
    has_projects = any("mcpServers" in table(one) for one in table(document.get("projects")).values())
    return has_projects or any(
        isinstance(document.get(key), Mapping) for key in ("mcpServers", "mcp_servers", "context_servers")
    )


def _read_clients(document: Mapping[str, Any], places: BaseFolders) -> ImportPlan:
    """`mcpServers`, and those that Claude Code keeps for each project."""
    inputs = read_inputs(entries(document.get("inputs")))
    key = next((word for word in ("mcpServers", "mcp_servers", "context_servers") if word in document), "")
    plan = read_servers(table(document.get(key)), places, inputs)
    for folder, project in table(document.get("projects")).items():
        servers = table(table(project).get("mcpServers"))
        if servers:
            found = read_servers(servers, BaseFolders(folder=folder, home=places.home), inputs)
            plan = _joined(plan, found, PurePath(folder).name)
    return plan


def _joined(plan: ImportPlan, more: ImportPlan, project: str) -> ImportPlan:
    """A server that two projects describe alike is one; otherwise it takes the project's name."""
    connectors = {found.slug: found for found in plan.connectors}
    for found in more.connectors:
        known = connectors.get(found.slug)
        if known is not None and known.facts != found.facts:
            found = _renamed(found, project)
        connectors.setdefault(found.slug, found)
    return replace(plan, connectors=tuple(connectors.values()), problems=(*plan.problems, *more.problems))


def _renamed(found: FoundConnector, project: str) -> FoundConnector:
    from_project = f"another project has a different {found.name!r}: this one takes the name of its project"
    name = f"{found.name}-{project}"
    return replace(
        found, name=name, slug=slug_from(name), aliases=(), warnings=(*found.warnings, from_project)
    )
