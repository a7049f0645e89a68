"""`query_mcp_connector`: a whole job for one connector. What is asked, and the one form of its answer.

Values and rules only; who starts the run is another's business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dragoman.agents.work import ConnectorCard
from dragoman.errors import InvalidArguments
from dragoman.run import Run

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
        if len(facts["query"]) > _LONGEST or len(str(facts.get("context", ""))) > _LONGEST:
            raise InvalidArguments(f"a query has at most {_LONGEST:,} characters", hint="make it shorter")
        most = facts.get("max_tools", 10)
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_TOOLS:
            raise InvalidArguments(f"max_tools must be between 1 and {MOST_TOOLS}", hint="10 is usual")
        if not isinstance(facts.get("plan_only", False), bool):
            raise InvalidArguments("plan_only must be true or false")
        if "context" in facts:
            facts["context"] = str(facts["context"])
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


def find_card(name: str, cards: Sequence[ConnectorCard]) -> ConnectorCard | None:
    wanted = name.strip().casefold()
    for card in cards:
        if wanted in {card.id.casefold(), card.slug, *(alias.casefold() for alias in card.aliases)}:
            return card
    return None


def not_there(query: ConnectorQuery, cards: Sequence[ConnectorCard]) -> dict[str, Any]:
    known = ", ".join(card.slug for card in cards if card.state != "disabled") or "none"
    cause = f"there is no connector {query.connector_id[:80]!r}; there are: {known}"
    return failed(query.connector_id, "", "CONNECTOR_NOT_FOUND", cause)


def not_able(query: ConnectorQuery, card: ConnectorCard) -> dict[str, Any] | None:
    """Why its agent need not begin at all; None when it can."""
    if card.state == "disabled":
        cause = f"the connector {card.slug!r} is disabled"
        return failed(card.id, card.slug, "CONNECTOR_NOT_FOUND", cause, "dragoman connectors enable")
    if card.state == "needs_auth":
        cause = card.cause or f"the person has not authorised {card.slug!r}"
        hint = f"dragoman credentials authorize {card.slug}"
        return failed(card.id, card.slug, "MCP_ORCHESTRATION_FAILED", f"needs_auth: {cause}", hint)
    if card.state == "error":
        cause = f"{card.slug!r} cannot be reached: {card.cause or 'no answer'}"
        return failed(card.id, card.slug, "MCP_ORCHESTRATION_FAILED", cause, "it is tried again by itself")
    return None


def answered(card: ConnectorCard, run: Run) -> dict[str, Any]:
    """The form in which every door and every agent gets it."""
    outcome: Mapping[str, Any] = run.options.get("outcome") or {}
    used: Sequence[Mapping[str, Any]] = outcome.get("tools_used", ())
    metadata = {
        "connector_id": card.id,
        "connector_name": card.slug,
        "plan": outcome.get("plan", []),
        "tools_used": [*used],
        "contexts": outcome.get("contexts", []),
        "answer": run.answer,
        "usage": asdict(run.usage),
        "run": run.id,
    }
    if run.status == "done":
        if used and not any(one["ok"] for one in used):
            cause = f"every call failed, the last one with: {used[-1].get('message') or used[-1].get('code')}"
            return failed(card.id, card.slug, "TOOL_EXECUTION_FAILED", cause, metadata=metadata)
        return {"status": "success", "data": run.answer, "metadata": metadata}
    error: Mapping[str, Any] = run.error or {"message": run.status}
    cause, hint = str(error.get("message")), error.get("hint")
    return failed(card.id, card.slug, "MCP_ORCHESTRATION_FAILED", cause, hint, metadata=metadata)


def failed(
    connector_id: str,
    connector_name: str,
    code: ErrorCode,
    cause: str,
    hint: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": cause}
    if hint:
        error["hint"] = hint
    known = metadata or {"connector_id": connector_id, "connector_name": connector_name}
    return {"status": "error", "data": None, "error": error, "metadata": known}
