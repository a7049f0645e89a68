"""Which tools code may call."""

from dragoman.tool import DEFAULT_CALLERS, Tool


def callable_from_code(tool: Tool, programmatic: bool) -> bool:
    """What somebody set holds; where nobody did, code calls what only reads, if the app wants that."""
    return tool.is_open_to("code") and (programmatic or tool.allowed_callers != DEFAULT_CALLERS)
