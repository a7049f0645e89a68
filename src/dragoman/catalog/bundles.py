"""The tools of bundles, as each bundle shows them. In memory; knows no store and asks nobody for rights.

A view is made from lists of the catalog and made anew when one of them, or the bundle, is another. What an
override no longer fits is not shown half: the tool is missing there, and the reason is told.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, cast

import orjson

from dragoman.bundle import EVERY_TOOL, OWN, Bundle, BundleEntry, ParameterOverride, shown_annotations
from dragoman.catalog.connector_tools import ConnectorTools, ListKey, is_of_tier
from dragoman.catalog.schemas import TooMuchWork, compiled
from dragoman.hook_rule import BundleRules
from dragoman.scope import APP, BUNDLE, Caller
from dragoman.tool import BundledTool, Json, Schema, Tool, ToolDefinition

_MOST_VIEWS = 512
_MOST_SHOWN = 50_000
# What a schema says of several parameters at once. Where some are hidden or renamed it is not shown: the own
# schema of the tool, by which every call is checked as well, still says it.
_TOGETHER = frozenset(
    (
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("dependencies", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    )
)
_BundleKey = tuple[str, str, str]
HeldInBundles = Callable[[str, BundleRules, Sequence[ToolDefinition]], Mapping[str, str]]
"""Why the hooks of a bundle, by its name, hold tools of its list back."""
_ViewKey = tuple[str, _BundleKey, tuple[ListKey, ...]]


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """What became of one tool of a bundle. Without a `tool` it cannot be called there; `problems` say why.

    With one, `problems` are parts of the override that say nothing any more. `name` is what it is, or would
    be, called.
    """

    entry: BundleEntry
    name: str = ""
    base: Tool | None = None
    tool: Tool | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownBundle:
    """A bundle over certain lists: what can be called, by name, and what became of every entry."""

    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    entries: tuple[ShownEntry, ...]

    def why_not(self, name: str) -> str | None:
        """Why a tool that has this name in the bundle cannot be called; None where there is no such tool."""
        for one in self.entries:
            if one.name == name and one.tool is None and one.problems:
                return one.problems[0]
        return None


NOTHING = ShownBundle((), {}, ())
"""Of a bundle that is not there."""


@dataclass(frozen=True, slots=True)
class _MadeView:
    bundle: Bundle
    version: int
    shown: ShownBundle


class BundleViews:
    """`tools_of` finds the lists of a connector by its id, `held_in` asks hooks about a bundle's list."""

    def __init__(self, tools_of: Callable[[str], ConnectorTools | None], held_in: HeldInBundles) -> None:
        self._tools_of = tools_of
        self._held_in = held_in
        self._bundles: dict[_BundleKey, Bundle] = {}
        self._made: OrderedDict[_ViewKey, _MadeView] = OrderedDict()
        self._shown: dict[
            tuple[_BundleKey, str, str], tuple[Tool, BundleEntry, tuple[str, ...], ShownEntry]
        ] = {}

    def put(self, bundle: Bundle) -> None:
        self._bundles[bundle.key] = bundle

    def drop(self, key: _BundleKey) -> None:
        self._bundles.pop(key, None)
        for one in [one for one in self._made if one[1] == key]:
            del self._made[one]
        for shown in [one for one in self._shown if one[0] == key]:
            del self._shown[shown]

    def replace_all(self, bundles: Iterable[Bundle]) -> None:
        self._bundles = {one.key: one for one in bundles}
        self._made.clear()
        self._shown.clear()

    def list(self, caller: Caller) -> Sequence[Bundle]:
        """Those of the caller's tiers, by name. Of one name the outermost: nobody takes a name from above."""
        tiers = ((caller.workspace, caller.user), (caller.workspace, ""), (APP, ""))
        found: dict[str, Bundle] = {}
        for tier in tiers:
            found |= {one.name: one for one in self._bundles.values() if (one.workspace, one.owner) == tier}
        return [found[name] for name in sorted(found)]

    def find(self, name: str, caller: Caller) -> Bundle | None:
        tiers = ((APP, ""), (caller.workspace, ""), (caller.workspace, caller.user))
        return next((one for tier in tiers if (one := self._bundles.get((*tier, name)))), None)

    def of_word(self, word: str, caller: Caller) -> Bundle | None:
        """The one that a capability stands for: one's own only where it says so."""
        name = word.removeprefix(BUNDLE)
        if name.startswith(OWN):
            return self._bundles.get((caller.workspace, caller.user, name.removeprefix(OWN)))
        return self._bundles.get((APP, "", name)) or self._bundles.get((caller.workspace, "", name))

    # Views

    def key(self, bundle: Bundle, caller: Caller) -> _ViewKey:
        """Over which lists the caller sees it."""
        lists = (
            lists.key(caller)
            for one in bundle.connectors
            if (lists := self._tools_of(one)) is not None and is_of_tier(lists.connector, caller)
        )
        return (caller.workspace, bundle.key, tuple(lists))

    def is_new(self, key: _ViewKey) -> bool:
        return key not in self._made

    def show(self, key: _ViewKey, version: int) -> ShownBundle:
        """`version` is the catalog's. The same objects for as long as nothing of it changed."""
        bundle, made = self._bundles[key[1]], self._made.get(key)
        if made is not None and made.bundle is bundle and made.version == version:
            self._made.move_to_end(key)
            return made.shown
        shown = self._make(bundle, dict(key[2]))
        if made is not None and _are_same(made.shown.tools, shown.tools):
            # A list that is the same object has not changed: who follows the catalog goes by that.
            shown = replace(shown, tools=made.shown.tools)
        self._made[key] = _MadeView(bundle, version, shown)
        while len(self._made) > _MOST_VIEWS:
            self._made.popitem(last=False)
        return shown

    def tried(self, bundle: Bundle, caller: Caller) -> Sequence[ShownEntry]:
        """What its overrides would make of its entries; nothing is kept."""
        return self._make(replace(bundle, hooks=()), dict(self.key(bundle, caller)[2])).entries

    def lists(self, workspace: str, version: int) -> dict[ListKey, tuple[Tool, ...]]:
        """Every view that somebody of this workspace has asked for."""
        keys = [key for key in self._made if key[0] == workspace]
        return {list_key(key): self.show(key, version).tools for key in keys}

    def _make(self, bundle: Bundle, identities: Mapping[str, str]) -> ShownBundle:
        rule = None if bundle.capabilities is None else Caller(grants=(bundle.capabilities,))
        named = {entry.key: entry for entry in bundle.tools if entry.tool != EVERY_TOOL}
        entries: dict[tuple[str, str], ShownEntry] = {}
        for entry in bundle.tools:
            lists = self._tools_of(entry.connector) if entry.connector in identities else None
            if lists is None:
                entries[entry.key] = ShownEntry(entry, entry.name or "", problems=(_gone_connector(entry),))
                continue
            known = lists.tools(identities[entry.connector])
            names = [entry.tool] if entry.tool != EVERY_TOOL else sorted(known)
            for name in names:
                key = (entry.connector, name)
                if entry.tool == EVERY_TOOL and key in named:
                    continue
                base = known.get(name)
                if base is None:
                    entries[key] = ShownEntry(
                        entry, entry.name or "", problems=(_gone_tool(entry, lists.connector.slug),)
                    )
                elif rule is None or base.may_be_used_by(rule):
                    shown = self._entry(bundle, entry, replace_off(base, lists.connector.enabled))
                    entries[key] = shown
        shown = _without_rivals([*entries.values()])
        return self._looked_at(bundle, shown) if bundle.hooks else shown

    def _looked_at(self, bundle: Bundle, shown: ShownBundle) -> ShownBundle:
        """Without what its hooks hold back."""
        held = self._held_in(bundle.name, bundle.rules, [tool.definition for tool in shown.tools])
        if not held:
            return shown
        kept: list[ShownEntry] = []
        for one in shown.entries:
            why = held.get(one.name) if one.tool is not None else None
            told = (f"a hook of the bundle holds it back: {why}; show it in other words", *one.problems)
            kept.append(one if why is None else replace(one, tool=None, problems=told))
        return _without_rivals(kept)

    def _entry(self, bundle: Bundle, entry: BundleEntry, base: Tool) -> ShownEntry:
        key = (bundle.key, base.connector_id, base.original_name)
        known = self._shown.get(key)
        if known is not None and known[:3] == (base, entry, bundle.hooks):
            return known[3]
        shown = show(bundle, entry, base)
        if len(self._shown) >= _MOST_SHOWN:
            self._shown.clear()
        self._shown[key] = (base, entry, bundle.hooks, shown)
        return shown


def is_shown_alike(one: Tool, other: Tool) -> bool:
    """Whether two bundles make the same of a tool, so that it does not matter which of them is meant."""
    mine, theirs = one.bundled, other.bundled
    if one is other or mine is None or theirs is None:
        return one is other
    if mine.rules.texts or theirs.rules.texts:  # hooks are those of one bundle
        return False
    return one.definition == other.definition and replace(mine, bundle="", rules=theirs.rules) == replace(
        theirs, bundle=""
    )


def _are_same(some: Sequence[Tool], others: Sequence[Tool]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def list_key(key: _ViewKey) -> ListKey:
    """A view as one list of the catalog."""
    workspace, bundle, lists = key
    return ("\0".join(("bundle", workspace, *bundle)), "\0".join(word for pair in lists for word in pair))


def replace_off(base: Tool, is_on: bool) -> Tool:
    """Disabled with its connector."""
    return base if is_on or not base.enabled else replace(base, enabled=False)


def show(bundle: Bundle, entry: BundleEntry, base: Tool) -> ShownEntry:
    """The tool as the bundle shows it, or why that cannot be."""
    name = entry.name or base.name
    if not entry.enabled:
        return ShownEntry(entry, name, base)
    shaped = _Shaped(base.definition.input_schema, entry.parameters)
    if shaped.faults:
        return ShownEntry(entry, name, base, problems=(*shaped.faults, *shaped.idle))
    own = base.definition
    definition = replace(
        own,
        original_name=name,
        title=own.title if entry.title is None else entry.title,
        description=own.description if entry.description is None else entry.description,
        input_schema=shaped.schema,
        annotations=shown_annotations(own.annotations, entry.annotations),
    )
    tool = replace(
        base,
        name=name,
        slug=bundle.name,
        is_mcp=True,
        definition=definition,
        fingerprint=definition.fingerprint,
        bundled=BundledTool(
            bundle=bundle.word,
            base=base,
            fixed=shaped.fixed,
            defaults=shaped.defaults,
            renamed=shaped.renamed,
            closed=shaped.closed,
            rules=bundle.rules,
        ),
    )
    return ShownEntry(entry, name, base, tool, tuple(shaped.idle))


class _Shaped:
    """A tool's schema as an override leaves it. `faults` make it useless; what is `idle` does no harm."""

    def __init__(self, schema: Schema, overrides: Mapping[str, ParameterOverride]) -> None:
        self.schema: Schema = schema
        self.fixed: dict[str, Json] = {}
        self.defaults: dict[str, Json] = {}
        self.renamed: dict[str, str] = {}
        self.closed: frozenset[str] = frozenset()
        self.faults: list[str] = []
        self.idle: list[str] = []
        self._own = schema
        properties, required = schema.get("properties"), schema.get("required")
        self._properties: dict[str, Any] = (
            dict(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else {}
        )
        self._required: list[str] = [*required] if isinstance(required, list) else []
        if overrides:
            self._apply(overrides)

    def _apply(self, overrides: Mapping[str, ParameterOverride]) -> None:
        shown, names = dict(self._properties), {name: name for name in self._properties}
        for parameter, override in overrides.items():
            if parameter not in self._properties:
                self._miss(parameter, override)
            elif override.is_hidden:
                self._hide(parameter, override)
                del shown[parameter], names[parameter]
            else:
                shown[parameter] = self._described(parameter, override)
                names[parameter] = override.name or parameter
        if len({*names.values()}) < len(names):
            doubled = sorted(name for name in names.values() if [*names.values()].count(name) > 1)
            self.faults.append(f"two of its parameters are called {doubled[0]!r}")
        self.renamed = {new: old for old, new in names.items() if new != old}
        self.closed = frozenset(self._properties) - frozenset(names.values())
        is_moved = bool(self.closed or self.renamed)
        if is_moved and b'"#/properties/' in orjson.dumps(dict(self._own)):
            self.faults.append("its schema refers to its own parameters, so none can be hidden or renamed")
        optional = {*self.fixed, *self.defaults}
        required = [names.get(one, one) for one in self._required if one not in optional]
        left_out = _TOGETHER if is_moved or self.defaults else frozenset[str]()
        self.schema = {name: value for name, value in self._own.items() if name not in left_out}
        self.schema |= {"properties": {names[one]: value for one, value in shown.items()}}
        if required or "required" in self.schema:
            self.schema |= {"required": required}

    def _miss(self, parameter: str, override: ParameterOverride) -> None:
        told = f"the tool has no parameter {parameter[:100]!r} any more"
        if override.is_hidden or override.has_default:
            # Without it a call would mean something else.
            self.faults.append(told)
        else:
            self.idle.append(told)

    def _hide(self, parameter: str, override: ParameterOverride) -> None:
        if override.has_value or override.has_default:
            value = override.value if override.has_value else override.default
            self._check(parameter, value)
            self.fixed[parameter] = value
        elif parameter in self._required:
            self.faults.append(f"the parameter {parameter[:100]!r} is required and is left without a value")

    def _described(self, parameter: str, override: ParameterOverride) -> Any:
        own: Any = self._properties[parameter]
        said: dict[str, Any] = {}
        if override.description is not None:
            said["description"] = override.description
        if override.has_default:
            self._check(parameter, override.default)
            self.defaults[parameter] = override.default
            said["default"] = override.default
        if not said:
            return own
        return {**(cast("Mapping[str, Any]", own) if isinstance(own, Mapping) else {}), **said}

    def _check(self, parameter: str, value: Json) -> None:
        """The value itself is nowhere told: a model may read why a call failed."""
        alone = {name: one for name, one in self._own.items() if name not in {"required", *_TOGETHER}}
        validator = compiled(alone).validator
        try:
            is_valid = validator is None or validator.is_valid({parameter: value})
        except TooMuchWork:
            is_valid = False
        if not is_valid:
            self.faults.append(f"the value of {parameter[:100]!r} is not what the tool's schema asks for")


def _without_rivals(entries: Sequence[ShownEntry]) -> ShownBundle:
    """Two tools with one name: neither can be called by it."""
    counts = Counter(one.name for one in entries if one.tool is not None)
    kept: list[ShownEntry] = []
    for one in entries:
        if one.tool is None or counts[one.name] == 1:
            kept.append(one)
        else:
            told = f"{counts[one.name]} tools of the bundle are called {one.name!r}"
            kept.append(replace(one, tool=None, problems=(told,)))
    tools = sorted((one.tool for one in kept if one.tool is not None), key=lambda tool: tool.name)
    return ShownBundle(tuple(tools), {tool.name: tool for tool in tools}, tuple(kept))


def _gone_connector(entry: BundleEntry) -> str:
    return f"the connector {entry.slug or entry.connector!r} is not there"


def _gone_tool(entry: BundleEntry, slug: str) -> str:
    return f"{slug!r} does not offer the tool {entry.tool[:100]!r} now"
