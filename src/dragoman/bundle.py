"""Bundles: a named choice of tools over connectors, each shown as the bundle's owner wants it.

Values only: what they make of a tool is in `catalog/bundles.py`. An override is kept by the connector's id
and the server's own name for the tool, so neither a refresh nor a new name of the connector loses it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman.errors import InvalidName
from dragoman.hook_rule import BundleRules
from dragoman.names import MAX_NAME, MAX_SLUG, slug_from
from dragoman.scope import BUNDLE, Capability
from dragoman.tool import Annotations

BundleView = Literal["tools", "search"]
EVERY_TOOL = "*"
"""In the place of a tool's name: all that the connector has, also those to come."""
OWN = "me/"
"""Before the name, in a capability: the bundle of the user who asks."""
MOST_BUNDLES = 200
"""Of one user, of a workspace, and of the app."""
MOST_ENTRIES = 2_000
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_TOOL_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")
# Names by which views and code lead to tools, and the beginning of those that connectors give.
_RESERVED = frozenset({"search_tools", "call_tool", "describe_tool", "run_code", "query_mcp_connector"})
_PUBLIC = "mcp_"

Text = Annotated[str, Field(max_length=20_000)]
ParameterName = Annotated[str, Field(min_length=1, max_length=200)]


def checked_name(name: str) -> str:
    """The name of a bundle, or `InvalidName` with one that would do."""
    if len(name) <= MAX_SLUG and _NAME.fullmatch(name):
        return name
    raise InvalidName(
        f"{name[:80]!r} cannot be the name of a bundle",
        hint=f"use a letter, then lower-case letters, digits and hyphens, at most {MAX_SLUG} in all;"
        f" {slug_from(name)!r} would do",
    )


class _Override(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def written(self) -> dict[str, Any]:
        """As it was given: what nobody set is not there."""
        return self.model_dump(mode="json", exclude_unset=True)


class AnnotationOverride(_Override):
    """What is said of a tool in the place of what it says itself. Rights go by the stricter of both."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


class ParameterOverride(_Override):
    """One parameter, by the tool's own name for it.

    With a `value` it is hidden, and that is what is sent. `hidden` without one, it is not sent at all. A
    `default` is sent where the caller gives none.
    """

    name: ParameterName | None = None
    description: Text | None = None
    hidden: bool = False
    value: Any = None
    default: Any = None

    @property
    def has_value(self) -> bool:
        return "value" in self.model_fields_set

    @property
    def has_default(self) -> bool:
        return "default" in self.model_fields_set

    @property
    def is_hidden(self) -> bool:
        return self.hidden or self.has_value

    @model_validator(mode="after")
    def _fits(self) -> "ParameterOverride":
        if self.has_value and self.has_default:
            raise ValueError("a parameter has a fixed value or a default, not both")
        if self.is_hidden and (self.name is not None or self.description is not None):
            raise ValueError("a parameter that is hidden has neither a new name nor a description")
        return self


class ToolOverride(_Override):
    """What a bundle changes of one tool; what is left out is as the server has it."""

    name: str | None = None
    title: Text | None = None
    description: Text | None = None
    enabled: bool = True
    annotations: AnnotationOverride | None = None
    parameters: Mapping[ParameterName, ParameterOverride] = Field(
        default_factory=dict[str, ParameterOverride], max_length=500
    )

    @model_validator(mode="after")
    def _is_callable(self) -> "ToolOverride":
        name = self.name
        if name is None:
            return self
        if not _TOOL_NAME.fullmatch(name):
            raise ValueError(
                f"the name of a tool has letters, digits, _ and -, at most {MAX_NAME}: not {name[:80]!r}"
            )
        if name in _RESERVED or name.startswith(_PUBLIC):
            raise ValueError(f"{name!r} is a name that Dragoman gives itself: choose another")
        return self

    @property
    def changes_nothing(self) -> bool:
        return not self.model_fields_set & {*ToolOverride.model_fields}


class BundleEntry(ToolOverride):
    """One tool of a bundle, or every tool of a connector.

    `connector` is its id, `slug` how it was called when this was written: for people, where it is gone.
    `tool` is its server's own name.
    """

    connector: Annotated[str, Field(min_length=1, max_length=200)]
    tool: Annotated[str, Field(min_length=1, max_length=1_000)] = EVERY_TOOL
    slug: Annotated[str, Field(max_length=MAX_SLUG)] = ""

    @model_validator(mode="after")
    def _overrides_one(self) -> "BundleEntry":
        if self.tool == EVERY_TOOL and not self.changes_nothing:
            raise ValueError("an override is of one tool: name it")
        return self

    @property
    def key(self) -> tuple[str, str]:
        return (self.connector, self.tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A choice of tools under a name.

    `owner` is a user; empty, it is the workspace's, and without a workspace the app's. `view` is None where
    it depends on what is deferred. `capabilities` narrow what of the chosen tools is in it, as those of a key
    do. `resources` are connectors, by id, whose prompts and resources are in it too. `hooks` look at what
    passes by it, after those of the connector. What the app's files describe has the `origin` "files".
    """

    workspace: str
    owner: str
    name: str
    title: str = ""
    description: str = ""
    instructions: str = ""
    view: BundleView | None = None
    capabilities: frozenset[Capability] | None = None
    tools: tuple[BundleEntry, ...] = ()
    resources: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    origin: str = ""
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    revision: int = field(default=0, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.workspace, self.owner, self.name)

    @property
    def word(self) -> str:
        """The capability that admits its tools. One's own has another than a shared one of the same name:
        what an admin gave is never what a user made.
        """
        return f"{BUNDLE}{OWN}{self.name}" if self.owner else f"{BUNDLE}{self.name}"

    @property
    def rules(self) -> BundleRules:
        """Its hooks, with whose they are."""
        return BundleRules(self.hooks, "/".join(("bundle", *self.key)) if self.workspace else "")

    @property
    def connectors(self) -> Sequence[str]:
        """Ids of those that its tools come from, in order."""
        return [*dict.fromkeys(entry.connector for entry in self.tools)]


def shown_annotations(own: Annotations, override: AnnotationOverride | None) -> Annotations:
    """What a client is told."""
    if override is None:
        return own
    said = {name: getattr(override, name) for name in override.model_fields_set}
    return Annotations(
        read_only=said.get("read_only", own.read_only),
        destructive=said.get("destructive", own.destructive),
        idempotent=said.get("idempotent", own.idempotent),
        open_world=said.get("open_world", own.open_world),
    )
