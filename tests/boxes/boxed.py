"""What the tests of boxes share: the modes of this machine, and a hub with a hostile server."""

import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.connections.boxes import machine
from dragoman.hub import BoundHub
from dragoman.settings import Settings
from patience import patient
from servers import hubs

BY_ITSELF: Any = next(one.default for one in fields(Settings) if one.name == "box_programs")
PROGRAM = Path(__file__).with_name("hostile_program.py")


def needs(mode: str) -> None:
    """Skips by name what this machine cannot do."""
    missing = {way.mode: way.missing for way in machine.ways()}.get(mode)  # type: ignore[arg-type]
    if missing:
        pytest.skip(f"not on this machine: {mode}: {missing}")


def open_hub(home: Path, **settings: Any) -> AbstractAsyncContextManager[Hub]:
    """One as it is by itself: every program is boxed."""
    return hubs.open_hub(home, **{"box_programs": BY_ITSELF, **settings})


async def added(hub: BoundHub, name: str = "hostile", **facts: Any) -> None:
    view = await hub.connectors.add(
        name,
        command=sys.executable,
        args=["-S", "-E", str(PROGRAM)],
        connect_timeout=patient(20),
        approval="never",
        **facts,
    )
    assert view.status.state == "connected", (view.status.cause, view.status.stderr)


async def called(hub: BoundHub, tool: str, name: str = "hostile", **facts: Any) -> dict[str, Any]:
    output = await hub.call(f"mcp_{name}_{tool}", {"facts": facts})
    assert output.ok, output.error
    return output.result if isinstance(output.result, dict) else json.loads(str(output.result))
