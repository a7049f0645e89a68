"""What came of a call, as a page shows it: JSON, text, pictures. Pure; trusts nothing of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.console.formatting import pretty
from dragoman.tool import ToolOutput

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_LONGEST = 300_000


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """`kind` is text, picture, link or other; `text` what is shown, for a picture its address."""

    kind: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """`said` is what a server wrote as text beside a structured result, where it is not the same."""

    json: str
    pieces: tuple[OutputPiece, ...]
    is_cut: bool
    said: str = ""


def shown_output(output: ToolOutput) -> ShownOutput:
    """A result that is a text is not shown as JSON; what is said already is not shown once more as text."""
    text = output.result if isinstance(output.result, str) else None
    whole = "" if output.result is None or text is not None else pretty(output.result)
    told = output.error.message.strip() if output.error else None
    blocks = [block for block in output.content if not (whole and block.get("type") == "text")]
    pieces = [piece for block in blocks if (piece := _piece(block)).text.strip() != told]
    if text is not None and not any(piece.kind == "text" for piece in pieces):
        pieces.insert(0, OutputPiece("text", text))
    is_cut = len(whole) > _LONGEST or any(
        piece.kind == "text" and len(piece.text) > _LONGEST for piece in pieces
    )
    cut = tuple(
        OutputPiece(piece.kind, piece.text[:_LONGEST], piece.label) if piece.kind == "text" else piece
        for piece in pieces
    )
    return ShownOutput(whole[:_LONGEST], cut, is_cut, _said(output, whole)[:_LONGEST])


def _said(output: ToolOutput, whole: str) -> str:
    """Most servers write the JSON once more as text: that is said already."""
    texts = [str(block.get("text", "")) for block in output.content if block.get("type") == "text"]
    text = "\n".join(filter(None, map(str.strip, texts)))
    if not whole or not text or len(text) > _LONGEST:
        return ""
    try:
        return "" if pretty(json.loads(text)) == whole else text
    except ValueError:
        return text


def _piece(block: Mapping[str, Any]) -> OutputPiece:
    kind = block.get("type")
    media, data = str(block.get("mimeType") or ""), block.get("data")
    if kind == "text":
        return OutputPiece("text", str(block.get("text", "")))
    if kind == "image" and media in _PICTURES and isinstance(data, str) and _BASE64.fullmatch(data):
        return OutputPiece("picture", f"data:{media};base64,{data}", media)
    if kind == "resource_link":
        return OutputPiece(
            "link", str(block.get("uri", "")), str(block.get("title") or block.get("name") or "")
        )
    if isinstance(data, str):
        return OutputPiece("other", f"{kind}, {media or 'of no stated type'}, {len(data) * 3 // 4:,} bytes")
    return OutputPiece("other", pretty(dict(block))[:_LONGEST])
