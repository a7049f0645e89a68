"""Films the console for the README: `dragoman demo` in Chromium, as an animated WebP and two pictures.

    picture.py [FOLDER]    the folder docs unless said otherwise

Nothing is drawn by hand: a person's clicks in the real console, a picture after each, and the time that one
needs to read it. Run it with the Python of .venv; it needs Debian's chromium or chromium-headless-shell.
"""

import math
import os
import re
import struct
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize, expect, sync_playwright

DOCS = Path(__file__).parent.parent / "docs"
SIZE = ViewportSize(width=1180, height=760)
CHROMIUMS = ("/usr/bin/chromium", "/usr/bin/chromium-headless-shell")
_AS_WEBP = """async (png) => {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext("2d", { alpha: false }).drawImage(picture, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.9 });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}"""
_OF_A_PICTURE = (b"ALPH", b"VP8 ", b"VP8L")


@dataclass
class Film:
    """Pictures with the time that each is shown; one of a part is laid over what was there before."""

    page: Page
    frames: list[tuple[bytes, FloatRect, int]] = field(default_factory=list[tuple[bytes, FloatRect, int]])

    def shot(self, milliseconds: int, part: str = "body") -> None:
        box = self.page.locator(part).bounding_box()
        assert box is not None, part
        left, top = (math.floor(box[side] / 2) * 2 for side in ("x", "y"))  # as WebP tells places
        width = min(math.ceil(box["x"] + box["width"]), SIZE["width"]) - left
        height = min(math.ceil(box["y"] + box["height"]), SIZE["height"]) - top
        clip = FloatRect(x=left, y=top, width=width, height=height)
        self.frames.append((self.page.screenshot(clip=clip), clip, milliseconds))

    def type(self, text: str) -> None:
        for start in range(0, len(text), 4):
            self.page.locator("#message").press_sequentially(text[start : start + 4])
            self.shot(90, "#composer")
        self.shot(500, "#composer")

    def written(self, browser: Browser) -> bytes:
        """As an animated WebP: the browser makes a picture of each, here they are put into one file."""
        encoder = browser.new_page()
        size = three_bytes(SIZE["width"] - 1) + three_bytes(SIZE["height"] - 1)
        made = chunk(b"VP8X", b"\x02\0\0\0" + size) + chunk(b"ANIM", struct.pack("<IH", 0, 0))
        for png, clip, milliseconds in self.frames:
            webp = b64decode(encoder.evaluate(_AS_WEBP, b64encode(png).decode()))
            place = three_bytes(int(clip["x"]) // 2) + three_bytes(int(clip["y"]) // 2)
            place += three_bytes(int(clip["width"]) - 1) + three_bytes(int(clip["height"]) - 1)
            parts = (chunk(name, content) for name, content in chunks(webp) if name in _OF_A_PICTURE)
            made += chunk(b"ANMF", place + three_bytes(milliseconds) + b"\x02" + b"".join(parts))
        return b"RIFF" + struct.pack("<I", len(made) + 4) + b"WEBP" + made


def three_bytes(number: int) -> bytes:
    return struct.pack("<I", number)[:3]


def chunks(webp: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(b"RIFF....WEBP")
    while place < len(webp):
        (length,) = struct.unpack("<I", webp[place + 4 : place + 8])
        yield webp[place : place + 4], webp[place + 8 : place + 8 + length]
        place += 8 + length + length % 2


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def act(film: Film, docs: Path) -> None:
    """Asks what only reads, then for what changes something: that waits for a yes. Last, how it was done."""
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
    page.screenshot(path=docs / "chat.png")
    film.shot(2600)
    allow.hover()
    film.shot(500)
    allow.click()
    over(page)
    film.shot(3000)
    page.get_by_role("link", name="Open run").last.click()
    expect(page.locator("button.fall-row").first).to_be_visible()
    page.screenshot(path=docs / "run.png")
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


def main(docs: Path) -> None:
    program = next(path for path in CHROMIUMS if Path(path).exists())
    with demonstration() as link, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="dark")
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        page.goto(link)
        page.goto(f"{link.partition('/sign-in')[0]}/chat")
        film = Film(page)
        act(film, docs)
        made = film.written(browser)
        browser.close()
    file = docs / "pictures" / "console.webp"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(made)
    print(f"wrote {file}: {len(film.frames)} pictures, {len(made):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
