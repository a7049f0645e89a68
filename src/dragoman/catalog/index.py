"""Every name by which a tool can be asked for. One dictionary lookup for the usual one.

A public name wins over `<slug>__<tool>`, and that wins over the same with an alias of the connector;
`<slug>.<tool>`, as people read it, is the public name where nothing else has it;
the caller's own connectors win over the workspace's, and those over the app's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest

from dragoman.catalog.connector_tools import COMMON, ConnectorTools
from dragoman.connector import Connector
from dragoman.names import alias_name, did_you_mean, undotted_name
from dragoman.scope import APP, Caller
from dragoman.tool import Tool

_Key = tuple[str, str, str]
"""Workspace, owner, name."""
# Comparing a word with thousands of names letter by letter would hold up every other call.
_MOST_COMPARED = 200


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One tool of one connector, whoever lists it. `common` spares the second lookup."""

    connector_tools: ConnectorTools
    original_name: str
    common: Tool | None


class NameIndex:
    def __init__(self) -> None:
        self._names: dict[_Key, IndexEntry] = {}
        self._spellings: dict[_Key, IndexEntry] = {}
        self._aliases: dict[_Key, IndexEntry] = {}
        self._keys: dict[str, tuple[list[_Key], list[_Key]]] = {}
        self._slugs: dict[_Key, str] = {}

    def find(self, name: str, caller: Caller) -> Tool | None:
        found = self._found(name, caller)
        return self._found(undotted_name(name), caller) if found is None and "." in name else found

    def _found(self, name: str, caller: Caller) -> Tool | None:
        own, shared = (caller.workspace, caller.user, name), (caller.workspace, "", name)
        for names in (self._names, self._spellings, self._aliases):
            if entry := names.get(own):
                return self._tool(entry, caller)
            entry = names.get(shared) or names.get((APP, "", name))
            if entry and not self._is_hidden(entry, caller):
                return self._tool(entry, caller)
        return None

    def claim(self, connector: Connector) -> None:
        """From now on the connector hides those of its name in the tiers above, whatever tools it has."""
        self._slugs[connector.workspace, connector.owner, connector.slug] = connector.id

    def of_slug(self, slug: str, caller: Caller) -> list[str]:
        """The ids of the connectors of this name in the caller's tiers."""
        tiers = ((caller.workspace, caller.user), (caller.workspace, ""), (APP, ""))
        return [self._slugs[*tier, slug] for tier in tiers if (*tier, slug) in self._slugs]

    def _is_hidden(self, entry: IndexEntry, caller: Caller) -> bool:
        """Whether a nearer connector has the name of this one: also where it has no such tool."""
        connector = entry.connector_tools.connector
        if (caller.workspace, caller.user, connector.slug) in self._slugs:
            return True
        return connector.workspace == APP and (caller.workspace, "", connector.slug) in self._slugs

    def _tool(self, entry: IndexEntry, caller: Caller) -> Tool | None:
        connector_tools = entry.connector_tools
        tool = (
            connector_tools.find(entry.original_name, caller)
            if connector_tools.has_own_lists
            else entry.common
        )
        if tool is None or not caller.grants:
            return tool
        return tool if tool.may_be_used_by(caller) else None

    def put(self, connector_tools: ConnectorTools, all_connector_tools: Iterable[ConnectorTools]) -> None:
        """Indexes one connector anew; `all_connector_tools` are those of all connectors."""
        self._drop_keys(connector_tools.connector.id)
        workspace, owner = connector_tools.connector.workspace, connector_tools.connector.owner
        common = connector_tools.tools(COMMON)
        names: list[_Key] = []
        spellings: list[_Key] = []
        for tool in connector_tools.all_tools():
            original = tool.original_name
            entry = IndexEntry(connector_tools, original, common.get(original))
            self._names[workspace, owner, tool.name] = entry
            names.append((workspace, owner, tool.name))
            if connector_tools.connector.kind != "native":
                spelling = (workspace, owner, alias_name(connector_tools.connector.slug, original))
                self._spellings[spelling] = entry
                spellings.append(spelling)
        self._keys[connector_tools.connector.id] = (names, spellings)
        self.index_aliases(all_connector_tools)

    def drop(self, connector_tools: ConnectorTools, all_connector_tools: Iterable[ConnectorTools]) -> None:
        connector = connector_tools.connector
        self._drop_keys(connector.id)
        self._slugs.pop((connector.workspace, connector.owner, connector.slug), None)
        self.index_aliases(all_connector_tools)

    def hint(self, word: str, tools: Iterable[Tool]) -> str | None:
        """Names near to one that does not exist, out of the tools that the caller may see."""
        word = word[:100]
        if "__" in word:  # the other spelling gets its like
            names = [alias_name(tool.slug, tool.original_name) for tool in tools]
        else:
            names, word = [tool.name for tool in tools], undotted_name(word)
        if len(names) > _MOST_COMPARED:
            parts = _parts(word)
            names = nlargest(_MOST_COMPARED, names, key=lambda name: len(parts & _parts(name)))
        return did_you_mean(word, names)

    def _drop_keys(self, connector_id: str) -> None:
        names, spellings = self._keys.pop(connector_id, ([], []))
        for key in names:
            self._names.pop(key, None)
        for key in spellings:
            self._spellings.pop(key, None)

    def index_aliases(self, all_connector_tools: Iterable[ConnectorTools]) -> None:
        """From nothing each time: aliases are few, and one that is freed may belong to another."""
        self._aliases = {}
        for connector_tools in all_connector_tools:
            connector = connector_tools.connector
            for alias in connector.aliases:
                for tool in connector_tools.all_tools():
                    entry = self._names[connector.workspace, connector.owner, tool.name]
                    spelling = alias_name(alias, tool.original_name)
                    self._aliases.setdefault((connector.workspace, connector.owner, spelling), entry)


def _parts(name: str) -> set[str]:
    """Runs of three letters: cheap to compare, and near words share most of theirs."""
    name = name.lower()
    return {name[start : start + 3] for start in range(max(len(name) - 2, 1))}
