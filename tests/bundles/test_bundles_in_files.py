"""Bundles in `dragoman.toml` and in exports: taken over, followed, written out and read again."""

from pathlib import Path

import pytest

from dragoman.errors import Denied
from dragoman.tool import Annotations
from patience import until
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
ONE = """
[bundles.reading]
title = "Reading"
instructions = "Only look."
hooks = ["size 300"]
tools = ["native__look", {tool = "native__write", name = "note", parameters = {place = {value = "here"}}}]

[bundles.broken]
tools = [{tool = "native__write", parameters = {place = {hidden = true}}}]

[bundles.odd]
tool = ["native"]
"""
TWO = ONE.replace("Only look.", "Look and note.").partition("[bundles.broken]")[0]


def look(query: str) -> str:
    """Looks."""
    return query


def write(place: str, text: str) -> str:
    """Writes."""
    return f"{text} {place}"


async def test_the_apps_file_has_bundles_and_they_follow_it(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("[connectors]\n")
    async with open_hub(tmp_path / "home", configuration=file) as hub:
        hub.add_tool(look, annotations=Annotations(read_only=True))
        hub.add_tool(write)
        file.write_text(ONE)
        await hub.configuration_files.sync()
        [details] = await hub.bundles.list()
        assert (details.bundle.name, details.tier, details.tools) == ("reading", "app", 2)
        assert details.bundle.instructions == "Only look."
        reasons = {step.name: step.reason for step in hub.configuration_files.problems}
        assert "left without a value" in reasons["broken"]
        assert "no field 'tool'" in reasons["odd"]
        output = await hub.in_bundle("reading").call("note", {"text": "x"})
        assert output.result == "x here"
        assert not (await hub.in_bundle("reading").call("note", {"text": "x" * 300})).ok
        with pytest.raises(Denied, match="files"):
            await hub.bundles.update("reading", title="Mine")
        file.write_text(TWO)
        await until(lambda: hub.bundles.find("reading").instructions == "Look and note.")
        file.write_text("[connectors]\n")

        async def is_gone() -> bool:
            return not await hub.bundles.list()

        await until(is_gone)


async def test_an_export_holds_bundles_and_importing_it_twice_changes_nothing(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "one") as hub:
        hub.add_tool(look, annotations=Annotations(read_only=True))
        hub.add_tool(write)
        parameters = {"place": {"value": "there"}, "text": {"name": "words"}}
        entry = {"tool": "write", "name": "note", "parameters": parameters}
        made = await hub.bundles.create(
            "mine", ["look", entry], capabilities=["mcp_native"], view="search", hooks=["secrets mask"]
        )
        text = await hub.exports.dragoman()
        for title, action in (("", "unchanged"), ("Other", "conflict")):
            await hub.bundles.update("mine", title=title)
            steps = await hub.imports.plan([text])
            assert [step.action for step in steps if step.kind == "bundle"] == [action]
        await hub.imports.apply([text], replace=True)
        assert (await hub.bundles.get("mine")).bundle.title == ""
    async with open_hub(tmp_path / "two") as hub:
        hub.add_tool(look, annotations=Annotations(read_only=True))
        hub.add_tool(write)
        [step] = [one for one in await hub.imports.apply([text]) if one.kind == "bundle"]
        assert (step.action, step.reason) == ("add", "")
        found = (await hub.bundles.get("mine")).bundle
        assert (found.tools, found.capabilities, found.view, found.hooks) == (
            *(made.bundle.tools, made.bundle.capabilities, made.bundle.view, ("secrets mask",)),
        )
        assert (await hub.in_bundle("mine").call("note", {"words": "x"})).result == "x there"
