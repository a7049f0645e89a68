"""Markdown as chat_markdown.js draws it while it streams: the same however it is split, and never as HTML."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, Route

from console.payloads import PAYLOADS, TRACES
from dragoman.console.pages import HEADERS, STATIC

pytestmark = pytest.mark.anyio
_PAGE = """<!doctype html><head><script type="module" src="/page.js"></script></head><body></body>"""
_SCRIPT = """
import { Markdown } from "./chat_markdown.js";
const settled = async (markdown) => { while (markdown.timer) await new Promise((done) => setTimeout(done)); };
window.draw = async (parts) => {
  const place = document.createElement("div");
  const markdown = new Markdown(place, "run");
  for (const part of parts) markdown.append(part);
  markdown.end();
  await settled(markdown);
  return place;
};
window.html = async (parts) => (await draw(parts)).innerHTML;
window.unlike = async (text) => {
  const whole = await html([text]);
  const wrong = [];
  if ((await html([...text])) !== whole) wrong.push("letter by letter");
  for (let at = 1; at < text.length; at += 1) {
    if ((await html([text.slice(0, at), text.slice(at)])) !== whole) wrong.push(text.slice(0, at));
  }
  return wrong;
};
"""
ALL_KINDS = """There are **148 open issues**, *six* fewer [c1] than ~~last week~~ with `code` and [a link](https://example.com/a_(b)).

```python
from tools import look
text = \"\"\"two
lines\"\"\"  # nobody
```

| Area | Open |
|------|-----:|
| Check**out** | 52 |
| a \\| b |

1. one
2. two
   - sub *a*

     more of it
3. three

> quoted
> **more**
lazy

# Heading ##
---
a | b
--|--
1 | 2

<b>no tag</b> &amp; &lt; https://example.org/x. ***both*** snake_case_name 2 * 3 $x^2$
- ```js
  const a = `x
  y`;
  ```
- [ ] task
unclosed **bold and `code
"""


@asynccontextmanager
async def opened_page(browser: Browser) -> AsyncGenerator[Page]:
    """A page of nothing but the renderer, under the console's policy."""
    page = await browser.new_page()

    async def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name.endswith(".js"):
            text = _SCRIPT if name == "page.js" else (STATIC / name).read_text()
            await route.fulfill(body=text, content_type="text/javascript")
        else:
            await route.fulfill(body=_PAGE, content_type="text/html", headers=HEADERS)

    await page.route("**/*", answer)
    await page.goto("http://console.example/")
    await page.wait_for_function("typeof draw === 'function'")
    try:
        yield page
    finally:
        await page.close()


async def test_what_is_drawn_does_not_depend_on_where_the_stream_is_split(browser: Browser) -> None:
    async with opened_page(browser) as page:
        assert await page.evaluate("unlike", ALL_KINDS) == []


async def test_every_kind_of_block_is_drawn(browser: Browser) -> None:
    async with opened_page(browser) as page:
        drawn = await page.evaluate("html", [ALL_KINDS])
    for part in (
        "<strong>148 open issues</strong>", "<em>six</em>", "<del>last week</del>", "<code>code</code>",
        '<sup><a href="#source-run-c1" aria-label="Source 1">1</a></sup>', 'href="https://example.com/a_(b)"',
        '<span class="k">from</span>', '<td class="num">52</td>', "<td>a | b</td>", "<li><p>one</p></li>",
        "<p>more of it</p>", "<blockquote><p>quoted<br><strong>more</strong><br>lazy</p></blockquote>",
        "<h3>Heading</h3><hr>", "<th>a</th>", "&lt;b&gt;no tag&lt;/b&gt; &amp; &lt; ", 
        "snake_case_name 2 * 3 $x^2$", '<span class="s">`x</span>', "unclosed **bold and `code",
    ):  # fmt: skip
        assert part in drawn, part


async def test_what_is_not_closed_yet_is_shown_as_if_it_were(browser: Browser) -> None:
    drawn = """async (text) => {
        const { Markdown } = await import("./chat_markdown.js");
        const place = document.createElement("div");
        new Markdown(place, "run").append(text);
        return place.innerHTML;
    }"""
    async with opened_page(browser) as page:
        for text, shown in (
            ("a **bo", "<p>a <strong>bo</strong></p>"),
            ("a **bold*", "<p>a <strong>bold</strong></p>"),
            ("a `co", "<p>a <code>co</code></p>"),
            ("see [the page](https://exa", "<p>see the page</p>"),
            ("so it is [c1", "<p>so it is </p>"),
            ("words\n\n| a | b |\n|--", "<p>words</p>"),
            ("words\n\n- ", "<p>words</p>"),
        ):
            assert await page.evaluate(drawn, text) == f'<div class="part">{shown}</div>', text


async def test_nothing_that_is_streamed_becomes_an_element_of_its_own(browser: Browser) -> None:
    """Every payload, letter by letter, in every place that Markdown has for words."""
    around = (
        "{}", "**{}**", "> {}", "- {}", "| {} |\n|--|\n| {} |", "```{}\n{}\n```", "[{}]({})", "![{}](https://a.b/)",
    )  # fmt: skip
    async with opened_page(browser) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.on("request", lambda request: dialogs.append(request.url))
        texts = [form.replace("{}", payload) for payload in PAYLOADS for form in around]
        await page.evaluate(
            """async (texts) => {
                for (const text of texts) {
                    const { Markdown } = await import("./chat_markdown.js");
                    const place = document.body.appendChild(document.createElement("div"));
                    const markdown = new Markdown(place, "run");
                    for (const letter of text) markdown.append(letter);
                    markdown.end();
                }
            }""",
            texts,
        )
        assert await page.evaluate(TRACES) == []
        foreign = await page.evaluate(
            """[...document.querySelectorAll("body *")].filter((one) =>
                one.matches("img, svg, iframe, style, form, input, object, embed, math, [style]")
                || (one.href && !/^(https?:|mailto:)/.test(one.href)))
                .map((one) => one.outerHTML.slice(0, 200)).filter((one) => !one.includes("#source-"))"""
        )
        assert foreign == []
        assert dialogs == []


async def test_a_long_answer_is_drawn_whole_and_soon(browser: Browser) -> None:
    """A megabyte, ten thousand lines, and what would take for ever if each word were looked at again."""
    lines = "\n".join(f"{number}. line" for number in range(1, 10_001))
    code = "```\n" + "\n".join(f"line {number}" for number in range(10_000)) + "\n```"
    async with opened_page(browser) as page:
        counted = "async ([text, what]) => (await draw([text])).querySelectorAll(what).length"
        assert await page.evaluate(counted, [lines, "li"]) == 10_000
        # In parts that are skipped while nobody sees them, and one list and one paragraph to who reads.
        starts = "async (text) => [...(await draw([text])).querySelectorAll('ol')].map((one) => one.start)"
        assert await page.evaluate(starts, lines) == [*range(1, 10_000, 100)]
        prose = "\n".join(f"line {number}" for number in range(10_000))
        assert await page.evaluate(counted, [prose, ".part > p"]) > 10
        said = "async (text) => (await draw([text])).textContent.match(/line/g).length"
        assert await page.evaluate(said, prose) == 10_000
        size = "async (text) => (await draw([text])).textContent.length"
        assert await page.evaluate(size, "word " * 200_000) == 999_999
        last = "async (text) => (await draw([text])).querySelector('code').textContent.trimEnd().slice(-9)"
        assert await page.evaluate(last, code) == "line 9999"
        for nasty in ("*", "[ ", "> ", "`a", "_a", "| ", "**a ", "<a ", "![", "~~"):
            assert await page.evaluate(size, "x " + nasty * 20_000) > 10_000
