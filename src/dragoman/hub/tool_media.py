"""Pictures and sounds that tools bring in a run: kept for who reads its thread, and never for a model."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any

from dragoman.scope import Caller
from dragoman.store.protocols import CallStore
from dragoman.store.records import KeptResult
from dragoman.tool import ToolOutput

MEDIA_TYPES = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}
    | {"audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav", "audio/x-wav", "audio/webm", "audio/flac"}
)
"""What a browser shows and cannot be made to run: no SVG."""
_MOST = 8  # of one call
_LARGEST = 5_000_000


async def keep_media(output: ToolOutput, caller: Caller, rows: CallStore) -> tuple[Mapping[str, Any], ...]:
    """What is of no such type, is broken or too large is left out; the call itself is as it was."""
    kept: list[Mapping[str, Any]] = []
    for block in output.content if output.error is None else ():
        media_type, data = str(block.get("mimeType") or "").lower(), block.get("data")
        is_media = block.get("type") in ("image", "audio") and media_type in MEDIA_TYPES
        if (
            not is_media
            or not isinstance(data, str)
            or len(kept) == _MOST
            or len(data) > _LARGEST * 4 // 3 + 4
        ):
            continue
        try:
            body = b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            continue
        handle = f"result_{token_urlsafe(18)}"
        result = KeptResult(
            handle=handle,
            workspace=caller.workspace,
            user=caller.user,
            tool=output.metadata.original_name or "media",
            content_type=media_type,
            body=body,
            created_at=datetime.now(UTC),
        )
        await rows.keep_result(result)
        kept.append({"handle": handle, "media_type": media_type, "size": len(body)})
    return tuple(kept)
