"""Text of models and people as HTML: Markdown without raw HTML, and a sanitiser behind it. Trusts nobody."""

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_LONGEST = 200_000
_reader = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)


def rendered(text: str) -> Markup:
    """Images are left out: a picture from elsewhere would tell that place who reads this."""
    html = _reader.render(text[:_LONGEST])
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}, "code": set(), "td": set(), "th": set()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitised one line above
