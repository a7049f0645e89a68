"""Dragoman's own form: `dragoman.toml`, which people write, and the JSON that `dragoman export` writes.

Both have a table `connectors` with the fields of a configuration, and may have `agents` and `bundles`. An
export also has `secrets`, by name; null says that there was one which the export does not hold.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dragoman.agent import AgentProfile
from dragoman.connector import Configuration, Connector, GivenCredentials
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats.import_plan import (
    FoundAgent,
    FoundBundle,
    FoundConnector,
    ImportPlan,
    ImportProblem,
    named,
    not_taken,
)
from dragoman.formats.parsing import pairs, table, text_of, truth, words
from dragoman.formats.variables import BaseFolders, Variables
from dragoman.names import did_you_mean
from dragoman.setting import changed, people_set, settings_of

VERSION = 1
_TABLES = ("dragoman", "connectors", "agents", "bundles", "defaults")
_OF_BUNDLES = ("title", "description", "instructions", "view", "capabilities", "tools", "resources", "hooks")
# Older exports have it with every agent, for whom it never meant anything.
_OF_CONNECTORS = "auto_discover"
_BESIDE = ("description", "aliases", "enabled", "secrets")
_FIELDS = sorted({*Configuration.model_fields, *GivenCredentials.model_fields} - {"secrets"})
# Placeholders of editors are translated wherever a server is reached or signed in to.
_WITH_PLACEHOLDERS = {
    one.path[0]: one
    for one in (*settings_of(Configuration), *settings_of(GivenCredentials))
    if one.setting.secret or (one.setting.ways and len(one.path) == 1)
}


def read_dragoman_file(document: Mapping[str, Any], places: BaseFolders) -> ImportPlan:
    version = document.get("dragoman", VERSION)
    if version != VERSION:
        raise InvalidConfig(f"this export has version {str(version)[:20]}; this Dragoman reads {VERSION}")
    connectors: list[FoundConnector] = []
    agents: list[FoundAgent] = []
    problems: list[ImportProblem] = []
    warnings = [*not_taken(document, _TABLES)]
    for name, entry in table(document.get("connectors")).items():
        try:
            connectors.append(_read_connector(name, table(entry), Variables(places)))
        except DragomanError as error:
            problems.append(ImportProblem(entry=name[:200], reason=error.message))
    for name, entry in table(document.get("agents")).items():
        try:
            agents.append(read_kept_agent(name, table(entry)))
            if table(entry).get(_OF_CONNECTORS) is False:
                warnings.append(f"agents.{name[:200]}: {_OF_CONNECTORS} is a setting of connectors")
        except DragomanError as error:
            problems.append(ImportProblem(entry=name[:200], reason=error.message))
    bundles: list[FoundBundle] = []
    for name, entry in table(document.get("bundles")).items():
        settings = table(entry)
        if unknown := sorted(settings.keys() - {*_OF_BUNDLES}):
            near = did_you_mean(unknown[0][:60], [*_OF_BUNDLES])
            reason = f"a bundle has no field {unknown[0][:60]!r}" + (f"; {near}" if near else "")
            problems.append(ImportProblem(entry=name[:200], reason=reason))
        else:
            bundles.append(FoundBundle(name=name, settings=settings))
    return ImportPlan(
        format="dragoman",
        connectors=tuple(connectors),
        agents=tuple(agents),
        bundles=tuple(bundles),
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def read_kept_agent(name: str, entry: Mapping[str, Any]) -> FoundAgent:
    settings = {field: value for field, value in entry.items() if field != _OF_CONNECTORS}
    return changed(FoundAgent(name=name), {"connectors": [], **settings})


def written_agent(agent: FoundAgent) -> dict[str, Any]:
    """What differs from the default; a file that leaves a list of connectors out means none."""
    chosen = ((one, one.of(agent)) for one in people_set(AgentProfile) if one.is_chosen(one.of(agent)))
    return {one.name: _listed(value) if one.kind == "list" else value for one, value in chosen}


def _listed(values: Collection[str]) -> list[str]:
    return sorted(values) if isinstance(values, frozenset) else [*values]


def write_dragoman_file(
    connectors: Iterable[Connector],
    secrets: Mapping[str, Mapping[str, str]],
    agents: Iterable[FoundAgent] = (),
    bundles: Iterable[FoundBundle] = (),
) -> str:
    """`secrets` are the revealed ones, by the connector's id; those not there are written as null."""
    document: dict[str, Any] = {
        "dragoman": VERSION,
        "connectors": {one.slug: _written(one, secrets.get(one.id, {})) for one in connectors},
        "agents": {agent.name: written_agent(agent) for agent in agents},
    }
    if described := {one.name: dict(one.settings) for one in bundles}:
        document["bundles"] = described
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _written(connector: Connector, revealed: Mapping[str, str]) -> dict[str, Any]:
    facts = connector.configuration.model_dump(mode="json", exclude_unset=True, exclude={"secrets"})
    beside = {
        "description": connector.description,
        "aliases": list(connector.aliases),
        "secrets": {name: revealed.get(name) for name in connector.configuration.secrets},
    }
    # Nothing may be a choice: a server that may ask for nothing is not one that may ask for everything.
    chosen = connector.configuration.model_dump(exclude_defaults=True).keys()
    kept = {
        name: value
        for name, value in {**beside, **facts}.items()
        if value not in ("", [], {}, None) or name in chosen
    }
    return kept if connector.enabled else {**kept, "enabled": False}


def _read_connector(name: str, entry: Mapping[str, Any], variables: Variables) -> FoundConnector:
    _check_fields(entry)
    slug, aliases = named(name)
    secrets: dict[str, Any] = table(entry.get("secrets"))
    facts = {field: value for field, value in entry.items() if field not in _BESIDE}
    if "openapi" in facts:
        facts.setdefault("kind", "openapi")
    facts = {field: _placed(value, field, variables) for field, value in facts.items()}
    given = pairs(secrets, "secrets")
    if given:
        facts["secrets"] = given
    return FoundConnector(
        name=name,
        slug=slug,
        aliases=(*aliases, *words(entry.get("aliases"), "aliases")),
        description=text_of(entry.get("description"), "description") or "",
        enabled=entry.get("enabled") is None or truth(entry["enabled"], "enabled"),
        facts=facts,
        needs=tuple(variables.needs.values()),
        missing=tuple(sorted(secrets.keys() - given.keys())),
    )


def _check_fields(entry: Mapping[str, Any]) -> None:
    for field in entry:
        if field not in _FIELDS and field not in _BESIDE:
            near = did_you_mean(field[:60], [*_FIELDS, *_BESIDE])
            raise InvalidConfig(f"there is no field {field[:60]!r}" + (f"; {near}" if near else ""))


def _placed(value: Any, field: str, variables: Variables) -> Any:
    """Only where a server is reached can there be placeholders."""
    described = _WITH_PLACEHOLDERS.get(field)
    if described is None or value is None:
        return value
    if described.kind == "list":
        given = [value] if field == "network" and isinstance(value, str) else value  # "full", "none"
        return [variables.translated(word, field) for word in words(given, field)]
    if described.kind == "table":
        return {name: variables.translated(word, field) for name, word in pairs(value, field).items()}
    # A program and its folder are read at once, everything else when a connection opens.
    place = field if "command" in described.setting.ways else "url"
    return variables.translated(value, place) if isinstance(value, str) else value
