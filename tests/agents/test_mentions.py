"""Who is meant by an at sign, and who is not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agents.mentions import Mention, Routing, mentions_in, route
from patience import patient

KNOWN = ["mailer", "tracker", "mailer-two", "email", "Email Agent", "Zoë", "straße", "邮差", "bot_1", "o"]


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("@mailer check my mail", ["mailer"]),
        ("please ask @mailer", ["mailer"]),
        ("@tracker and @mailer, then @tracker again", ["tracker", "mailer"]),
        ("@mailer,@tracker", ["mailer", "tracker"]),
        ("@mailer/@tracker", ["mailer", "tracker"]),
        ("@mailer&@tracker: both", ["mailer", "tracker"]),
        ("nobody here", []),
        ("", []),
        ("@", []),
        ("@ mailer", []),
        # case, composition, other scripts
        ("@MAILER now", ["mailer"]),
        ("@email agent, now", ["Email Agent"]),
        ("@zoë", ["Zoë"]),
        ("@ZOE\u0308 and on", ["Zoë"]),
        ("@STRASSE", ["straße"]),
        ("@邮差 你好", ["邮差"]),
        ("＠邮差：你好", ["邮差"]),
        ("请@mailer发邮件", ["mailer"]),
        ("@mailer에게 보내", ["mailer"]),
        ("@邮差员 你好", []),
        ("@mailer\u0301", []),
        ("@mailerа", []),  # a Cyrillic letter
        ("❤️@mailer", ["mailer"]),
        # the longest name wins, and a longer word is another word
        ("@mailer-two go", ["mailer-two"]),
        ("@mailer-three go", []),
        ("@email agent go", ["Email Agent"]),
        ("@email agents go", ["email"]),
        ("@mailer2", []),
        ("@mailers", []),
        ("@mailer_x", []),
        ("@bot_1.", ["bot_1"]),
        ("@bot", []),
        # punctuation
        ("(@mailer)", ["mailer"]),
        ("@mailer's inbox, @tracker’s list", ["mailer", "tracker"]),
        ("@mailer!", ["mailer"]),
        ("@mailer.", ["mailer"]),
        ("@mailer. Thanks", ["mailer"]),
        ("@mailer...and then", ["mailer"]),
        ("@mailer—please", ["mailer"]),
        ("@mailer: please\n@tracker: too", ["mailer", "tracker"]),
        ("**@mailer** _@tracker_", ["mailer", "tracker"]),
        ('"@mailer"', ["mailer"]),
        ("[@mailer](#x)", ["mailer"]),
        ("- @mailer\n-@tracker", ["mailer", "tracker"]),
        ("cc:@mailer", ["mailer"]),
        ("Thanks!@mailer", ["mailer"]),
        # addresses, handles, packages, paths
        ("write to test@mailer", []),
        ("a.b+c@mailer", []),
        ("test@mailer.com and @mailer.com", []),
        ("test.@mailer", []),
        ("x_@mailer", []),
        ("zoe\u0308@mailer", []),
        ('"john doe"@mailer', []),
        ("@mailer@example.social", []),
        ("@@mailer", []),
        ("npm install @mailer/core", []),
        ("src/@mailer/index.ts", []),
        ("key=@mailer", []),
        (r"\@mailer", []),
        ("git@tracker:repository.git", []),
        # URLs
        ("https://example.com/@mailer", []),
        ("see http://x.example/a?to=@mailer&cc=@tracker, @mailer", ["mailer"]),
        ("www.example.com/@mailer", []),
        ("mailto:@mailer", []),
        ("<https://x.example/@mailer>@tracker", ["tracker"]),
        ("https://x.example，@mailer", ["mailer"]),
        # code
        ("`@mailer`", []),
        ("use `a @mailer b` then @tracker", ["tracker"]),
        ("``a ` @mailer`` @tracker", ["tracker"]),
        ("a ` and @mailer", ["mailer"]),
        ("`@mailer", []),
        ("one `tick\n\n@mailer and another`", ["mailer"]),
        ("one `tick\n@mailer and` another", []),
        ("```\n@mailer\n```\n@tracker", ["tracker"]),
        ("```python\n@mailer\n```", []),
        ("~~~\n@mailer\n```\n@mailer\n~~~\n@tracker", ["tracker"]),
        ("````\n@mailer\n```\n@mailer\n````\n@tracker", ["tracker"]),
        ("@tracker look:\n```\n@mailer", ["tracker"]),
        ("~~~~\n@mailer\n~~~\n@tracker", []),
        ("- ```\n  @mailer\n  ```\n@tracker", ["tracker"]),
        ("```\r\n@mailer\r\n```\r\n@tracker", ["tracker"]),
        ("``` @mailer ``` @tracker", ["tracker"]),
        # quoted lines
        ("> @mailer wrote\n@tracker do it", ["tracker"]),
        ("> ```\n@tracker do it", ["tracker"]),
        ("2 > 1, @mailer", ["mailer"]),
        ("```\n> ```\n@mailer\n```\n@tracker", ["tracker"]),
    ],
)
def test_only_known_names_that_are_called_are_meant(text: str, agents: list[str]) -> None:
    routing = route(text, KNOWN)
    assert routing.agents == tuple(agents)
    assert routing.text == text


@pytest.mark.parametrize(
    ("text", "unknown", "suggestion"),
    [
        ("@mailr check my mail", "mailr", "did you mean 'mailer'"),
        ("  @MAILR, check", "MAILR", "did you mean 'mailer'"),
        ("@mailer.Please do", "mailer.Please", "did you mean 'mailer'"),
        ("@octocat's issues", "octocat", None),
        ("＠mailr", "mailr", "did you mean 'mailer'"),
        ("@octocat opened it, @tracker close it", "octocat", None),
        ("@mailer check", None, None),
        ("issues of @octocat", None, None),
        ("@types/node is broken", None, None),
        ("@ann@example.social wrote", None, None),
        ("`@mailr`", None, None),
        ("> @mailr", None, None),
        ("```\n@mailr", None, None),
        ("@ mailr", None, None),
        ("@", None, None),
        ("", None, None),
    ],
)
def test_a_message_that_begins_with_a_name_nobody_has_gets_a_hint(
    text: str, unknown: str | None, suggestion: str | None
) -> None:
    routing = route(text, KNOWN)
    assert routing.unknown == unknown
    assert (routing.suggestion or "").startswith(suggestion or "")
    assert (routing.suggestion is None) == (suggestion is None)


def test_mentions_say_where_they_stand_and_how_the_agent_is_registered() -> None:
    text = "Hi @MAILER, and (@email agent)"
    mentions = mentions_in(text, KNOWN)
    assert mentions == (Mention("mailer", 3, 10), Mention("Email Agent", 17, 29))
    assert [text[one.start : one.end] for one in mentions] == ["@MAILER", "@email agent"]


def test_of_two_names_that_differ_in_case_the_one_that_was_written_is_meant() -> None:
    assert route("@Ada @ADA @ada", ["ADA", "Ada"]).agents == ("Ada", "ADA")


def test_with_nobody_registered_everything_is_text() -> None:
    assert route("@mailer hello", []) == Routing((), "@mailer hello", None, "mailer")
    assert route("@ hello", [""]).agents == ()


PIECES = st.sampled_from(
    [*"@＠`~>./-_ \n'\"\\(),", "```", "~~~", "\r\n", "mailer", "tracker", "mailer-two", "a", "é", "邮差", "1",
     "https://", "www.", "x.com", "\u0308", "Email Agent"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60))
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,15}[a-z0-9]", fullmatch=True)


@pytest.mark.slow
@given(TEXTS)
def test_a_mention_is_a_sign_and_a_known_name_and_none_overlaps_another(text: str) -> None:
    end = 0
    for mention in mentions_in(text, KNOWN):
        assert mention.start >= end
        assert text[mention.start] in "@＠"
        assert mention.name in KNOWN
        end = mention.end
        assert end <= len(text)
    routing = route(text, KNOWN)
    assert routing.text == text
    assert len(set(routing.agents)) == len(routing.agents)
    assert routing.unknown is None or text.lstrip()[1:].startswith(routing.unknown)


@given(NAMES, st.sampled_from(["", " ", ", ", "! ", ": ", "'s ", ") ", "\n", "? ", "; ", "… "]), TEXTS)
def test_a_message_that_begins_with_a_known_name_goes_to_it_first(name: str, after: str, rest: str) -> None:
    text = f"@{name.upper()}{after}{rest if after else ''}"
    assert route(text, [name]).agents[:1] == (name,)
    assert route(text, [name]).unknown is None


@pytest.mark.slow
@given(
    st.from_regex(r"[A-Za-z0-9.+_-]{0,12}[A-Za-z0-9]", fullmatch=True), NAMES, st.sampled_from(["", ".com"])
)
def test_an_address_means_nobody(local: str, name: str, top: str) -> None:
    for text in (f"{local}@{name}{top}", f"write to <{local}@{name}{top}>, please", f"({local}@{name}{top})"):
        assert route(text, [name]).agents == ()


@given(TEXTS, st.sampled_from(["```", "~~~", "`````"]))
def test_nothing_in_a_fence_means_anybody(body: str, fence: str) -> None:
    lines = body.replace("\r", "\n").split("\n")
    inside = "\n".join(line for line in lines if line.strip().strip(fence[0]) or not line.strip())
    assert route(f"{fence} text\n{inside}", KNOWN).agents == ()
    assert route(f"{fence}\n{inside}\n{fence}\n@mailer", KNOWN).agents == ("mailer",)


@pytest.mark.slow
@given(TEXTS)
def test_nothing_between_backticks_means_anybody(body: str) -> None:
    inside = " ".join(body.replace("`", "").split())
    assert route(f"see `{inside} @mailer` there", KNOWN).agents == ()


@pytest.mark.parametrize(
    "piece",
    [
        "@mailer ",
        "@",
        "@x ",
        "a@",
        "`",
        "` ``",
        "```\n",
        "> @a\n",
        "a-",
        "http://",
        "\n",
        ".",
        " ",
        "@a.",
        "~~~a\n",
    ],
)
def test_a_megabyte_is_read_within_seconds(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    route(text, KNOWN)
    assert time.process_time() - began < patient(6)
