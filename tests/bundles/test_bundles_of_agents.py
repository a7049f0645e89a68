"""Bundles in the place of connectors: a worker and a thread have the tools of a bundle and no others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import Conflict, NotFound
from dragoman.scope import BUNDLE
from servers.hubs import open_hub
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


async def test_two_bundles_that_show_one_name_are_not_given_together_and_no_call_chooses_one(
    tmp_path: Path,
) -> None:
    both = ["bundle:me/support", "bundle:me/sales"]
    async with open_hub(tmp_path) as hub:
        filed: list[str] = []

        @hub.tool
        def file_issue(repo: str, title: str) -> str:
            """Files an issue."""
            filed.append(repo)
            return "filed"

        def report(repo: str, name: str = "report") -> dict[str, Any]:
            return {"tool": "file_issue", "name": name, "parameters": {"repo": {"value": repo}}}

        await hub.bundles.create("support", [report("acme/support")])
        await hub.bundles.create("sales", [report("acme/sales", "offer")])
        await hub.agents.create("helper", connectors=both)
        thread = (await hub.threads.create(connectors=both)).thread.id
        inside = hub.acting_for(hub.caller.within(both))
        assert [one.name for one in inside.tools.list()] == ["offer", "report"]
        # It is clear until one of them is changed.
        await hub.bundles.override(
            "sales", "offer", name="report", parameters={"repo": {"value": "acme/sales"}}
        )
        told = "the bundles sales and support both show a tool 'report'"
        assert inside.tools.list() == []
        assert [hit.tool.name for hit in (await inside.tools.search("file an issue")).hits] == []
        output = await inside.call("report", {"title": "x"})
        assert output.error is not None
        assert (output.error.code, told in output.error.message, filed) == ("conflict", True, [])
        assert told in (await hub.agents.view("helper")).notes
        assert told in (await hub.threads.get(thread)).notes
        for given in (
            hub.agents.create("second", connectors=both),
            hub.threads.create(connectors=both),
            hub.people.add_key("both", capabilities=both),
        ):
            with pytest.raises(Conflict, match="both show a tool 'report'"):
                await given
        # What two show alike is one tool.
        await hub.bundles.override(
            "sales", "report", name="report", parameters={"repo": {"value": "acme/support"}}
        )
        assert (await inside.call("report", {"title": "x"})).ok
        assert filed == ["acme/support"]
        await hub.threads.create(connectors=both)
