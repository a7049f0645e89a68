"""What a file says, as values: connectors, agents, bundles, and what could not be read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman.agent import AgentProfile
from dragoman.errors import InvalidConfig
from dragoman.names import slug_from

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredInput:
    """A value that the file asks a person for."""

    name: str
    description: str = ""
    is_required: bool = True
    is_secret: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConnector:
    """One entry. `facts` are what `hub.connectors.add` takes; they may hold secrets, so they have no repr.

    `missing` names secrets that the entry had when it was written and that the file does not hold.
    `is_dragoman`: a client uses Dragoman by this entry.
    """

    name: str
    slug: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    enabled: bool = True
    facts: Table = field(default_factory=dict[str, Any], repr=False)
    needs: tuple[RequiredInput, ...] = ()
    missing: tuple[str, ...] = ()
    env_file: str | None = None
    warnings: tuple[str, ...] = ()
    is_dragoman: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgent(AgentProfile):
    """An agent as a file describes it. `connectors` are names as written.

    `auto_discover` is what a file of `agent_configs` says of the servers that are described inside it.
    """

    name: str
    auto_discover: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBundle:
    """A bundle as a file describes it: what `hub.bundles.create` takes beside its name."""

    name: str
    settings: Table = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProblem:
    """One entry that could not be read, and why. The others are not lost."""

    entry: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """Everything that one text says. `format` is how it was understood."""

    format: str
    source: str = ""
    connectors: tuple[FoundConnector, ...] = ()
    agents: tuple[FoundAgent, ...] = ()
    bundles: tuple[FoundBundle, ...] = ()
    problems: tuple[ImportProblem, ...] = ()
    warnings: tuple[str, ...] = ()


def not_taken(given: Table, known: Collection[str]) -> tuple[str, ...]:
    """A warning that names the keys of a table that mean nothing here."""
    unknown = sorted(key for key in given.keys() - {*known} if not key.startswith("$"))
    return (f"not taken over: {', '.join(key[:40] for key in unknown[:8])}",) if unknown else ()


def named(name: str) -> tuple[str, tuple[str, ...]]:
    """The slug for a name that people already use; the name itself stays an alias where it differs."""
    if not name.strip() or len(name) > 200:
        raise InvalidConfig("its name is empty or longer than 200 characters")
    slug = slug_from(name)
    return slug, () if slug == name else (name,)
