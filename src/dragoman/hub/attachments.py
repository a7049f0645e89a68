"""Files that a person attaches to a message: checked, and kept for the user beside the message."""

import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any

from dragoman.errors import InvalidArguments
from dragoman.scope import Caller
from dragoman.store.protocols import CallStore
from dragoman.store.records import KeptResult

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MOST_ATTACHED = 10
_LONGEST_NAME = 200
_LARGEST_TEXT, _LARGEST_IMAGE, _LARGEST = 1_000_000, 5_000_000, 10_000_000


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as it is attached: text in UTF-8, or an image. Without `media_type` the name tells it."""

    name: str
    data: bytes
    media_type: str | None = None


async def keep_attachments(
    attachments: Sequence[Attachment], caller: Caller, rows: CallStore
) -> Sequence[Mapping[str, Any]]:
    """What the message and its run say of them: name, kind, size and handle. Checked before any is kept."""
    checked = [_checked(one) for one in attachments]
    if len(checked) > MOST_ATTACHED:
        raise InvalidArguments(f"{len(checked)} files are attached; {MOST_ATTACHED} are the most")
    if (size := sum(len(one.data) for one in checked)) > _LARGEST:
        raise InvalidArguments(f"the files have {size:,} bytes together; {_LARGEST:,} are the most")
    facts: list[Mapping[str, Any]] = []
    for one in checked:
        handle = f"result_{token_urlsafe(18)}"
        await rows.keep_result(
            KeptResult(
                handle=handle,
                workspace=caller.workspace,
                user=caller.user,
                tool="attachment",
                content_type=one.media_type or "",
                body=one.data,
                created_at=datetime.now(UTC),
            )
        )
        facts.append(
            {"name": one.name, "media_type": one.media_type, "size": len(one.data), "handle": handle}
        )
    return facts


def _checked(one: Attachment) -> Attachment:
    name = " ".join(one.name.split())
    if not name or len(name) > _LONGEST_NAME:
        raise InvalidArguments(f"a file needs a name of 1 to {_LONGEST_NAME} characters")
    kind = (one.media_type or mimetypes.guess_type(name)[0] or "").partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        if kind not in IMAGES or _kind_of_image(one.data) != kind:
            raise InvalidArguments(f"{name} is no image that models read: png, jpeg, gif and webp are")
        most = _LARGEST_IMAGE
    else:
        try:
            has_zero = "\0" in one.data.decode("utf-8")
        except UnicodeDecodeError:
            has_zero = True
        if has_zero:
            raise InvalidArguments(
                f"{name} is neither text in UTF-8 nor an image (png, jpeg, gif, webp)",
                hint="turn it into text first",
            )
        kind = kind or "text/plain"
        most = _LARGEST_TEXT
    if len(one.data) > most:
        raise InvalidArguments(f"{name} has {len(one.data):,} bytes; {most:,} are the most")
    return Attachment(name, one.data, kind)


def _kind_of_image(data: bytes) -> str | None:
    """By how it begins: a provider refuses what is not what it says."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
