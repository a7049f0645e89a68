"""What nodes tell each other of connections, as JSON: requests to who holds one, and what comes of them.

What cannot be read raises `KeyError`, `TypeError` or `ValueError`. No secret is among it: who holds a
connection reads them from the vault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, cast

from dragoman.connections.deadline import Deadline
from dragoman.connections.source import (
    ConnectionStatus,
    Listing,
    ServerNotice,
    ServerRequest,
    SourceCall,
    SourceChannel,
)
from dragoman.connector import Connector
from dragoman.errors import DragomanError, Internal
from dragoman.scope import Caller
from dragoman.store.later_fields import known_to
from dragoman.tool import Annotations, RawResult, Tool, ToolDefinition

Json = dict[str, Any]
_MOMENT = 0.2  # seconds that who holds it stops earlier: its words, which say more, arrive in time


def dump_target(connector: Connector, identity: str) -> Json:
    return {"connector": connector.id, "revision": connector.revision, "identity": identity}


@dataclass(frozen=True, slots=True)
class Target:
    """Which connection is meant. `revision` is that of the connector where it is asked for."""

    connector: str
    revision: int
    identity: str

    @classmethod
    def of(cls, body: Any) -> "Target":
        return cls(str(body["connector"]), int(body["revision"]), str(body["identity"]))


# Requests


def dump_call(call: SourceCall, identity: str) -> Json:
    tool, notes = call.tool, call.tool.definition.annotations
    facts: Json = {
        **dump_target(call.connector, identity),
        "tool": tool.name,
        "original": tool.original_name,
        "fingerprint": tool.fingerprint,
        "annotations": _dump_annotations(notes),
        "arguments": call.arguments,
        "deadline": _dump_deadline(call.deadline),
        "channel": _dump_channel(call.channel),
    }
    if call.connector.configuration.wire == "http":  # some of its arguments may be headers
        facts["schema"] = tool.definition.input_schema
    return facts


def load_call(
    body: Any, connector: Connector, caller: Caller, deadline: Deadline, channel: SourceChannel
) -> SourceCall:
    definition = ToolDefinition(
        original_name=str(body["original"]),
        input_schema=body.get("schema") or {"type": "object"},
        annotations=_load_annotations(body["annotations"]),
    )
    return SourceCall(
        connector=connector,
        tool=Tool(
            name=str(body["tool"]),
            workspace=connector.workspace,
            connector_id=connector.id,
            slug=connector.slug,
            definition=definition,
            fingerprint=str(body["fingerprint"]),
        ),
        arguments=_object(body["arguments"]),
        caller=caller,
        deadline=deadline,
        channel=channel,
    )


def dump_question(question: ServerRequest, identity: str) -> Json:
    return {
        **dump_target(question.connector, identity),
        "method": question.method,
        "params": question.params,
        "deadline": _dump_deadline(question.deadline),
        "channel": _dump_channel(question.channel),
    }


def load_question(
    body: Any, connector: Connector, caller: Caller, deadline: Deadline, channel: SourceChannel
) -> ServerRequest:
    return ServerRequest(
        connector=connector,
        method=str(body["method"]),
        params=_object(body["params"]),
        caller=caller,
        deadline=deadline,
        channel=channel,
    )


def load_deadline(body: Any) -> Deadline:
    left, seconds, longest = (float(one) for one in body["deadline"])
    return Deadline.of(max(left - _MOMENT, left / 2), seconds, longest)


def _dump_deadline(deadline: Deadline) -> Sequence[float]:
    return deadline.facts


def _dump_channel(channel: SourceChannel) -> Json:
    return {
        "capabilities": channel.capabilities,
        "inputs": channel.inputs,
        "retries": channel.retries,
        **({} if channel.task is None else {"task": channel.task}),
        **({"left": True} if channel.is_left else {}),
        **({"meta": channel.meta} if channel.meta else {}),
    }


# What came of them


def dump_result(result: RawResult) -> Json:
    return {
        "content": result.content,
        "structured": result.structured,
        "has_structured": result.has_structured,
        "is_error": result.is_error,
        "meta": result.meta,
        "attempts": result.attempts,
    }


def load_result(body: Any) -> RawResult:
    meta = body["meta"]
    return RawResult(
        content=tuple(_object(block) for block in body["content"]),
        structured=body["structured"],
        has_structured=bool(body["has_structured"]),
        is_error=bool(body["is_error"]),
        meta=None if meta is None else _object(meta),
        attempts=int(body["attempts"]),
    )


def dump_error(error: DragomanError) -> Json:
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.command_hint,
        "cause": error.cause,
        "retry_after": error.retry_after,
        "attempts": error.attempts,
    }


def load_error(body: Any) -> DragomanError:
    """Of the class that has this code; a code of a newer version is a fault that nobody foresaw."""
    made = _classes().get(str(body["code"]), Internal)
    error = made(
        str(body["message"]),
        hint=body.get("hint"),
        cause=body.get("cause"),
        retry_after=body.get("retry_after"),
    )
    error.attempts = int(body.get("attempts", 1))
    return error


def _classes(root: type[DragomanError] = DragomanError) -> dict[str, type[DragomanError]]:
    found: dict[str, type[DragomanError]] = {}
    for one in root.__subclasses__():
        found = {**_classes(one), **found}
        if "code" in vars(one):
            found[one.code] = one
    return found


def dump_listing(listing: Listing) -> Json:
    return {
        "tools": [
            {
                "name": tool.original_name,
                "title": tool.title,
                "description": tool.description,
                "input": tool.input_schema,
                "output": tool.output_schema,
                "annotations": _dump_annotations(tool.annotations),
                "meta": tool.meta,
            }
            for tool in listing.tools
        ],
        "era": listing.era,
        "instructions": listing.instructions,
        "server": listing.server,
        "skipped": listing.skipped,
    }


def load_listing(body: Any) -> Listing:
    return Listing(
        tools=tuple(
            ToolDefinition(
                original_name=str(tool["name"]),
                title=tool["title"],
                description=str(tool["description"]),
                input_schema=_object(tool["input"]),
                output_schema=tool["output"],
                annotations=_load_annotations(tool["annotations"]),
                meta=tool["meta"],
            )
            for tool in body["tools"]
        ),
        era=body["era"],
        instructions=body["instructions"],
        server=body["server"],
        skipped=tuple(body["skipped"]),
    )


def dump_status(status: ConnectionStatus) -> Json:
    facts = asdict(status)
    for name in ("next_attempt", "since"):
        facts[name] = facts[name].isoformat() if facts[name] else None
    return facts


def load_status(body: Any) -> ConnectionStatus:
    facts = {**_object(body)}
    for name in ("next_attempt", "since"):
        facts[name] = datetime.fromisoformat(facts[name]) if facts[name] else None
    facts["stderr"] = tuple(facts["stderr"])
    return known_to(ConnectionStatus, facts)


def dump_notice(connector: Connector, identity: str, notice: ServerNotice) -> Json:
    return {**dump_target(connector, identity), "kind": notice.kind, "uri": notice.uri}


def load_notice(body: Any) -> ServerNotice:
    return ServerNotice(body["kind"], str(body["uri"]))


def _dump_annotations(notes: Annotations) -> Sequence[bool | None]:
    return notes.read_only, notes.destructive, notes.idempotent, notes.open_world


def _load_annotations(notes: Any) -> Annotations:
    read_only, destructive, idempotent, open_world = (one if isinstance(one, bool) else None for one in notes)
    return Annotations(
        read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
    )


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return cast("Json", value)
