"""A hub with its doors on a real socket, and people who sit before it in a real Chromium.

Whatever a browser complains of (errors, policy, a request that leaves this machine) is collected.
"""

import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from api.live import Live, open_service
from dragoman import Hub
from patience import patient

# Without a window of its own it takes a quarter of the processor time; what it shows is the same.
_SHELL, _WHOLE = Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")
CHROMIUM = _SHELL if _SHELL.exists() else _WHOLE
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Four pictures of a page take as long as the page; no test looks at them.
PICTURES_WANTED = os.environ.get("TEST_PICTURES") == "1"
PICTURES = Path(__file__).parents[2] / "build" / "console"
WIDE, NARROW = (1280, 800), (390, 800)
SCOPES = ("read", "call", "manage", "approve", "admin")
_HERE = ("127.0.0.1", "localhost", "")


class Console:
    """`page` opens a page as somebody: who runs the service, or the user of a key."""

    def __init__(self, live: Live, browser: Browser, stack: AsyncExitStack) -> None:
        self.live = live
        self.hub: Hub = live.hub
        self.url = live.url
        self.complaints: list[str] = []
        self._browser = browser
        self._stack = stack
        self._forgiven: list[re.Pattern[str]] = []

    async def page(self, path: str = "/", *, key: str | None = None, **options: Any) -> Page:
        """A browser of its own, signed in and at `path`; `options` are those of Playwright's new_context."""
        context = await self.context(key=key, **options)
        page = await context.new_page()
        await page.goto(self.url + path)
        return page

    async def context(self, *, key: str | None = None, **options: Any) -> BrowserContext:
        """Signed in; pages of the same one are tabs of the same browser."""
        facts: dict[str, Any] = {
            "viewport": {"width": WIDE[0], "height": WIDE[1]},
            "color_scheme": "dark",
            **options,
        }
        context = await self._browser.new_context(**facts)
        self._stack.push_async_callback(context.close)
        context.set_default_timeout(patient(10_000))
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("request", self._look)
        await self._sign_in(context, key)
        return context

    def forgive(self, pattern: str) -> None:
        """What a test provokes: complaints that match are none."""
        self._forgiven.append(re.compile(pattern))

    def left(self) -> Sequence[str]:
        """Complaints that nobody forgave."""
        return [one for one in self.complaints if not any(known.search(one) for known in self._forgiven)]

    async def picture(self, page: Page, name: str) -> None:
        """How it looks at both widths, light and dark, for a person to see (TEST_PICTURES=1)."""
        if not PICTURES_WANTED:
            return
        PICTURES.mkdir(parents=True, exist_ok=True)
        before = page.viewport_size
        for width, height in (WIDE, NARROW):
            await page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                await page.screenshot(path=PICTURES / f"{name}_{width}_{scheme}.png")
        if before is not None:
            await page.set_viewport_size(before)

    async def add_user(self, name: str, *, role: str = "member", scopes: Sequence[str] = SCOPES) -> str:
        """A user of the operator's workspace, and a key that signs them in (`multi_user=True`)."""
        workspace = self.hub.caller.workspace
        await self._made("/api/users", name=name, role=role, workspace=workspace)
        facts = {"name": f"of-{name}", "user": name, "workspace": workspace, "scopes": [*scopes]}
        return (await self._made("/api/keys", **facts))["key"]

    async def _made(self, path: str, **facts: Any) -> Any:
        reply = await self.live.ask("POST", path, facts)
        assert reply.status == 201, reply.body
        return reply.value

    async def _sign_in(self, context: BrowserContext, key: str | None) -> None:
        """By a link that works once, like the one that `serve` prints."""
        sessions = self.live.doors.sessions
        code = await sessions.make_link(key or self.live.token, self.live.hub.caller)
        page = await context.new_page()
        await page.goto(f"{self.url}/sign-in?code={code}")
        await page.wait_for_selector("#side", state="attached")
        await page.close()

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _look(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in _HERE and not request.url.startswith(("data:", "blob:")):
            self.complaints.append(f"outside: {request.url[:200]}")


async def keep_texts(page: Page, selector: str) -> None:
    """From now on the page keeps every text of this element, also one that is soon gone: see `kept_texts`."""
    await page.evaluate(
        """selector => {
            window.keptTexts = [];
            const keep = () => {
                const text = document.querySelector(selector)?.textContent ?? "";
                if (text !== keptTexts.at(-1)) keptTexts.push(text);
            };
            const changes = {subtree: true, childList: true, characterData: true};
            new MutationObserver(keep).observe(document.body, changes);
        }""",
        selector,
    )


async def kept_texts(page: Page) -> list[str]:
    return await page.evaluate("keptTexts")


@asynccontextmanager
async def opened(browser: Browser, home: Path, **settings: Any) -> AsyncGenerator[Console]:
    """Fails at its end when a browser complained."""
    facts: dict[str, Any] = {"model": "offline", **settings}
    async with open_service(home, **facts) as live, AsyncExitStack() as stack:
        console = Console(live, browser, stack)
        yield console
        assert not console.left(), console.left()


OpenConsole = Callable[..., AbstractAsyncContextManager[Console]]
