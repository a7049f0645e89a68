"""Whether a structured result is what its tool's output schema promised. Opens nothing.

A schema is compiled once per version of a tool; one that cannot be used checks nothing and is said.
"""

from dragoman.calls.argument_errors import complaint
from dragoman.catalog.schemas import CompiledSchema, TooMuchWork, compiled
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Connector
from dragoman.tool import RawResult, Tool


class OutputValidator:
    def __init__(self, max_schemas: int = 4096) -> None:
        self._max_schemas = max_schemas
        # Tools of several workspaces that are defined alike share one: nothing of a call may be in it.
        self._schemas: dict[str, CompiledSchema] = {}

    def check(self, tool: Tool, connector: Connector, raw: RawResult) -> tuple[str, ...]:
        """Warnings; where the connector is strict, what does not fit is no result and raises."""
        how = connector.configuration.output_check
        if tool.definition.output_schema is None or raw.is_error or how == "off":
            return ()
        flaw = self._flaw(tool, raw)
        if flaw is None:
            return ()
        if how == "warn":
            return (flaw,)
        fault = WireFault(
            "no_result",
            flaw,
            hint="the connector's output_check is strict: set it to warn to let such results through",
        )
        safe = tool.definition.annotations.is_safe_to_repeat
        raise fault.as_error(f"{connector.slug}/{tool.original_name}", safe)

    def _flaw(self, tool: Tool, raw: RawResult) -> str | None:
        if not raw.has_structured:
            # Only a server of MCP promises a structure beside its text.
            missing = "the result has no structured content, though the tool has an output schema"
            return missing if tool.is_mcp else None
        schema = self._schemas.get(tool.fingerprint) or self._compile(tool)
        if schema.validator is None:
            return f"the result was not checked: the tool's output schema is unusable: {schema.reason}"
        try:
            if schema.validator.is_valid(raw.structured):
                return None
        except TooMuchWork as why:
            return f"the result was not checked: {why}"
        told = complaint(schema.validator, raw.structured, "field")
        return f"the result does not fit the tool's output schema: {told}"

    def _compile(self, tool: Tool) -> CompiledSchema:
        schema = compiled(tool.definition.output_schema or {})
        if len(self._schemas) >= self._max_schemas:
            del self._schemas[next(iter(self._schemas))]
        self._schemas[tool.fingerprint] = schema
        return schema
