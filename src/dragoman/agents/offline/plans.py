"""A plan where only a plan is wanted: the tools are then told in the instructions, not offered.

The steps are what matching would do; nothing is called.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

STATE = "state_plan"
_TOLD = re.compile(r"^- (\S{1,128}): ((?:.*\n)*?.*)\n {2}(\{.*\})$", re.M)


@dataclass(frozen=True, slots=True)
class ToldTool:
    """A tool that a text describes: of the instructions, or of what a search found."""

    name: str
    description: str | None
    parameters_json_schema: dict[str, Any]
    metadata: dict[str, Any] | None = None


def told_tools(instructions: str) -> list[ToldTool]:
    """`- name: description`, and its schema on the line below."""
    found: list[ToldTool] = []
    for name, description, schema in _TOLD.findall(instructions[:200_000]):
        try:
            found.append(ToldTool(name, description, orjson.loads(schema)))
        except orjson.JSONDecodeError:
            continue
    return found


def plan(tools: Sequence[str]) -> dict[str, Any]:
    """One step after the other: each may need what the one before brought."""
    steps = [
        {
            "tool": tool,
            "reason": "its name and description match the request",
            "depends_on": [number] if number else [],
        }
        for number, tool in enumerate(tools)
    ]
    return {"steps": steps}
