from dataclasses import FrozenInstanceError

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.scope import LOCAL_CALLER, Caller, identity_of

# Words that try to look like the seams between words.
words = st.text("ab:%253Athreadusr", min_size=0, max_size=12)
threads = st.one_of(st.none(), words)
callers = st.builds(Caller, workspace=words, user=words, thread=threads)


@given(callers, callers)
def test_two_threads_never_share_an_identity(one: Caller, other: Caller) -> None:
    assume((one.workspace, one.user, one.thread) != (other.workspace, other.user, other.thread))
    assert identity_of(one, "thread") != identity_of(other, "thread")


@given(callers, callers)
def test_two_users_never_share_an_identity(one: Caller, other: Caller) -> None:
    assume((one.workspace, one.user) != (other.workspace, other.user))
    assert identity_of(one, "user") != identity_of(other, "user")
    assert identity_of(one, "user") != identity_of(other, "thread")


@given(callers, callers)
def test_two_workspaces_never_share_an_identity(one: Caller, other: Caller) -> None:
    assume(one.workspace != other.workspace)
    assert identity_of(one, "shared") != identity_of(other, "shared")
    assert identity_of(one, "shared") not in (identity_of(other, "user"), identity_of(other, "thread"))


pieces = st.lists(st.sampled_from(["a", "", "%3A", "%25", "thread", "user", ":"]), min_size=3, max_size=6)


@given(pieces, st.data())
def test_words_cannot_be_chosen_so_that_their_seams_move(parts: list[str], data: st.DataObject) -> None:
    """The same letters, cut at two places: the strongest way to imitate somebody else."""

    def cut(place: int) -> Caller:
        return Caller(workspace=":".join(parts[:place]), user=":".join(parts[place:]))

    one = cut(data.draw(st.integers(1, len(parts) - 1)))
    other = cut(data.draw(st.integers(1, len(parts) - 1)))
    assume((one.workspace, one.user) != (other.workspace, other.user))
    assert identity_of(one, "user") != identity_of(other, "user")


@given(words, words)
def test_a_user_cannot_be_named_like_the_escaped_name_of_another(before: str, after: str) -> None:
    plain, escaped = Caller(user=f"{before}:{after}"), Caller(user=f"{before}%3A{after}")
    assert identity_of(plain, "user") != identity_of(escaped, "user")


@given(words, words)
def test_a_user_cannot_be_named_like_the_thread_of_another(user: str, thread: str) -> None:
    victim = Caller(user=user, thread=thread)
    assert identity_of(Caller(user=f"{user}:thread:{thread}"), "user") != identity_of(victim, "thread")


@given(callers)
def test_agent_and_way_do_not_change_the_identity(caller: Caller) -> None:
    by_agent = Caller(caller.workspace, caller.user, caller.thread, agent="mailer", way="agent")
    for isolation in ("shared", "user", "thread"):
        assert identity_of(by_agent, isolation) == identity_of(caller, isolation)


def test_without_a_thread_a_thread_connection_is_the_users() -> None:
    assert identity_of(LOCAL_CALLER, "thread") == identity_of(LOCAL_CALLER, "user")


def test_a_caller_cannot_be_changed_on_its_way() -> None:
    with pytest.raises(FrozenInstanceError):
        LOCAL_CALLER.user = "other"  # pyright: ignore[reportAttributeAccessIssue]
