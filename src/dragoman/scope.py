"""Who asks, and for whom a connection is held. Pure values; knows nothing of stores or servers."""

from dataclasses import dataclass
from typing import Literal

Way = Literal["direct", "agent", "code", "mcp"]
Isolation = Literal["shared", "user", "thread"]

LOCAL_WORKSPACE = "local"
LOCAL_USER = "owner"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: taken from the credential at the door and carried unchanged down the road."""

    workspace: str = LOCAL_WORKSPACE
    user: str = LOCAL_USER
    thread: str | None = None
    agent: str | None = None
    way: Way = "direct"


LOCAL_CALLER = Caller()


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


def _escaped(word: str) -> str:
    return word.replace("%", "%25").replace(":", "%3A")
