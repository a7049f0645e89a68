"""The snippets of a page of documentation, and what a page says of those that nobody can run here.

A snippet that is only shown has a line above it that says why: `<!-- not run: needs an account -->`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>.+?) -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Snippet:
    """`why_not` says why it is not run; `line` is where it begins in its page."""

    language: str
    text: str
    line: int = 0
    why_not: str | None = None


def snippets(page: Path, *languages: str) -> list[Snippet]:
    """In the order of the page."""
    text = page.read_text(encoding="utf-8")
    found = [
        Snippet(one["language"], one["text"], text.count("\n", 0, one.start("text")), one["why"])
        for one in _FENCE.finditer(text)
    ]
    return [one for one in found if one.language in languages]


def command_lines(snippet: Snippet) -> list[str]:
    """Its lines that begin with `dragoman`, those that go on in the next one put together."""
    whole = snippet.text.replace("\\\n", " ")
    return [line.strip() for line in whole.splitlines() if line.strip().startswith("dragoman ")]
