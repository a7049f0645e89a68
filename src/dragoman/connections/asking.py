"""A server of the 2025 era asks by itself, in the middle of a call: for whom it asks is found here.

Such a question does not say which call it belongs to. Where one client has calls under way it is asked;
where several have, nobody is: an answer must never come from the wrong person.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

from dragoman.connections.conversation import answered
from dragoman.tool import Line


class Asking:
    """The clients that have a request under way on one session."""

    def __init__(self) -> None:
        self._lines: list[tuple[Line, float]] = []

    @contextmanager
    def on_behalf_of(self, line: Line, deadline: float) -> Generator[None]:
        entry = (line, deadline)
        self._lines.append(entry)
        try:
            yield
        finally:
            self._lines.remove(entry)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        if len(self._lines) != 1 or self._lines[0][0].retries:
            return ElicitResult(action="decline")
        line, deadline = self._lines[0]
        asked: dict[str, Any] = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        asked.pop("_meta", None)
        return ElicitResult.model_validate(await answered(line, "elicitation/create", asked, deadline))
