"""Where a hint names a command, the console says it in plain words and links the page that does the same."""

import pytest

from dragoman.console.pages import linked


@pytest.mark.parametrize(
    ("hint", "link"),
    [
        ("dragoman agents list shows those there are", '<a href="/agents">Agents</a>'),
        ("enable it first: dragoman connectors enable mail", '<a href="/connectors/mail">mail</a>'),
        ("look at what changed (dragoman tools show mcp_a_b), then", '<a href="/tools/mcp_a_b">mcp_a_b</a>'),
        ("an API key opens it: dragoman keys add NAME", '<a href="/keys">API keys</a>'),
        ("dragoman connectors list shows those there are", '<a href="/connectors">Connectors</a>'),
    ],
)
def test_a_command_leads_to_its_page(hint: str, link: str) -> None:
    assert linked(hint).endswith(f" · {link}")
    assert "dragoman" not in linked(hint)


@pytest.mark.parametrize(
    "hint", [None, "", "wait <b>and</b> see", "dragoman doctor", "dragoman serve --port 1"]
)
def test_other_hints_stay_text(hint: str | None) -> None:
    assert "<a" not in linked(hint)
    assert "<b>" not in linked(hint)


def test_a_hint_brings_no_markup_of_its_own() -> None:
    assert "<script>" not in linked("<script>dragoman tools show x</script>")


def test_a_command_is_said_in_plain_words() -> None:
    assert linked("dragoman agents list shows those there are").startswith("the list of agents shows those")
    assert linked("dragoman whoami shows yours").startswith("your account shows")
