"""What a server says with a 401 (`WWW-Authenticate`, RFC 6750 and RFC 9728). Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PARAMETER = re.compile(r'([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_BEARER = re.compile(r"(?:^|,\s*|\s)Bearer(?:\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Challenge:
    resource_metadata: str | None = None
    scopes: tuple[str, ...] = ()
    error: str | None = None


def challenge_of(headers: Iterable[str]) -> Challenge:
    """The Bearer challenge among the headers; an empty one where there is none."""
    for header in headers:
        if not (found := _BEARER.search(header[:8192])):
            continue
        words: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(header[found.start() : 8192]):
            words.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
        return Challenge(
            words.get("resource_metadata"), tuple(words.get("scope", "").split()), words.get("error")
        )
    return Challenge()
