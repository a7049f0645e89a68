"""Keeps the whole of a result that was cut, for the user who made the call."""

from datetime import UTC, datetime
from secrets import token_urlsafe

from dragoman.calls.outputs import ShapedResult, cut_note
from dragoman.scope import Caller
from dragoman.store.protocols import CallStore
from dragoman.store.records import KeptResult
from dragoman.telemetry.logs import get_logger
from dragoman.tool import Tool


class ResultKeeper:
    def __init__(self, rows: CallStore) -> None:
        self._rows = rows

    async def keep(self, shaped: ShapedResult, tool: Tool, caller: Caller) -> str | None:
        """Writes the whole, adds the last line to what is shown, and returns the handle.

        The call has already happened: when the store fails, the caller gets the part, and is told.
        """
        body = shaped.whole or b""
        shaped.whole = None
        handle: str | None = f"result_{token_urlsafe(18)}"
        try:
            await self._rows.keep_result(
                KeptResult(
                    handle=handle,
                    workspace=caller.workspace,
                    user=caller.user,
                    tool=tool.name,
                    content_type=shaped.whole_type,
                    body=body,
                    created_at=datetime.now(UTC),
                )
            )
        except Exception:  # noqa: BLE001
            # boundary: a store that fails must not turn a call that succeeded into one that failed
            get_logger().warning("result.not_kept", tool=tool.name, exc_info=True)
            handle = None
        shown = shaped.result if isinstance(shaped.result, str) else ""
        text = shown + cut_note(len(shown.encode()), len(body), handle)
        if shaped.result is None or shown:
            shaped.result = text.lstrip()
        shaped.content = ({"type": "text", "text": text.lstrip()}, *shaped.content)
        return handle
