"""`action_servers.json`, services with an OpenAPI document, and `agent_configs/{agent}.json`, who uses them.

Neither has a public schema, so both are read with tolerance; every spelling that is understood is here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats.import_plan import (
    FoundAgent,
    FoundConnector,
    ImportPlan,
    ImportProblem,
    named,
    not_taken,
)
from dragoman.formats.mcp_servers import read_server
from dragoman.formats.parsing import entries, pairs, table, text_of, truth
from dragoman.formats.variables import BaseFolders, Variables

_MCP = frozenset({"mcp", "stdio", "sse", "http", "streamable-http"})
_LISTS = ("action_servers", "connectors", "servers")
_ONE = "action_server"  # or one alone; written back as a list
_DISCOVERS = ("auto_discover", "autoDiscover")
_PROMPTS = ("instructions", "system_prompt", "prompt")
_OF_AGENT = ("agent_name", "name", "description", "model", _ONE, *_LISTS, *_DISCOVERS, *_PROMPTS)
_ADDRESSES = ("url", "base_url", "baseUrl", "openapi", "address")
_OF_SERVICE = (
    *("name", "id", "type", "kind", "description", "enabled", "headers", *_ADDRESSES, *_DISCOVERS),
    *("auth", "bearer", "token", "api_key", "apiKey", "api_key_header"),
)


def read_action_servers(servers: Any, places: BaseFolders, *, auto_discover: bool = True) -> ImportPlan:
    """A list of entries with a name, or a table of entries by name."""
    connectors: list[FoundConnector] = []
    problems: list[ImportProblem] = []
    for number, (name, entry) in enumerate(_by_name(servers), 1):
        try:
            connectors.append(_read_entry(name, entry, places, auto_discover))
        except DragomanError as error:
            problems.append(ImportProblem(entry=name[:200] or f"entry {number}", reason=error.message))
    return ImportPlan(format="action_servers", connectors=tuple(connectors), problems=tuple(problems))


def read_agent(document: Mapping[str, Any], stem: str, places: BaseFolders) -> ImportPlan:
    """One agent. A connector that is described inside its list is found as well."""
    assigned: list[str] = []
    inline: list[Any] = []
    for item in assigned_entries(document):
        if isinstance(item, str):
            assigned.append(item)
        elif name := str(table(item).get("name") or ""):
            assigned.append(name)
            inline += [item] if table(item).keys() & {"url", "base_url", "command"} else []
    discover = _discovers(document, True)
    agent = FoundAgent(
        name=text_of(document.get("agent_name") or document.get("name"), "name") or stem,
        description=text_of(document.get("description"), "description") or "",
        instructions=next(
            (str(document[key]) for key in _PROMPTS if document.get(key)),
            "",
        ),
        model=text_of(document.get("model"), "model"),
        connectors=tuple(dict.fromkeys(assigned)),
        auto_discover=discover,
    )
    if not agent.name:
        raise InvalidConfig("the agent has no name", hint="give it one, or name the file after it")
    found = read_action_servers(inline, places, auto_discover=discover)
    return replace(found, format="agent_config", agents=(agent,), warnings=not_taken(document, _OF_AGENT))


def assigned_entries(document: Mapping[str, Any]) -> list[Any]:
    key = list_key(document)
    given: Any = document[key] if key else ()
    return [given] if isinstance(given, str) else entries(given)


def list_key(document: Mapping[str, Any]) -> str | None:
    """Under which word an agent lists its connectors."""
    if isinstance(document.get(_ONE), str | list):
        return _ONE
    return next((key for key in _LISTS if isinstance(document.get(key), list)), None)


def _by_name(servers: Any) -> list[tuple[str, Any]]:
    if isinstance(servers, Mapping):
        return list(table(servers).items())
    return [
        (str(table(entry).get("name") or table(entry).get("id") or ""), entry) for entry in entries(servers)
    ]


def _read_entry(name: str, entry: Any, places: BaseFolders, auto_discover: bool) -> FoundConnector:
    if isinstance(entry, str):
        entry = {"url": entry}
    facts = table(entry)
    if not name:
        raise InvalidConfig("it has no name")
    if facts.get("command") or str(facts.get("type") or facts.get("kind") or "").lower() in _MCP:
        kind = None if str(facts.get("type")).lower() == "mcp" else facts.get("type")
        found = read_server(name, {**facts, "type": kind}, Variables(places))
    else:
        found = _read_service(name, facts, Variables(places))
    if _discovers(facts, auto_discover):
        return found
    return replace(found, facts={**found.facts, "auto_discover": False})


def _read_service(name: str, facts: Mapping[str, Any], variables: Variables) -> FoundConnector:
    where = next((facts[key] for key in _ADDRESSES if facts.get(key)), "")
    address = variables.translated(text_of(where, "url") or "", "url")
    if not address:
        raise InvalidConfig("it has no url (or base_url)")
    slug, aliases = named(name)
    found: dict[str, Any] = {"kind": "openapi", "openapi": address, **_credentials(facts, variables)}
    headers = pairs(facts.get("headers"), "headers")
    if headers:
        found["headers"] = {key: variables.translated(value, "headers") for key, value in headers.items()}
    return FoundConnector(
        name=name,
        slug=slug,
        aliases=aliases,
        description=text_of(facts.get("description"), "description") or "",
        enabled=facts.get("enabled") is None or truth(facts["enabled"], "enabled"),
        facts=found,
        needs=tuple(variables.needs.values()),
        warnings=not_taken(facts, _OF_SERVICE),
    )


def _credentials(facts: Mapping[str, Any], variables: Variables) -> dict[str, str]:
    """A bare `api_key` travels in X-API-Key, as everywhere in Dragoman; a token is a bearer token."""
    auth = table(facts.get("auth"))
    bearer = facts.get("bearer") or facts.get("token") or auth.get("token") or auth.get("bearer")
    key = facts.get("api_key") or facts.get("apiKey") or auth.get("api_key") or auth.get("key")
    header = facts.get("api_key_header") or auth.get("header")
    given = {"bearer": bearer} if bearer else {"api_key": key, "api_key_header": key and header}
    return {
        field: variables.translated(text_of(value, field) or "", "headers")
        for field, value in given.items()
        if value
    }


def _discovers(facts: Mapping[str, Any], default: bool) -> bool:
    value = facts.get("auto_discover", facts.get("autoDiscover"))
    return default if value is None else truth(value, "auto_discover")
