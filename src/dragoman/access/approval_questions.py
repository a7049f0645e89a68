"""What a person is shown before they answer: the exact arguments, and the tool as it was at that time.

Kept sealed, bound to the question: arguments may hold anything, and a row moved elsewhere does not open.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from dragoman.store.records import Approval
from dragoman.tool import Annotations, Tool, json_bytes


class Sealer(Protocol):
    """Seals the arguments of a question, bound to where they are kept. The vault fills it."""

    def seal_bytes(self, value: bytes, *place: str) -> bytes: ...

    def open_bytes(self, sealed: bytes, *place: str) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """One call as it was asked for."""

    arguments: Mapping[str, Any] = field(repr=False)
    title: str | None
    description: str
    annotations: Annotations

    @classmethod
    def of(cls, tool: Tool, arguments: Mapping[str, Any]) -> "RequestedCall":
        definition = tool.definition
        return cls(
            arguments=arguments,
            title=definition.title,
            description=definition.description,
            annotations=definition.annotations,
        )

    def sealed(self, sealer: Sealer, workspace: str, user: str, approval_id: str) -> bytes:
        facts = {
            "arguments": self.arguments,
            "title": self.title,
            "description": self.description,
            "annotations": asdict(self.annotations),
        }
        return sealer.seal_bytes(json_bytes(facts), *_place(workspace, user, approval_id))

    @classmethod
    def opened(cls, sealer: Sealer, approval: Approval) -> "RequestedCall":
        place = _place(approval.binding.workspace, approval.binding.user, approval.id)
        # Not by orjson: it would round whole numbers over 64 bits, and the exact ones are to be shown.
        facts: dict[str, Any] = json.loads(sealer.open_bytes(approval.arguments, *place))
        marks = Annotations(**facts.pop("annotations"))
        return cls(**facts, annotations=marks)


def _place(workspace: str, user: str, approval_id: str) -> tuple[str, ...]:
    return ("approval", workspace, user, approval_id)
