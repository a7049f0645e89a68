"""What a tool costs a model that has it in view, in tokens; counted once for each version of it."""

from dragoman.tokens import count_tokens
from dragoman.tool import Tool, json_bytes

_MOST_KEPT = 100_000


class Footprints:
    """What tools cost in a prompt, in tokens, each counted once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], int] = {}

    def of(self, tool: Tool) -> int:
        """Of name, description and input schema: what every model is given of a tool."""
        key = (tool.name, tool.fingerprint or tool.definition.fingerprint)
        tokens = self._kept.get(key)
        if tokens is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            tokens = self._kept[key] = count_tokens(json_bytes(_as_read(tool)))
        return tokens


def _as_read(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.model_description,
        "inputSchema": tool.definition.input_schema,
    }
