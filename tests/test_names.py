import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import InvalidName
from dragoman.names import MAX_NAME, MAX_SLUG, alias_name, check_slug, did_you_mean, public_name, slug_from

slugs = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
plain_tools = st.text("abcxyz_-0", min_size=1, max_size=80)
hashed_tools = st.from_regex(r"[ab_]{0,50}_[0-9a-f]{8}(|_|_tail)", fullmatch=True)
any_tools = st.text(min_size=1, max_size=100)
tools = st.one_of(plain_tools, hashed_tools, any_tools)


@given(slugs, tools, st.integers(0, 3))
def test_a_public_name_is_short_legal_and_stable(slug: str, tool: str, salt: int) -> None:
    name = public_name(slug, tool, salt)
    assert len(name) <= MAX_NAME
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert name == public_name(slug, tool, salt)


@given(slugs, tools, slugs, tools)
def test_two_tools_never_share_a_public_name(slug: str, tool: str, other_slug: str, other: str) -> None:
    assume((slug, tool) != (other_slug, other))
    assert public_name(slug, tool) != public_name(other_slug, other)


@given(st.one_of(slugs, st.from_regex(r"[a-z][a-z0-9-]{30,39}", fullmatch=True)), tools)
def test_a_tool_named_like_a_hashed_name_cannot_imitate_one(slug: str, tool: str) -> None:
    """The strongest imitation: a connector and a tool whose plain name is the victim's public name."""
    target = public_name(slug, tool)
    rest = target.removeprefix("mcp_")
    for place in (place for place, letter in enumerate(rest) if letter == "_"):
        imitation = (rest[:place], rest[place + 1 :])
        if re.fullmatch(r"[a-z][a-z0-9-]*", imitation[0]) and imitation[1] and imitation != (slug, tool):
            assert public_name(*imitation) != target


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    name = public_name("files", "read_" + "very_" * 20 + "last_line")
    assert name.startswith("mcp_files_read_very")
    assert name.endswith("last_line")
    assert len(name) == MAX_NAME


def test_an_unchanged_name_carries_no_hash() -> None:
    assert public_name("time", "get_current_time") == "mcp_time_get_current_time"


def test_a_salt_gives_another_name() -> None:
    assert len({public_name("time", "now", salt) for salt in range(5)}) == 5


@given(slugs, tools, slugs, tools)
def test_two_tools_never_share_an_alias(slug: str, tool: str, other_slug: str, other: str) -> None:
    assume((slug, tool) != (other_slug, other))
    assert alias_name(slug, tool) != alias_name(other_slug, other)


@given(st.text(max_size=100))
def test_the_slug_made_from_any_name_is_a_good_one(name: str) -> None:
    assert check_slug(slug_from(name)) == slug_from(name)


@pytest.mark.parametrize("slug", ["", "Time", "1time", "a_b", "a" * (MAX_SLUG + 1), "zeit\n", "-a"])
def test_a_bad_slug_is_refused_with_one_that_would_do(slug: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_slug(slug)
    assert slug_from(slug) in (caught.value.hint or "")


def test_a_name_that_people_already_use_becomes_a_slug() -> None:
    assert slug_from("email_mcp") == "email-mcp"
    assert slug_from("  My Server! ") == "my-server"
    assert slug_from("42") == "c-42"


def test_a_near_word_is_suggested_and_a_far_one_is_not() -> None:
    known = ["get_current_time", "convert_time", "read_file"]
    assert did_you_mean("get_curent_time", known) == "did you mean 'get_current_time'?"
    assert did_you_mean("FILE", known) == "did you mean 'read_file'?"
    assert did_you_mean("zzzzzz", known) is None
    assert did_you_mean("x", []) is None
