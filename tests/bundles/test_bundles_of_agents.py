"""Bundles in the place of connectors: a worker and a thread have the tools of a bundle and no others."""

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.errors import NotFound
from dragoman.scope import BUNDLE
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import calls, open_scripted

pytestmark = pytest.mark.anyio
REPORT = {"tool": "file_issue", "name": "report", "parameters": {"repo": {"value": "acme/support"}}}


async def test_a_worker_and_a_thread_with_a_bundle_have_its_tools_as_it_shows_them(tmp_path: Path) -> None:
    filed: list[tuple[str, str]] = []

    def file_issue(repo: str, title: str) -> str:
        """Files an issue in any repository."""
        filed.append((repo, title))
        return "filed"

    def drop_tables() -> str:
        """Drops all tables."""
        return "dropped"

    def script(turn: Turn) -> Reply:
        return Reply(text="Done.") if turn.results else calls(("report", {"title": "broken"}))

    async with open_scripted(tmp_path, script, rollout_share=0.0) as (hub, server):
        hub.add_tool(file_issue)
        hub.add_tool(drop_tables)
        await hub.bundles.create("support", [REPORT])
        with pytest.raises(NotFound, match="bundle"):
            await hub.agents.create("helper", connectors=["bundle:nothing"])
        helper = await hub.agents.create("helper", connectors=["bundle:support"], exposure="direct")
        assert helper.connectors == (f"{BUNDLE}me/support",)
        accepted = await hub.messages.post("@helper report it")
        async for event in hub.runs.follow(accepted.run.id):
            if event.kind == "approval.requested":
                await hub.approvals.answer(event.data["approval"], "once")
        assert (await hub.runs.get(accepted.run.id)).answer == "Done."
        assert filed == [("acme/support", "broken")]
        sent = str(server.requests)
        assert "report" in sent
        assert not any(word in sent for word in ("drop_tables", "acme/support", "file_issue"))

        thread = (await hub.threads.create(connectors=["bundle:support"])).thread.id
        here = await hub.threads.tools(thread)
        assert [info.tool.name for info in here.tools] == ["report"]
        inside = hub.acting_for(replace(hub.caller, thread=thread))
        assert (await inside.call("report", {"title": "again"})).ok
        for name in ("drop_tables", "file_issue"):
            assert not (await inside.call(name, {"repo": "x", "title": "y"})).ok
        assert filed[1:] == [("acme/support", "again")]
        await hub.bundles.remove("support")
        assert "bundle:me/support is gone" in (await hub.agents.view("helper")).notes
        assert not (await inside.call("report", {"title": "gone"})).ok
