"""What agents, users, keys and workspaces are made with, for type checkers and completion.

Made by `scripts/settings_page.py` from their descriptions; a test keeps it so.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Literal, TypedDict

from dragoman.people import CallLimits


class LimitSettings(TypedDict, total=False):
    """Of UserLimits; None sets back."""

    calls_per_minute: int | None
    """How many tools may be called in a minute; more are refused."""

    calls_per_hour: int | None
    """The same for an hour."""

    tokens_per_day: int | None
    """What models may read and write in a day."""

    cost_per_day: float | None
    """What models and tools with a price may cost in a day."""

    max_concurrency: int | None
    """How many calls may be under way at once; more are refused."""

    max_connectors_per_thread: int | None
    """How many connectors one of a user's chats may have."""


class AgentSettings(TypedDict, total=False):
    """Of AgentProfile; None sets back."""

    description: str | None
    """Its job in one sentence; others choose it by that."""

    instructions: str | None
    """What it is told to do, and how."""

    model: str | None
    """What it thinks with, such as "openai:gpt-5"; none: the default."""

    fallbacks: list[str] | tuple[str, ...] | None
    """Models that step in when the first fails."""

    capabilities: Collection[str] | None
    """Tools, or beginnings of their names; unset: all that its user has."""

    connectors: list[str] | tuple[str, ...] | None
    """Whose tools it may use; a worker has those that it was given."""

    exposure: Literal["auto", "direct", "search", "delegate", "code"] | None
    """How its tools are shown to it."""


class UserSettings(TypedDict, total=False):
    """Of User; None sets back."""

    role: Literal["member", "admin"] | None
    """What they may manage."""

    capabilities: Collection[str] | None
    """What they may use: mcp_integration (all), mcp_<connector> or a tool's name."""

    is_active: bool | None
    """Whether they are let in."""

    limits: "CallLimits | LimitSettings | None"


class KeySettings(TypedDict, total=False):
    """Of ApiKey; None sets back."""

    scopes: Collection[Literal["read", "call", "manage", "approve", "admin"]] | None
    """What it may do."""

    capabilities: Collection[str] | None
    """What it may use of what its user may; unset: all of it."""

    way: Literal["direct", "agent", "mcp"] | None
    """Who acts with it; with agent and mcp it is a model, and approvals bind it."""

    expires_at: datetime | None
    """When it ends; unset: it does not."""

    limits: "CallLimits | LimitSettings | None"


class WorkspaceSettings(TypedDict, total=False):
    """Of Workspace; None sets back."""

    approval: Literal["never", "default", "always"] | None
    """When a person must say yes, for every tool that says nothing nearer."""

    recipes: bool | None
    """Whether runs that went well can be kept as recipes, which later runs get as an example."""

    hooks: list[str] | tuple[str, ...] | None
    """What looks at every call, result and list of its users, after the app's hooks."""

    model: str | None
    """Which language model answers where neither message nor agent names one; else the best."""

    keep_chats_days: int | None
    """Days after the last message when a chat that is not pinned is deleted; unset: never."""

    keep_calls_days: int | None
    """Days that records of its calls are kept, if less than in the whole installation."""

    keep_results_days: int | None
    """Days that large results and files are kept, if less than in the whole installation."""

    limits: "CallLimits | LimitSettings | None"


class PreferenceSettings(TypedDict, total=False):
    """Of Preferences; None sets back."""

    connectors: list[str] | tuple[str, ...] | None
    """The connectors of a new thread; unset: all."""

    auto_load: bool | None
    """Whether a new thread starts with them, or with none."""

    time_zone: str | None
    """Where today begins for one's agents; unset: where the browser is, else where Dragoman runs."""

    limits: "CallLimits | LimitSettings | None"
