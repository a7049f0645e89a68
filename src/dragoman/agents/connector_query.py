"""`query_mcp_connector`: a whole job for one connector. What is asked, and the one form of its answer.

Values and rules only; who starts the run is another's business.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dragoman.agents.citations import all_failed, cited_in, sources_of
from dragoman.agents.model_errors import failure
from dragoman.agents.offers import ToolReply
from dragoman.agents.work_context import ConnectorCard
from dragoman.errors import InvalidArguments
from dragoman.hints import told
from dragoman.names import did_you_mean
from dragoman.run import Run, RunError

NAME = "query_mcp_connector"
ErrorCode = Literal["CONNECTOR_NOT_FOUND", "MCP_ORCHESTRATION_FAILED", "TOOL_EXECUTION_FAILED"]
MOST_TOOLS = 100
_LONGEST = 100_000
_OTHER_SPELLINGS = {"connectorId": "connector_id", "maxTools": "max_tools", "planOnly": "plan_only"}
DESCRIPTION = (
    "Hands a whole job to the agent of one connector, which knows its tools in full: it plans, calls them and"
    " answers with its sources. Call it several times in one step for several connectors."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "connector_id": {"type": "string", "description": "id or name of the connector"},
        "query": {"type": "string", "description": "the job, in full sentences, with all it needs to know"},
        "context": {"type": "string", "description": "what else its agent should know"},
        "max_tools": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_TOOLS,
            "default": 10,
            "description": "the most tool calls it may make",
        },
        "plan_only": {"type": "boolean", "default": False, "description": "only say what it would do"},
    },
    "required": ["connector_id", "query"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorQuery:
    """A question in plain language to one connector's agent."""

    connector_id: str
    query: str
    context: str | None = None
    max_tools: int = 10
    plan_only: bool = False

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> "ConnectorQuery":
        """`InvalidArguments` says what is wrong. `connectorId` and `maxTools` are accepted too."""
        facts = {_OTHER_SPELLINGS.get(name, name): value for name, value in arguments.items()}
        if unknown := facts.keys() - {"connector_id", "query", "context", "max_tools", "plan_only"}:
            raise InvalidArguments(f"{NAME} does not know {', '.join(sorted(unknown))}")
        facts = {name: value for name, value in facts.items() if value is not None}
        for name in ("connector_id", "query"):
            if not isinstance(facts.get(name), str) or not facts[name].strip():
                raise InvalidArguments(f"{name} is missing", hint=f"{NAME}(connector_id, query)")
        if not isinstance(context := facts.get("context", ""), str):
            facts["context"] = context = json.dumps(context, ensure_ascii=False, default=str)
        if max(len(facts["query"]), len(context)) > _LONGEST:
            raise InvalidArguments(f"a query has at most {_LONGEST:,} characters", hint="make it shorter")
        facts["max_tools"] = _number(facts.get("max_tools", 10))
        if not isinstance(facts.get("plan_only", False), bool):
            raise InvalidArguments("plan_only must be true or false")
        return cls(**facts)

    @property
    def options(self) -> dict[str, Any]:
        """What the run must know."""
        facts: dict[str, Any] = {"max_tools": self.max_tools}
        if self.context:
            facts["context"] = self.context
        if self.plan_only:
            facts["plan_only"] = True
        return facts


def _number(given: Any) -> int:
    """Models write 5.0 and "5" as well."""
    try:
        most = None if isinstance(given, bool) else int(given)
    except (TypeError, ValueError, OverflowError):
        most = None
    if most is None or not 1 <= most <= MOST_TOOLS:
        raise InvalidArguments(f"max_tools must be between 1 and {MOST_TOOLS}", hint="10 is usual")
    return most


def find_card(name: str, cards: Sequence[ConnectorCard]) -> ConnectorCard | None:
    wanted = name.strip().casefold()
    for card in cards:
        if wanted in {card.id.casefold(), card.slug, *(alias.casefold() for alias in card.aliases)}:
            return card
    return None


def not_there(query: ConnectorQuery, cards: Sequence[ConnectorCard]) -> dict[str, Any]:
    name = query.connector_id[:80]
    known = [card.slug for card in cards if card.state != "disabled"]
    hint = did_you_mean(name, known) or f"there are: {', '.join(known) or 'none'}"
    metadata = _connector(name, None)
    return _failed(metadata, "CONNECTOR_NOT_FOUND", "not_found", f"there is no connector {name!r}", hint)


def not_able(card: ConnectorCard) -> dict[str, Any] | None:
    """Why its agent need not begin at all; None when it can."""
    slug = card.slug
    match card.state:
        case "disabled":
            hint = f"dragoman connectors enable {slug}"
            return refused(
                card, "CONNECTOR_NOT_FOUND", "disabled", f"the connector {slug!r} is disabled", hint
            )
        case "needs_auth":
            why = f"the person must authorise {slug!r} first{_because(card)}"
            return refused(card, "MCP_ORCHESTRATION_FAILED", "needs_auth", why, card.command_hint)
        case "error":
            why = f"{slug!r} cannot be reached{_because(card)}"
            hint = "it is tried again by itself; answer without it"
            return refused(card, "MCP_ORCHESTRATION_FAILED", "connection_failed", why, hint)
        case _:
            if card.tools:
                return None
            why = f"{slug!r} offers no tool that you may call"
            return refused(card, "MCP_ORCHESTRATION_FAILED", "no_tools", why, "answer without it")


def refused(
    card: ConnectorCard, code: ErrorCode, cause: str, message: str, hint: str | None = None
) -> dict[str, Any]:
    """The answer where no run was begun."""
    metadata = _connector(card.id, card.slug)
    return _failed(metadata, code, cause, message, hint)


def answered(card: ConnectorCard, run: Run) -> dict[str, Any]:
    """The form in which every door and every agent gets it."""
    outcome: Mapping[str, Any] = run.options.get("outcome") or {}
    used: Sequence[Mapping[str, Any]] = outcome.get("tools_used", ())
    metadata = {
        **_connector(card.id, card.slug),
        "plan": outcome.get("plan", []),
        "tools_used": [*used],
        "toolsUsed": [one["tool"] for one in used],
        "contexts": outcome.get("contexts", []),
        "answer": run.answer,
        "usage": asdict(run.usage),
        "run": run.id,
    }
    if run.status != "done":
        error = run.error or RunError(code=run.status, message=f"the run was {run.status}")
        return _failed(metadata, "MCP_ORCHESTRATION_FAILED", error.code, error.message, error.command_hint)
    if all_failed(outcome):
        last = used[-1]
        message = f"every call failed, the last one with: {last.get('message') or last.get('code')}"
        return _failed(metadata, "TOOL_EXECUTION_FAILED", str(last.get("code")), message)
    return {"status": "success", "data": run.answer, "metadata": metadata}


def still_waiting(card: ConnectorCard, run: Run) -> dict[str, Any]:
    """The answer of a run that goes on alone once a person has answered."""
    metadata = {**_connector(card.id, card.slug), "run": run.id}
    message = "its agent waits for a person to approve or answer in Dragoman, and goes on by itself then"
    hint = f"later, make the same call with run={run.id!r} added: that has the answer and begins nothing anew"
    return _failed(metadata, "MCP_ORCHESTRATION_FAILED", "approval_pending", message, hint)


def told_of(answer: Mapping[str, Any]) -> ToolReply:
    """As the model reads it that asked: the answer once, and what it needs to cite it."""
    metadata: Mapping[str, Any] = answer["metadata"]
    if answer["status"] == "error":
        error = answer["error"]
        said = f"Its agent said:\n{metadata['answer']}" if metadata.get("answer") else ""
        return failure(error["code"], error["message"], error.get("hint"), cause=error["cause"], before=said)
    contexts = sources_of(metadata)
    cited = cited_in(answer["data"] or "")
    facts: dict[str, Any] = {
        "connector_id": metadata["connector_name"],
        "tools_used": metadata["toolsUsed"],
        "contexts": [
            {"id": one.id, "tool": one.tool, **({"uri": one.uri} if one.uri else {})}
            for one in contexts
            if one.id in cited
        ],
    }
    if failed := {one["tool"]: one["message"] for one in metadata["tools_used"] if not one["ok"]}:
        facts["failed"] = failed
    return ToolReply(
        content={"status": "success", "data": answer["data"], "metadata": facts}, contexts=contexts
    )


def _connector(connector_id: str, name: str | None) -> dict[str, Any]:
    """In both spellings that programs read."""
    return {
        "connector_id": connector_id,
        "connector_name": name,
        "connectorId": connector_id,
        "connectorName": name,
    }


def _failed(
    metadata: Mapping[str, Any], code: ErrorCode, cause: str, message: str, hint: str | None = None
) -> dict[str, Any]:
    """`cause` is the code of what went wrong in particular."""
    error = {"code": code, "cause": cause, "message": message, **({"hint": told(hint)} if hint else {})}
    return {"status": "error", "data": None, "error": error, "metadata": metadata}


def _because(card: ConnectorCard) -> str:
    return f": {card.cause}" if card.cause else ""
