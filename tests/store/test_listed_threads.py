"""A user's threads as the store lists them: in order, a page at a time, by words."""

from datetime import UTC, datetime, timedelta

import pytest

from dragoman.people import Thread
from dragoman.run import Message
from dragoman.store.protocols import Store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def put(store: Store, name: str, minutes: int, **facts: object) -> None:
    when = NOON + timedelta(minutes=minutes)
    given = {"title": name, "created_at": when, "updated_at": when, **facts}
    await store.threads.put(Thread(id=name, workspace="acme", user="ann", **given))  # type: ignore[arg-type]


async def listed(store: Store, **facts: object) -> list[str]:
    return [one.id for one in await store.threads.list("acme", "ann", **facts)]  # type: ignore[arg-type]


async def test_pages_follow_each_other_without_a_gap(store: Store) -> None:
    for number in range(7):
        await put(store, f"t{number}", number // 2, pinned=number in (1, 4))
    whole = await listed(store)
    assert whole == ["t4", "t1", "t6", "t5", "t3", "t2", "t0"]
    pages: list[str] = []
    last: Thread | None = None
    while page := await store.threads.list("acme", "ann", 2, after=last and last.position):
        pages += [one.id for one in page]
        last = page[-1]
    assert pages == whole


async def test_pages_by_title_follow_each_other_without_a_gap(store: Store) -> None:
    for number, title in enumerate(["Rome", "athens", "rome", "", "Zürich", "Bern"]):
        await put(store, f"t{number}", number, title=title, pinned=title == "Zürich")
    whole = await listed(store, sort="title")
    assert whole == ["t4", "t3", "t1", "t5", "t2", "t0"]
    pages: list[str] = []
    last: Thread | None = None
    while page := await store.threads.list("acme", "ann", 1, after=last and last.position, sort="title"):
        pages += [one.id for one in page]
        last = page[-1]
    assert pages == whole


async def test_words_are_found_in_titles_and_messages_of_this_user_alone(store: Store) -> None:
    await put(store, "herons", 1, title="Grey Herons")
    await put(store, "other", 2)
    await put(store, "percent", 3, title="100% of_it")
    for user, thread, text in (("ann", "other", "where do HERONS nest"), ("bob", "percent", "herons")):
        message = Message(workspace="acme", user=user, thread=thread, author="agent", text=text)
        await store.threads.add_message(message)
    assert await listed(store, words="herons") == ["other", "herons"]
    assert await listed(store, words="0% of_") == ["percent"]
    assert await listed(store, words="%") == ["percent"]
    # Titles of all, messages of the newest.
    assert await listed(store, words="herons", among=2) == ["other", "herons"]
    assert await listed(store, words="herons", among=1) == ["herons"]


async def test_what_a_person_writes_moves_a_thread_up_and_what_will_be_removed_is_not_listed(
    store: Store,
) -> None:
    for number in range(3):
        await put(store, f"t{number}", number, remove_at=NOON if number == 2 else None)
    written = Message(
        workspace="acme",
        user="ann",
        thread="t0",
        author="person",
        text="hello",
        created_at=NOON + timedelta(hours=1),
    )
    await store.threads.add_message(written)
    assert await listed(store) == ["t0", "t1"]
    assert [one.id for one in await store.threads.list_due(NOON)] == ["t2"]
    assert await store.threads.list_due(NOON - timedelta(seconds=1)) == []
