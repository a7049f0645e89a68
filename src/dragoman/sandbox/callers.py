"""Which tools code may call."""

from dragoman.tool import DEFAULT_CALLERS, Tool


def callable_from_code(tool: Tool, programmatic: bool) -> bool:
    """What somebody set holds; where nobody did, code calls what only reads, if the app wants that."""
    if tool.allowed_callers != DEFAULT_CALLERS:
        return "code" in tool.allowed_callers
    return programmatic and tool.definition.annotations.read_only is True
