"""Bundles as people handle them: create, look, choose tools, override, remove. Who may is decided here.

A bundle gives nobody a right: what it shows is called with the rights of whoever calls. Nothing is written
that would be broken at once; what a server breaks later is told and kept.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from dragoman.access.approvals import is_person
from dragoman.bundle import (
    EVERY_TOOL,
    MOST_BUNDLES,
    MOST_ENTRIES,
    Bundle,
    BundleEntry,
    BundleView,
    ToolOverride,
    checked_name,
)
from dragoman.catalog.bundles import ShownEntry
from dragoman.connector import Connector
from dragoman.errors import Conflict, Denied, DragomanError, InvalidArguments, LimitReached, NotFound
from dragoman.events import Event
from dragoman.formats import FoundBundle
from dragoman.hook_rule import HookRules
from dragoman.hub.bound import BoundService
from dragoman.hub.revisions import revised
from dragoman.names import alias_name, did_you_mean
from dragoman.scope import APP, BUNDLE, Caller

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

Tier = Literal["user", "workspace", "app"]
FILES = "files"
_HOOKS: TypeAdapter[tuple[str, ...]] = TypeAdapter(HookRules)
_LONGEST = {"title": 200, "description": 2_000, "instructions": 20_000}
_CHANGEABLE = (*_LONGEST, "view", "capabilities")
_WHOLE = ("tools", "resources", "hooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleDetails:
    """A bundle, and what became of each of its tools: for its owner, who may see what is fixed."""

    bundle: Bundle
    tier: Tier
    entries: tuple[ShownEntry, ...]
    connectors: Mapping[str, str]
    may_change: bool

    @property
    def tools(self) -> int:
        """How many can be called."""
        return sum(one.tool is not None for one in self.entries)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is broken, each with the tool that it is about."""
        return tuple(f"{self.label(one)}: {text}" for one in self.entries for text in one.problems)

    def label(self, one: ShownEntry) -> str:
        """How people name an entry: `github__create_issue`, or `github` for all that it has."""
        slug = self.connectors.get(one.entry.connector) or one.entry.slug or one.entry.connector
        tool = one.base.original_name if one.base is not None else one.entry.tool
        return slug if tool == EVERY_TOOL else alias_name(slug, tool)


class Bundles(BoundService):
    """A bundle is its user's, the workspace's (its admins') or the app's (who runs the installation)."""

    __slots__ = ()

    async def list(self) -> Sequence[BundleDetails]:
        """Those that the caller may use, by name."""
        return [self._details(one) for one in self._runtime.catalog.list_bundles(self._caller)]

    async def get(self, name: str) -> BundleDetails:
        """One bundle by its name. Raises `NotFound`."""
        return self._details(self.find(name))

    def find(self, name: str) -> Bundle:
        """The bundle alone; what the caller may not see does not exist."""
        name = name.removeprefix(BUNDLE)
        known = self._runtime.catalog.list_bundles(self._caller)
        if found := next((one for one in known if name in (one.name, one.word.removeprefix(BUNDLE))), None):
            return found
        raise NotFound(
            f"there is no bundle {name[:80]!r}",
            hint=did_you_mean(name[:80], [one.name for one in known])
            or "dragoman bundles list shows those there are",
        )

    async def create(
        self,
        name: str,
        tools: Iterable[str | Mapping[str, Any]] = (),
        *,
        tier: Tier = "user",
        title: str = "",
        description: str = "",
        instructions: str = "",
        view: BundleView | None = None,
        capabilities: Iterable[str] | None = None,
        resources: Iterable[str] = (),
        hooks: Iterable[str] = (),
    ) -> BundleDetails:
        """A new bundle of these tools.

            await hub.bundles.create("support", ["github", {"tool": "jira__create_issue", "name": "report"}])

        A tool is given by its name, all tools of a connector by the connector's; one with an override as a
        table with the name as `tool`. `resources` are connectors whose prompts and resources are in it too.
        `hooks` look at what passes by it, after all others.
        """
        await self._check_may_change()
        caller = self._caller
        workspace, owner = self._place(tier)
        settings = _checked(title=title, description=description, instructions=instructions, view=view)
        settings["hooks"] = self._hooks(hooks)
        bundle = Bundle(
            workspace=workspace,
            owner=owner,
            name=checked_name(name),
            capabilities=_words(capabilities),
            origin=FILES if caller.workspace == APP else "",
            resources=self._resources(resources, workspace, owner),
            **settings,
        )
        bundle = replace(bundle, tools=self._entries(bundle, tools))
        async with self._runtime.locks.of("bundles", workspace, owner):
            known = self._runtime.catalog.find_bundle(bundle.name, caller)
            if known is not None:
                raise Conflict(f"there is a bundle {name!r} already", hint="choose another name")
            self._check_fits(None, bundle)
            await self._write(bundle)
        await self._tell(bundle, "created")
        return await self.get(name)

    async def update(self, name: str, **settings: Any) -> BundleDetails:
        """Changes what is given: title, description, instructions, view, capabilities, tools, resources,
        hooks. Each of the last three takes the place of all that there was.
        """
        if unknown := settings.keys() - {*_CHANGEABLE, *_WHOLE}:
            raise InvalidArguments(
                f"a bundle has no {min(unknown)!r} to change",
                hint=f"there are: {', '.join((*_CHANGEABLE, *_WHOLE))}",
            )

        return await self._change(name, lambda before: self._with(before, settings))

    async def add(self, name: str, *tools: str) -> BundleDetails:
        """These tools too; a connector's name stands for all of its tools."""

        def change(before: Bundle) -> Bundle:
            known = {entry.key: entry for entry in before.tools}
            new = {entry.key: entry for entry in self._entries(before, tools, strict=True)}
            # What is there already keeps its override.
            fresh = (entry for key, entry in new.items() if key not in known)
            return replace(before, tools=(*known.values(), *fresh))

        return await self._change(name, change)

    async def drop(self, name: str, *tools: str) -> BundleDetails:
        """Without these, and without what was overridden of them."""

        def change(before: Bundle) -> Bundle:
            gone = {self._entry_of(before, tool).key for tool in tools}
            return replace(before, tools=tuple(one for one in before.tools if one.key not in gone))

        return await self._change(name, change)

    async def override(self, bundle: str, tool: str, /, **override: Any) -> BundleDetails:
        """How the bundle shows one of its tools, in the place of what was overridden of it before.

            await hub.bundles.override("support", "github__create_issue", name="report",
                                       parameters={"repo": {"value": "acme/support"}})

        Without anything the tool is as its server has it again.
        """
        said = _read(ToolOverride, override)

        def change(before: Bundle) -> Bundle:
            entry = self._overridden(before, tool)
            after = _read(
                BundleEntry,
                {"connector": entry.connector, "tool": entry.tool, "slug": entry.slug, **said.written()},
            )
            known = {one.key: one for one in before.tools}
            return replace(before, tools=(*{**known, after.key: after}.values(),))

        return await self._change(bundle, change)

    def described(self) -> Sequence[FoundBundle]:
        """The caller's own, as a file would describe them."""
        mine = (one for one in self._runtime.catalog.list_bundles(self._caller) if self._is_own(one))
        return [self._written(one) for one in mine]

    async def describe(self, found: FoundBundle) -> BundleDetails:
        """As a file says, in the place of what it was: what the file leaves out is as it is by default."""
        if self.find_own(found.name) is not None:
            return await self.update(found.name, **_whole(found))
        return await self.create(found.name, **_whole(found))

    def find_own(self, name: str) -> Bundle | None:
        """The caller's own of this name."""
        own = self._runtime.catalog.find_bundle(name, self._caller)
        return own if own is not None and self._is_own(own) else None

    def is_described(self, found: FoundBundle) -> bool:
        """Whether the caller has it just as a file says."""
        own = self.find_own(found.name)
        try:
            return own is not None and self._with(own, _whole(found)) == own
        except DragomanError:
            return False

    async def remove(self, name: str) -> None:
        """For good. Who was given it alone sees no tool from then on."""
        await self._check_may_change()
        found = self._changeable(name)
        async with self._runtime.locks.of("bundle", *found.key):
            await self._runtime.store.bundles.remove(*found.key)
            self._runtime.catalog.drop_bundle(*found.key)
        await self._tell(found, "removed")

    # Parts

    def _with(self, before: Bundle, settings: Mapping[str, Any]) -> Bundle:
        given = {key: value for key, value in settings.items() if key in _CHANGEABLE}
        after = replace(before, **_checked(**given))
        if "resources" in settings:
            own = self._resources(settings["resources"] or (), before.workspace, before.owner)
            after = replace(after, resources=own)
        if "hooks" in settings:
            after = replace(after, hooks=self._hooks(settings["hooks"] or (), before.hooks))
        if "tools" in settings:
            after = replace(after, tools=self._entries(before, settings["tools"] or ()))
        return after

    async def _change(self, name: str, change: Callable[[Bundle], Bundle]) -> BundleDetails:
        await self._check_may_change()
        found = self._changeable(name)

        async def changed(before: Bundle) -> Bundle:
            after = change(before)
            if after == before:
                return before
            self._check_fits(before, after)
            return replace(after, updated_at=datetime.now(UTC))

        async def read(before: Bundle) -> Bundle:
            newest = await self._runtime.store.bundles.find(*before.key)
            if newest is None:
                raise NotFound(f"the bundle {before.name!r} was removed meanwhile")
            return newest

        async with self._runtime.locks.of("bundle", *found.key):
            before, after = await revised(await read(found), changed, self._write, read)
        if after != before:
            await self._tell(after, "updated")
        return await self.get(name)

    async def _write(self, bundle: Bundle) -> None:
        if not await self._runtime.store.bundles.put(bundle, MOST_BUNDLES):
            raise LimitReached(
                f"there are {MOST_BUNDLES} bundles already", hint="make room: dragoman bundles remove"
            )
        self._runtime.catalog.put_bundle(replace(bundle, revision=bundle.revision + 1))

    def _check_fits(self, before: Bundle | None, after: Bundle) -> None:
        """What is set now must be right now; what a server broke since is no reason to refuse the rest."""
        if len(after.tools) > MOST_ENTRIES:
            raise LimitReached(
                f"a bundle has at most {MOST_ENTRIES:,} tools", hint="name connectors, or make two bundles"
            )
        catalog, caller = self._runtime.catalog, self._caller
        known = set[tuple[tuple[str, str], str]]()
        if before is not None:
            known = {(one.entry.key, text) for one in catalog.tried(before, caller) for text in one.problems}
        wrong = [
            f"{self._label(one)}: {text}"
            for one in catalog.tried(after, caller)
            for text in one.problems
            if one.base is not None and (one.entry.key, text) not in known
        ]
        if wrong:
            raise InvalidArguments(
                f"the bundle would be broken: {'; '.join(wrong[:5])}", hint="nothing was written"
            )

    def _label(self, one: ShownEntry) -> str:
        return one.base.name if one.base is not None else one.entry.tool

    def _entries(
        self, bundle: Bundle, tools: Iterable[str | Mapping[str, Any]], *, strict: bool = False
    ) -> tuple[BundleEntry, ...]:
        """By connector and own name. `strict`: a tool must be known now."""
        entries: dict[tuple[str, str], BundleEntry] = {}
        for one in tools:
            said = {"tool": one} if isinstance(one, str) else dict(one)
            connector, tool = self._named(said, strict=strict)
            self._check_tier(connector, bundle)
            facts = {key: value for key, value in said.items() if key not in ("connector", "tool", "slug")}
            entry = _read(
                BundleEntry, {"connector": connector.id, "tool": tool, "slug": connector.slug, **facts}
            )
            if entry.key in entries:
                raise InvalidArguments(
                    f"{one if isinstance(one, str) else said.get('tool')!r} is named twice"
                )
            entries[entry.key] = entry
        return tuple(entries.values())

    def _named(self, said: Mapping[str, Any], *, strict: bool) -> tuple[Connector, str]:
        """A connector and one of its tools, or all: by `connector` and `tool`, or by one name for both."""
        runtime, caller = self._runtime, self._caller
        name, where = said.get("tool", EVERY_TOOL), said.get("connector")
        if not isinstance(name, str) or not isinstance(where, str | None):
            raise InvalidArguments(
                "a tool of a bundle is named by text", hint="github__create_issue, or github"
            )
        if where is not None:
            return runtime.registry.get(where, caller), name
        found = runtime.catalog.find(name, caller)
        if found is not None and found.bundled is None:
            return runtime.catalog.connector_of(found), found.original_name
        if connector := runtime.registry.find(name, caller):
            return connector, EVERY_TOOL
        slug, mark, tool = name.partition("__")
        if mark and not strict and (connector := runtime.registry.find(slug, caller)):
            return connector, tool
        if mark and runtime.registry.find(slug, caller) is None:
            runtime.registry.get(slug, caller)  # says that there is no such connector
        raise runtime.catalog.unknown(name, caller)

    def _entry_of(self, bundle: Bundle, tool: str) -> BundleEntry:
        """One of its entries: by the tool's name in the bundle or of its own, or a connector's."""
        catalog, registry = self._runtime.catalog, self._runtime.registry
        for one in catalog.tried(bundle, self._caller):
            names = {one.name, one.entry.name, one.base.name if one.base else None}
            slugs = {one.entry.slug, one.entry.connector}
            if connector := registry.find_by_id(one.entry.connector):
                slugs |= {connector.slug, *connector.aliases}
            own = one.entry.tool
            names |= slugs if own == EVERY_TOOL else {alias_name(slug, own) for slug in slugs}
            if one.base is not None and own == EVERY_TOOL:
                names -= {one.name, one.base.name}
            if tool in names:
                return one.entry
        for entry in bundle.tools:  # a connector all of whose tools are named, or that has none
            if entry.tool == EVERY_TOOL and tool in (entry.slug, entry.connector):
                return entry
        raise NotFound(
            f"the bundle {bundle.name!r} has no tool {tool[:100]!r}",
            hint=f"dragoman bundles show {bundle.name}",
        )

    def _overridden(self, bundle: Bundle, tool: str) -> BundleEntry:
        """The entry of one tool; of a connector all of whose tools are in the bundle, a new one."""
        shown = self._runtime.catalog.show_bundle(bundle, self._caller)
        for one in shown.entries:
            if one.base is not None and tool in (
                one.name,
                one.base.name,
                alias_name(one.base.slug, one.base.original_name),
            ):
                return BundleEntry(
                    connector=one.entry.connector, tool=one.base.original_name, slug=one.entry.slug
                )
        entry = self._entry_of(bundle, tool)
        if entry.tool == EVERY_TOOL:
            raise InvalidArguments("an override is of one tool: name it", hint="CONNECTOR__TOOL")
        return entry

    def _is_own(self, bundle: Bundle) -> bool:
        return (bundle.workspace, bundle.owner) == (self._caller.workspace, self._caller.user)

    def _written(self, bundle: Bundle) -> FoundBundle:
        slug_of = self._runtime.registry.find_by_id
        settings: dict[str, Any] = {name: getattr(bundle, name) for name in (*_LONGEST, "view")}
        settings = {name: value for name, value in settings.items() if value}
        if bundle.capabilities is not None:
            settings["capabilities"] = sorted(bundle.capabilities)
        tools: list[dict[str, Any]] = []
        for entry in bundle.tools:
            connector = slug_of(entry.connector)
            slug = entry.slug or entry.connector if connector is None else connector.slug
            tools.append({**entry.written(), "connector": slug})
            tools[-1].pop("slug", None)
        settings["tools"] = tools
        if slugs := [connector.slug for one in bundle.resources if (connector := slug_of(one))]:
            settings["resources"] = slugs
        if bundle.hooks:
            settings["hooks"] = [*bundle.hooks]
        return FoundBundle(name=bundle.name, settings=settings)

    def _hooks(self, texts: Iterable[str], before: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Rules that can hold here; what was there already may have been made for another installation."""
        try:
            rules = _HOOKS.validate_python(tuple(texts), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            told = first["msg"].removeprefix("Value error, ")
            raise InvalidArguments(f"a hook of the bundle cannot be read: {told}") from None
        if rules != before:
            self._runtime.hooks.check_bundle(rules)
        return rules

    def _resources(self, connectors: Iterable[str], workspace: str, owner: str) -> tuple[str, ...]:
        found = [self._runtime.registry.get(one, self._caller) for one in connectors]
        place = Bundle(workspace=workspace, owner=owner, name="new")
        for one in found:
            self._check_tier(one, place)
        return tuple(dict.fromkeys(one.id for one in found))

    def _check_tier(self, connector: Connector, bundle: Bundle) -> None:
        """What others see holds nothing that is one user's, and what all see nothing of one workspace."""
        if (connector.owner and connector.owner != bundle.owner) or (
            connector.workspace not in (bundle.workspace, APP)
        ):
            whose = "everybody in the workspace" if bundle.workspace else "every workspace"
            raise InvalidArguments(
                f"the connector {connector.slug!r} is not there for {whose}",
                hint="make the bundle your own, or share the connector first",
            )

    def _place(self, tier: Tier) -> tuple[str, str]:
        caller = self._caller
        if tier == "user":
            return caller.workspace, caller.user
        if tier == "workspace":
            if not caller.is_admin:
                raise Denied("only an admin makes a bundle for the whole workspace", hint="make your own")
            return caller.workspace, ""
        if tier != "app":
            raise InvalidArguments("a bundle is for: user, workspace or app")
        if caller.role != "operator":
            raise Denied("only who runs the installation makes a bundle for all", hint="make your own")
        return APP, ""

    def _changeable(self, name: str) -> Bundle:
        found = self.find(name)
        if found.origin == FILES and self._caller.workspace != APP:
            raise Denied(f"the bundle {found.name!r} is described in the app's files", hint="change it there")
        if not self._may_change(found):
            raise Denied(f"the bundle {found.name!r} belongs to everybody", hint="ask an admin to change it")
        return found

    def _may_change(self, bundle: Bundle) -> bool:
        """Whoever may is told what is fixed, so no model and nobody who works in a bundle does."""
        caller = self._caller
        if caller.bundles or not is_person(caller):
            return False
        if bundle.owner or caller.role == "operator":
            return bundle.owner in ("", caller.user)
        return caller.is_admin and bundle.workspace == caller.workspace

    async def _check_may_change(self) -> None:
        """People only, and nobody who has less than their user: else a key could show itself more."""
        caller = self._caller
        if not is_person(caller):
            raise Denied("only a person changes bundles", hint="use a key of your own")
        if not caller.grants:
            return
        own = (await self._runtime.directory.of(caller)).user.capabilities
        if caller.bundles or any(grant != own for grant in caller.grants):
            raise Denied(
                "a key that is restricted changes no bundles",
                hint="use the console, or a key without capabilities of its own",
            )

    async def _tell(self, bundle: Bundle, what: str) -> None:
        tell_bundle(self._runtime, bundle.workspace, bundle.owner, bundle.name, what)
        details = {"tools": len(bundle.tools), "tier": _tier(bundle)}
        await self._runtime.auditor.done(self._caller, f"bundle.{what}", bundle.name, details=details)

    def _details(self, bundle: Bundle) -> BundleDetails:
        registry = self._runtime.registry
        found = {one: registry.find_by_id(one) for one in (*bundle.connectors, *bundle.resources)}
        shown = self._runtime.catalog.show_bundle(bundle, self._caller)
        return BundleDetails(
            bundle=bundle,
            tier=_tier(bundle),
            entries=shown.entries,
            connectors={key: one.slug for key, one in found.items() if one is not None},
            may_change=self._may_change(bundle),
        )


def tell_bundle(runtime: "Runtime", workspace: str, owner: str, name: str, what: str) -> None:
    """Whom it concerns: its user, or everybody."""
    data = {"name": name, "what": what}
    runtime.events.publish(Event(kind="bundle.changed", workspace=workspace, user=owner, data=data))


def chosen_source(runtime: "Runtime", name: str, caller: Caller) -> str:
    """A connector's slug, or the word of a bundle, as agents and threads keep it. `NotFound` for neither."""
    if name.startswith(BUNDLE):
        return Bundles(runtime, caller).find(name).word
    return runtime.registry.get(name, caller).slug


def check_clear(runtime: "Runtime", caller: Caller, sources: Iterable[str]) -> None:
    """`Conflict` where bundles that are chosen together show one name in two ways."""
    if rivals := runtime.catalog.rivals(caller.within(sources)):
        raise Conflict(f"not both can be chosen: {rivals[0]}", hint="rename it in one of them, or choose one")


def visible_sources(runtime: "Runtime", caller: Caller) -> set[str]:
    """All that could be chosen."""
    return {one.slug for one in runtime.registry.list(caller)} | {
        one.word for one in runtime.catalog.list_bundles(caller)
    }


def _tier(bundle: Bundle) -> Tier:
    return "user" if bundle.owner else "workspace" if bundle.workspace else "app"


def _whole(found: FoundBundle) -> dict[str, Any]:
    """All that can be set, as the file says it or by default."""
    texts: dict[str, Any] = dict.fromkeys(_LONGEST, "")
    return {**texts, "view": None, "capabilities": None, **dict.fromkeys(_WHOLE, ()), **found.settings}


def _read(kind: type[Any], facts: Mapping[str, Any]) -> Any:
    try:
        return kind.model_validate(facts)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        raise InvalidArguments(
            f"the override is not one: {where + ': ' if where else ''}{text}",
            hint="it has: name, title, description, enabled, annotations, parameters",
        ) from None


def _words(capabilities: Iterable[str] | None) -> frozenset[str] | None:
    if capabilities is None:
        return None
    words = frozenset(capabilities)
    if wrong := [one for one in words if not 0 < len(one) <= 200 or one.startswith(BUNDLE)]:
        raise InvalidArguments(f"{min(wrong)[:80]!r} is no capability of a bundle")
    return words


def _checked(**settings: Any) -> dict[str, Any]:
    """Texts that are not too long, a view that there is."""
    for name, most in _LONGEST.items():
        value: Any = settings.get(name, "")
        if value is None:
            settings[name] = ""
        elif not isinstance(value, str) or len(value) > most:
            raise InvalidArguments(f"the {name} of a bundle is a text of at most {most:,} characters")
    if settings.get("view") not in (None, "tools", "search"):
        raise InvalidArguments("the view of a bundle is tools or search", hint="or none: by what is deferred")
    if "capabilities" in settings:
        settings["capabilities"] = _words(cast("Iterable[str] | None", settings["capabilities"]))
    return settings
