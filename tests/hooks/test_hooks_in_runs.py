"""What hooks decide about the calls of a run is told where the run is shown."""

from pathlib import Path

import pytest

from dragoman.tool import Annotations
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import calls, open_scripted

pytestmark = pytest.mark.anyio
TOKEN = "ghp_" + "a1B2" * 9


async def test_what_hooks_decided_is_in_the_timeline_of_the_run(tmp_path: Path) -> None:
    def look(text: str) -> str:
        """Looks."""
        return f"here is {TOKEN}"

    def script(turn: Turn) -> Reply:
        wanted = [("look", {"text": "it"}), ("look", {"text": TOKEN})]
        return Reply(text="Done.") if turn.results else calls(*wanted)

    async with open_scripted(tmp_path, script, rollout_share=0.0, hooks=("secrets",)) as (hub, _):
        hub.add_tool(look, annotations=Annotations(read_only=True))
        accepted = await hub.messages.post("look at it")
        async for _ in hub.runs.follow(accepted.run.id):
            pass
        timeline = await hub.runs.timeline(accepted.run.id)
        made = [one.details for one in timeline.moments if one.kind == "call"]
        told = {(one["code"], *one.get("warnings", ())) for one in made}
        assert told == {(None, "secrets: masked GitHub token in the result"), ("hook_refused",)}
