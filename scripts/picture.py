"""Films the console for the README: `dragoman demo` in Chromium, written as an animated PNG.

    picture.py [FILE]    docs/pictures/console.png unless said otherwise

Nothing is drawn by hand: a person's clicks in the real console, a picture after each, and the time that one
needs to read it. Run it with the Python of .venv; it needs /usr/bin/chromium.
"""

import math
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import FloatRect, Page, ViewportSize, expect, sync_playwright

FILE = Path(__file__).parent.parent / "docs" / "pictures" / "console.png"
SIZE = ViewportSize(width=1100, height=700)
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass
class Film:
    """Pictures with the time that each is shown; one of a part is laid over what was there before."""

    page: Page
    frames: list[tuple[bytes, int, int, int]] = field(default_factory=list[tuple[bytes, int, int, int]])

    def shot(self, milliseconds: int, part: str = "body") -> None:
        box = self.page.locator(part).bounding_box()
        assert box is not None, part
        left, top = math.floor(box["x"]), math.floor(box["y"])
        width = min(math.ceil(box["x"] + box["width"]), SIZE["width"]) - left
        height = min(math.ceil(box["y"] + box["height"]), SIZE["height"]) - top
        clip = FloatRect(x=left, y=top, width=width, height=height)
        self.frames.append((self.page.screenshot(clip=clip), left, top, milliseconds))

    def type(self, text: str) -> None:
        for start in range(0, len(text), 4):
            self.page.locator("#message").press_sequentially(text[start : start + 4])
            self.shot(90, "#composer")
        self.shot(500, "#composer")

    def written(self) -> bytes:
        """As an animated PNG: the pictures of PNGs, each with its place and its time before it."""
        first = dict(chunks(self.frames[0][0]))
        made = _SIGNATURE + chunk(b"IHDR", first[b"IHDR"])
        made += chunk(b"acTL", struct.pack(">II", len(self.frames), 0))
        numbers = iter(range(10**6))
        for picture, left, top, milliseconds in self.frames:
            parts = list(chunks(picture))
            head = dict(parts)[b"IHDR"]
            assert head[8:] == first[b"IHDR"][8:], "a picture of another kind"
            place = struct.pack(">II", left, top)
            time = struct.pack(">HHBB", milliseconds, 1000, 0, 0)
            made += chunk(b"fcTL", struct.pack(">I", next(numbers)) + head[:8] + place + time)
            for name, content in parts:
                if name == b"IDAT" and picture is self.frames[0][0]:
                    made += chunk(b"IDAT", content)
                elif name == b"IDAT":
                    made += chunk(b"fdAT", struct.pack(">I", next(numbers)) + content)
        return made + chunk(b"IEND", b"")


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        yield png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        place += length + 12


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def act(film: Film) -> None:
    """Asks what only reads, then for what changes something: that waits for a yes."""
    page = film.page
    expect(page.locator("#message")).to_be_visible()
    film.shot(900)
    film.type("list the open issues assigned to octocat in repository xyne")
    send(film)
    film.shot(2600)
    film.type("post 'Looking into it' in #alerts")
    page.press("#message", "Enter")
    call = page.get_by_role("button", name="Call: Post a message")
    expect(call).to_be_visible()
    film.shot(1600)
    call.click()
    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_be_visible()
    film.shot(2600)
    allow.hover()
    film.shot(500)
    allow.click()
    over(page)
    film.shot(4000)


def send(film: Film) -> None:
    film.page.press("#message", "Enter")
    film.page.wait_for_url(re.compile(r"/chat/thr_"))
    over(film.page)


def over(page: Page) -> None:
    expect(page.locator(".turn").last).to_have_attribute("data-state", "done")
    expect(page.locator("#typing")).to_be_hidden()


@contextmanager
def demonstration() -> Generator[str]:
    """`dragoman demo` while the block runs; the link that signs in."""
    command = Path(sys.executable).with_name("dragoman")
    environment = os.environ | {"DRAGOMAN_MODEL": "offline"}
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(  # noqa: S603 - our own command
            [command, "demo", "--folder", folder], env=environment, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            told = ""
            while "Ctrl-C stops everything" not in told and (line := process.stdout.readline()):
                told += line
            yield next(iter(re.findall(r"http\S+/sign-in\?code=\S+", told)))
        finally:
            process.terminate()
            process.wait(30)


def main(file: Path) -> None:
    with demonstration() as link, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="dark")
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        page.goto(link)
        page.goto(f"{link.partition('/sign-in')[0]}/chat")
        film = Film(page)
        act(film)
        browser.close()
    file.write_bytes(film.written())
    print(f"wrote {file}: {len(film.frames)} pictures, {file.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
