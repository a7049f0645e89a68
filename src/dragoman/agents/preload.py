"""pydantic-ai, loaded whole by one thread before anybody uses a part of it.

It takes two seconds, so nobody loads it at start; and two threads that load different parts of it at once
see each other's halves.
"""

import os
from importlib import import_module

from dragoman import extras
from dragoman.loading import ONE_AT_A_TIME

_PARTS = ("pydantic_ai", "pydantic_ai.models", "pydantic_ai.providers", "pydantic_ai.toolsets")


def load() -> None:
    """Costs nothing once it is loaded. `NotInstalled` where the extra is missing."""
    extras.require("agents")
    with ONE_AT_A_TIME:
        os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
        for name in _PARTS:
            import_module(name)
