"""Who asks, what of it is allowed, and for whom a connection is held. Pure values and rules; no store."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

Way = Literal["direct", "agent", "code", "mcp"]
Isolation = Literal["shared", "user", "thread"]
Role = Literal["member", "admin", "operator"]
Deferral = Literal["auto", "always", "never"]


def _word(text: str) -> str:
    if text.isprintable() and not text.isspace():
        return text
    raise ValueError("a word is of printable characters")


Capability = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_word)]
"""As people give it; what it admits, `Caller.may_use` says."""

APP = ""  # the workspace of what the app gives to all
LOCAL_WORKSPACE = "local"
LOCAL_USER = "owner"
ANY_TOOL = "mcp_integration"
ANY_EXTRA = "*"
READ_ONLY = "read_only"
"""In a set of capabilities: of what the rest admits, only tools that say that they only read."""
BUNDLE = "bundle:"
"""`bundle:<name>` in a set of capabilities admits the tools of a bundle, as it shows them; `bundle:me/<name>`
those of the user's own.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: taken from the credential at the door and carried unchanged down the road.

    A member or admin belongs to a workspace; the operator is who runs the installation. Every set of
    capabilities in `grants` must admit a tool: the user's own, then the key's, the agent's, the call's.
    No set at all means no restriction. So whoever acts for a user can have less than the user, never more.
    `until` is when the key ends that it came with: no key that it makes lives longer. `manages`: what it came
    with is good for changing agents and connectors, so that an agent that works for it may, too. `key` is the
    API key, or what a client was allowed, that it came with: whose limits count, and whose yes holds.
    """

    workspace: str = LOCAL_WORKSPACE
    user: str = LOCAL_USER
    thread: str | None = None
    agent: str | None = None
    way: Way = "direct"
    role: Role = "member"
    grants: tuple[frozenset[str], ...] = ()
    until: datetime | None = None
    manages: bool = False
    key: str | None = None

    @property
    def is_admin(self) -> bool:
        """Whether it may change what belongs to the whole workspace."""
        return self.role != "member"

    @property
    def fingerprint(self) -> str:
        """The same for equal callers, in every process, and for no others."""
        grants = [sorted(grant) for grant in self.grants]
        until = self.until.timestamp() if self.until else None
        words = [self.workspace, self.user, self.thread, self.agent, self.way, self.role, grants, until]
        words.append(self.manages)
        if self.key is not None:
            words.append(self.key)
        return blake2b(json.dumps(words).encode(), digest_size=20).hexdigest()

    def narrowed(self, capabilities: Iterable[str]) -> "Caller":
        """The same caller with no more than these capabilities."""
        return replace(self, grants=(*self.grants, frozenset(capabilities)))

    def as_agent(self, name: str) -> "Caller":
        """What an agent of this name does for the caller: it may need a person's yes."""
        return replace(self, agent=name, way="agent" if self.way == "direct" else self.way)

    def limited_to(self, names: Iterable[str]) -> "Caller":
        """The same caller with no other tools or connectors than these."""
        return self.narrowed((*names, ANY_EXTRA))

    def within(self, sources: Iterable[str]) -> "Caller":
        """The same caller with no other connectors and bundles than these, as people name them."""
        return self.limited_to(map(source_word, sources))

    @property
    def bundles(self) -> tuple[str, ...]:
        """Words of the bundles whose tools may be within reach, beside or in the place of connectors."""
        return _bundles_in(self.grants) if self.grants else ()

    def may_use(
        self,
        slug: str,
        tool: str,
        required: frozenset[str] = frozenset(),
        *,
        only_reads: bool = False,
        bundle: str | None = None,
    ) -> bool:
        """`mcp_integration` admits any tool, `mcp_<slug>` those of a connector, its public name one tool.

        `only_reads`: that the tool changes nothing is known. `bundle` is the word of the one that shows it:
        what may use a tool as it is may use it as a bundle shows it, and not the other way round.
        """
        connector = f"mcp_{slug}"
        return all(
            (ANY_TOOL in grant or connector in grant or tool in grant or bundle in grant)
            and (only_reads or READ_ONLY not in grant)
            and (not required or ANY_EXTRA in grant or required <= grant)
            for grant in self.grants
        )

    @property
    def is_read_only(self) -> bool:
        return any(READ_ONLY in grant for grant in self.grants)

    def may_see(self, slug: str) -> bool:
        """Whether any tool of the connector can be within reach. A slug holds no underscore."""
        connector = f"mcp_{slug}"
        own_tools = f"{connector}_"
        return all(
            ANY_TOOL in grant or connector in grant or any(one.startswith(own_tools) for one in grant)
            for grant in self.grants
        )


def source_word(name: str) -> str:
    """The capability that admits the tools of a connector or, as `bundle:<name>`, of a bundle."""
    return name if name.startswith(BUNDLE) else f"mcp_{name}"


@lru_cache(maxsize=4096)
def _bundles_in(grants: tuple[frozenset[str], ...]) -> tuple[str, ...]:
    words = {word for grant in grants for word in grant if word.startswith(BUNDLE)}
    return tuple(sorted(words))


LOCAL_CALLER = Caller(role="operator", manages=True)
# Who asks where no credential is needed: in no workspace, with no right to anything.
NOBODY = Caller(workspace="-", user="-", grants=(frozenset(),))


def identity_of(caller: Caller, isolation: Isolation) -> str:
    """For whom a connection is held: the second half of its key. Never a header, never a token.

    The caller's words are percent-escaped, so that no choice of user and thread can imitate another.
    """
    if isolation == "shared":
        return f"workspace:{_escaped(caller.workspace)}"
    user = f"user:{_escaped(caller.workspace)}:{_escaped(caller.user)}"
    if isolation == "user" or caller.thread is None:
        return user
    return f"{user}:thread:{_escaped(caller.thread)}"


def holder_of(identity: str) -> tuple[str, str]:
    """Workspace and user of an identity; the user is empty where all of a workspace share."""
    kind, workspace, *rest = (_unescaped(word) for word in identity.split(":"))
    return (workspace, rest[0]) if kind == "user" else (workspace, "")


def holder_caller(identity: str) -> Caller:
    """Somebody with this identity and with no right at all: to hold a connection needs none."""
    _, workspace, *rest = (_unescaped(word) for word in identity.split(":"))
    user, *thread = rest or [""]
    return Caller(workspace=workspace, user=user, thread=thread[1] if thread else None, grants=(frozenset(),))


def _escaped(word: str) -> str:
    return word.replace("%", "%25").replace(":", "%3A")


def _unescaped(word: str) -> str:
    return word.replace("%3A", ":").replace("%25", "%")
