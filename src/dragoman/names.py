"""How things are called. Pure: knows no connector, no tool and no store.

A public tool name is looked up, never parsed. Two different (slug, tool) pairs never share one:
a slug has no underscore, so a name that was not changed has one reading, and a name that had to be
changed (illegal characters, too long) carries a hash of the pair it stands for.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from hashlib import sha256

from dragoman.errors import InvalidName

MAX_NAME = 64
MAX_SLUG = 40
_SLUG = re.compile(r"[a-z][a-z0-9-]*")
_LEGAL = re.compile(r"[A-Za-z0-9_-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_PUBLIC = re.compile(r"mcp_([a-z][a-z0-9-]*)_(.+)")
_HASHED = re.compile(r"_[0-9a-f]{8}(_|$)")


def check_slug(slug: str) -> str:
    """The slug itself, or `InvalidName` with a slug that would do."""
    if len(slug) <= MAX_SLUG and _SLUG.fullmatch(slug):
        return slug
    raise InvalidName(
        f"{slug[:80]!r} cannot be the name of a connector",
        hint=f"use a letter, then lower-case letters, digits and hyphens, at most {MAX_SLUG} in all;"
        f" {slug_from(slug)!r} would do",
    )


def slug_from(name: str) -> str:
    """The slug nearest to a name that people already use: `email_mcp` becomes `email-mcp`."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"c-{slug}".rstrip("-")
    return slug[:MAX_SLUG].rstrip("-")


def public_name(slug: str, tool: str, salt: int = 0) -> str:
    """`mcp_<slug>_<tool>`, at most 64 legal characters; one name for one pair, for ever.

    Eight hex digits can be made to collide; the catalog sees that and asks again with another salt.
    """
    name = f"mcp_{slug}_{tool}"
    # A tool whose own name looks hashed gets a hash too: else it could imitate one that was cut.
    if not salt and len(name) <= MAX_NAME and _LEGAL.fullmatch(name) and not _HASHED.search(name):
        return name
    pair = f"{slug}\0{tool}" if not salt else f"{slug}\0{tool}\0{salt}"
    digest = sha256(pair.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    legal = _ILLEGAL.sub("_", name)
    room = MAX_NAME - len(digest) - 2
    if len(legal) <= room + 1:
        return f"{legal}_{digest}"
    head = room * 2 // 3
    return f"{legal[:head]}_{digest}_{legal[len(legal) - (room - head) :]}"


def alias_name(slug: str, tool: str) -> str:
    """The other spelling that is accepted wherever a name is typed."""
    return f"{slug}__{tool}"


def dotted_name(name: str) -> str:
    """A public tool name as people read it, `email.send`."""
    found = _PUBLIC.fullmatch(name)
    return f"{found[1]}.{found[2]}" if found else name


def undotted_name(name: str) -> str:
    """The public name of what people read and type: `mcp_email_send`, which has no dot itself."""
    slug, dot, tool = name.partition(".")
    return f"mcp_{slug}_{tool}" if dot else name


def spellings(words: str) -> Sequence[str]:
    """What to look for in stored names when people type what they read: there `email.send` has no dot."""
    return [words, words.replace(".", "_", 1)] if "." in words else [words] if words else []


def did_you_mean(word: str, known: list[str]) -> str | None:
    """A hint that names the nearest known words, or None when nothing is near."""
    near = (
        get_close_matches(word, known, n=3, cutoff=0.6)
        or [candidate for candidate in known if len(word) > 2 and word.lower() in candidate.lower()][:3]
    )
    return f"did you mean {' or '.join(repr(name) for name in near)}?" if near else None
