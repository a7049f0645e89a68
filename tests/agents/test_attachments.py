"""Files beside a message: read with it and later in the thread; what no model can read is refused."""

import base64
import json
import re
import struct
import zlib
from pathlib import Path

import pytest

from dragoman import Attachment, Hub, InvalidArguments
from dragoman.settings import Settings
from dragoman.store import open_store
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import CLAUDE, MODEL, open_scripted

pytestmark = pytest.mark.anyio


def png() -> bytes:
    """One red dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    dot = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", dot) + chunk(b"IEND", b"")


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_a_model_reads_text_and_images_with_the_message_and_later(
    tmp_path: Path, model: str, database_url: str
) -> None:
    heard: list[str] = []

    def script(turn: Turn) -> Reply:
        heard.append(json.dumps(turn.request["messages"]))
        return Reply(text="seen")

    settings = {"database_url": database_url}
    async with open_scripted(tmp_path, script, model=model, **settings) as (hub, _):
        files = [Attachment("notes.txt", b"the word is heron"), Attachment("dot.png", png())]
        run = await hub.messages.ask("what is this?", attachments=files)
        await hub.ask("and again?", thread=run.thread)
        person = (await hub.messages.list(run.thread))[0]
        assert [(one["name"], one["media_type"]) for one in person.details["attachments"]] == [
            ("notes.txt", "text/plain"),
            ("dot.png", "image/png"),
        ]
        assert person.is_of_others, "a file holds more than the person's own words"
        kept = await hub.result(person.details["attachments"][0]["handle"])
        assert kept.body == b"the word is heron"
        timeline = await hub.runs.timeline(run.id)
        assert "heron" not in str(timeline)
    for request in heard:
        assert re.search(
            r"Attached file 1:\\n<data (\w+)>\\nnotes.txt\\n\\nthe word is heron\\n</data \1>", request
        )
        assert base64.b64encode(png()).decode() in request
    async with open_store(database_url) as store:
        steps = await store.runs.steps("local", run.id)
        assert "heron" not in str([step.content for step in steps]), "the journal does not repeat files"


async def test_the_offline_model_says_that_it_reads_no_files(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path, model="offline")) as hub:
        run = await hub.messages.ask("hi, what can you do?", attachments=[Attachment("a.txt", b"heron")])
        told = [event async for event in hub.runs.follow(run.id)]
        assert "the offline model reads no files" in str([one.data for one in told if one.kind == "notice"])
        assert "heron" not in str(told)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([Attachment("a.pdf", b"%PDF-1.7 \xff\xfe")], "neither text in UTF-8 nor an image"),
        ([Attachment("a.bin", b"a\0b")], "neither text in UTF-8 nor an image"),
        ([Attachment("a.png", b"<svg/>")], "no image that models read"),
        ([Attachment("a.svg", b"<svg/>")], "no image that models read"),
        ([Attachment("a", png(), "image/jpeg")], "no image that models read"),
        ([Attachment(" ", b"x")], "needs a name"),
        ([Attachment("a.txt", b"x")] * 11, "10 are the most"),
        ([Attachment("a.txt", b"x" * 1_000_001)], "1,000,000 are the most"),
    ],
)
async def test_what_no_model_reads_is_refused_before_anything_is_written(
    tmp_path: Path, files: list[Attachment], said: str
) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="no")) as (hub, model):
        with pytest.raises(InvalidArguments, match=said):
            await hub.messages.post("look", attachments=files)
        assert [*await hub.threads.list()] == []
        assert model.requests == []
