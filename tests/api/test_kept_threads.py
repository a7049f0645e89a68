"""Threads over HTTP as a program keeps them: changed, branched, exported, removed and restored."""

from pathlib import Path

import pytest

from api.live import open_service

pytestmark = pytest.mark.anyio


async def test_a_thread_is_changed_branched_exported_removed_and_restored(tmp_path: Path) -> None:
    async with open_service(tmp_path, model="offline") as live:
        run = (await live.ask("POST", "/api/messages?wait=true", {"text": "first words"})).value["run"]
        thread = f"/api/threads/{run['thread']}"
        changed = (await live.ask("PATCH", thread, {"title": "Herons", "pinned": True})).value
        assert (changed["title"], changed["pinned"]) == ("Herons", True)

        branch = (await live.ask("POST", f"{thread}/branch", {"through": 1})).value
        copied = (await live.ask("GET", f"/api/threads/{branch['id']}/messages")).value["messages"]
        assert [(one["number"], one["text"], one["run"]) for one in copied] == [(1, "first words", None)]

        exported = (await live.ask("GET", f"{thread}/export?format=json")).value
        assert (exported["thread"]["title"], exported["messages"][0]["text"]) == ("Herons", "first words")
        text = (await live.ask("GET", f"{thread}/export")).body.decode()
        assert text.startswith("# Herons\n\n**You** · ")

        page = (await live.ask("GET", "/api/threads?limit=1")).value
        assert [one["title"] for one in page["threads"]] == ["Herons"]
        rest = (await live.ask("GET", f"/api/threads?after={page['next']}")).value
        assert ([one["id"] for one in rest["threads"]], rest["next"]) == ([branch["id"]], None)
        assert (await live.ask("GET", "/api/threads?after=nonsense")).status == 422

        assert (await live.ask("DELETE", f"{thread}?after=60")).status == 204
        assert [one["id"] for one in (await live.ask("GET", "/api/threads")).value["threads"]] == [
            branch["id"]
        ]
        assert (await live.ask("POST", f"{thread}/restore")).value["remove_at"] is None
        assert len((await live.ask("GET", "/api/threads?q=first+words")).value["threads"]) == 2
        assert (await live.ask("DELETE", thread)).status == 204
        assert (await live.ask("POST", f"{thread}/restore")).status == 404
