"""The chat in a real Chromium: what a person sees and does from the first word to the last."""

import asyncio
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

from console.browsing import Console, OpenConsole
from console.chatting import is_live, is_over, last_turn, write
from console.speaking import Speaker
from console.wires import opened_wire
from dragoman.tool import Annotations
from servers.hubs import quick
from servers.samples import sample

pytestmark = pytest.mark.anyio
ASKING = Path(__file__).parents[1] / "servers" / "asking_stdio.py"
NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def speaking(console: Console) -> Speaker:
    """A model in the test's hand, and tools that only read or need a yes."""
    speaker = Speaker()
    speaker.install(console.hub)

    @console.hub.tool(annotations=Annotations(read_only=True))
    def look(what: str) -> str:
        """Looks something up."""
        return f"{what} {NASTY}"

    @console.hub.tool(annotations=Annotations(destructive=True))
    def burn(what: str) -> str:
        """Burns something."""
        return f"{what} is ashes"

    @console.hub.tool
    def move(what: str) -> str:
        """Moves something."""
        return f"{what} is moved"

    assert look
    assert burn
    assert move
    return speaker


async def delete(page: Page) -> None:
    await page.get_by_label("More", exact=True).click()
    await page.get_by_role("button", name="Delete").click()
    await page.wait_for_url("**/chat")


async def test_a_whole_exchange_with_the_offline_model(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        page = await console.page("/chat", permissions=["clipboard-read", "clipboard-write"])
        await expect(page.get_by_text("No language model is set")).to_be_visible()
        await expect(page.get_by_role("link", name="Give a provider its key")).to_be_visible()
        await write(page, "check my 2 latest emails")

        turn = last_turn(page)
        await expect(turn.locator(".said")).to_have_text("check my 2 latest emails")
        await is_over(page)
        await expect(turn.locator(".prose strong").first).to_have_text("Re: Budget table")
        await expect(turn).to_contain_text("This week: structured concurrency in practice")
        await expect(turn).to_contain_text("offline model, not a language model")
        await expect(turn.locator("[data-cost]")).to_contain_text("tokens · $0")
        await expect(page.locator("header.top p").first).to_have_text("assistant · 1 agent in this chat")

        card = turn.locator(".call")
        await expect(card.locator("summary")).to_contain_text(re.compile(r"Read e-mails.*\d m?s", re.S))
        await card.locator("summary").press("Enter")
        await expect(card.get_by_label("Arguments")).to_contain_text('"limit": 2')
        await expect(card.get_by_label("Result")).to_contain_text("Re: Budget table")
        await console.picture(page, "chat")

        await turn.get_by_label("Copy the answer").click()
        await expect(page.locator("#said")).to_have_text("Copied")
        assert "**Re: Budget table**" in await page.evaluate("() => navigator.clipboard.readText()")
        await turn.get_by_label("Good answer").click()
        await expect(turn.get_by_label("Good answer")).to_have_attribute("aria-pressed", "true")
        before = await turn.locator(".prose").inner_text()
        await page.reload()
        await is_live(page)
        assert await last_turn(page).locator(".prose").inner_text() == before
        await expect(last_turn(page).get_by_label("Good answer")).to_have_attribute("aria-pressed", "true")

        await last_turn(page).get_by_label("Ask the same again").click()
        await expect(page.locator(".turn")).to_have_count(2)
        await is_over(page)
        chat = page.url
        await delete(page)
        await expect(page.locator("#thread-list p")).to_have_text("Your chats will be listed here.")
        await page.get_by_role("button", name="Undo").click()
        await page.wait_for_url(chat)
        await expect(page.locator(".turn")).to_have_count(2)
        await delete(page)
        await expect(page.locator("#thread-list p")).to_have_text("Your chats will be listed here.")


async def test_a_citation_leads_to_its_source(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        page = await console.page("/chat")
        await write(page, "@email check my 2 latest emails")
        await is_over(page)
        await last_turn(page).get_by_role("link", name="Source 1").first.click()
        source = last_turn(page).locator(".source[open]:target")
        await expect(source).to_contain_text("email.read-emails")
        await expect(source).to_contain_text("Re: Budget table")


async def test_a_call_waits_for_a_yes_to_its_exact_arguments(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        page = await console.page("/chat")
        await write(page, 'call burn {"what": "a\\u202eletter"}')
        approval = last_turn(page).locator(".approval")
        await expect(approval.get_by_label("Exact arguments")).to_have_text(
            'what\n"a\\u202eletter"', use_inner_text=True
        )
        await expect(last_turn(page).locator(".call")).to_contain_text("Waits for you: burn")
        await expect(page.locator("#typing")).to_be_hidden()  # who waits does not work
        await console.picture(page, "chat_approval")
        await approval.get_by_role("button", name="Allow once").click()
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("is ashes")
        await expect(last_turn(page).locator(".approval")).to_contain_text("You allowed this once.")

        await write(page, 'call burn {"what": "the house"}')
        await last_turn(page).get_by_role("button", name="Deny").click()
        await is_over(page)
        await expect(last_turn(page).locator(".approval")).to_contain_text("You denied this.")
        await expect(last_turn(page).locator(".call")).to_have_attribute("data-state", "failed")

        await write(page, 'call move {"what": "a log"}')
        await page.reload()  # the card is there for who comes later
        await last_turn(page).get_by_role("button", name="Allow in this chat").click()
        await is_over(page)
        await write(page, 'call move {"what": "more logs"}')
        await expect(last_turn(page)).to_contain_text("more logs is moved")
        await expect(last_turn(page).locator(".approval")).to_have_count(0)


async def test_questions_are_answered_in_their_cards(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        facts = quick(command=sys.executable, args=[str(ASKING), "1"])
        await console.hub.connectors.add("asking", **facts)
        page = await console.page("/chat")
        await write(page, 'call ask_person {"question": "Which colour?"}')
        card = last_turn(page).locator(".question")
        await expect(card).to_contain_text("assistant asks")
        await card.get_by_label("Your answer").fill("red")
        await card.get_by_role("button", name="Answer").click()
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("You answered: red")
        await expect(last_turn(page)).to_contain_text("It brought: red")

        await write(page, 'call ask_person {"question": "And which size?"}')
        await expect(last_turn(page).locator(".question")).to_contain_text("And which size?")
        await write(page, "large")  # what is written while one question waits is its answer
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("It brought: large")
        await expect(page.locator(".turn")).to_have_count(2)

        await write(page, 'call mcp_asking_rename {"old": "Ada"}')
        card = last_turn(page).locator(".question")
        await expect(card).to_contain_text("What is the new name of Ada?")
        await card.get_by_label("name").fill("Grace")
        await console.picture(page, "chat_question")
        await card.get_by_role("button", name="Answer").click()
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("It brought: Ada is Grace")


async def test_a_call_is_chosen_from_three_forms_and_then_approved(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        page = await console.page("/chat")
        await write(page, "send an urgent email to bob@example.com")
        card = last_turn(page).locator(".question")
        await expect(card).to_contain_text("Which of these should be called?")
        await expect(card).to_contain_text("Not used: urgent")
        forms = card.locator(".call-form")
        await expect(forms).to_have_count(3)
        first = forms.first
        await expect(first.locator("summary").first).to_contain_text("Send an e-mail")
        await expect(first.locator("summary").first).to_contain_text("may change something")
        await expect(first.get_by_label("To", exact=True)).to_have_value("bob@example.com")
        await first.get_by_label("To", exact=True).fill("")
        await first.get_by_text("More values").click()
        await first.get_by_label("Subject (optional)").fill("Tea")
        await first.get_by_label("To", exact=True).fill("ann@example.com")
        await console.picture(page, "chat_choice")
        await first.get_by_role("button", name="Call: Send an e-mail").click()
        approval = last_turn(page).locator(".approval")
        exact = approval.get_by_label("Exact arguments")
        await expect(exact).to_have_text("subject\nTea\nto\nann@example.com", use_inner_text=True)
        await approval.get_by_role("button", name="Allow once").click()
        await is_over(page)
        await expect(last_turn(page).locator(".prose").last).to_contain_text("Send an e-mail is done")

        await write(page, "send an email")
        await last_turn(page).locator(".question").get_by_role("button", name="None of these").click()
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("Nothing was called")

        await write(page, "delete my emails")
        await expect(last_turn(page).locator(".call-form")).to_have_count(3)
        other = await console.page("/approvals")
        await expect(other.locator(".call-form")).to_have_count(3)
        await write(page, "check my 2 latest emails")  # other words are an answer, too
        await is_over(page)
        await expect(last_turn(page)).to_contain_text("2 emails")


async def test_what_is_typed_into_a_form_stays_when_its_question_is_told_again(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        page = await console.page("/chat")
        await write(page, "send an urgent email to bob@example.com")
        await expect(last_turn(page).locator(".call-form")).to_have_count(3)
        await is_live(page)
        newest = int(await last_turn(page).get_attribute("data-number") or 0)
        typed = asyncio.Event()

        async def older(route: Route) -> None:
            """The page as it was before its events: they are told once something is typed."""
            if "/events" in route.request.url:
                await typed.wait()
                await route.continue_(url=re.sub(r"after=.*", "after=-:0", route.request.url))
                return
            answer = await route.fetch()
            text = re.sub(r'data-number="\d+"', 'data-number="0"', await answer.text())
            await route.fulfill(response=answer, body=text)

        await page.route(re.compile(r"/chat/thr_\w+(/events.*)?$"), older)
        await page.reload()
        to = last_turn(page).locator(".call-form").first.get_by_label("To", exact=True)
        await to.fill("ann@example.com")
        typed.set()
        await expect(last_turn(page)).to_have_attribute("data-number", str(newest))
        await expect(to).to_have_value("ann@example.com")


async def test_words_come_as_they_are_said_and_can_be_stopped(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        page = await console.page("/chat")
        await write(page, "words please")
        words = last_turn(page).locator(".words")
        speaker.say("Now **one** ", NASTY, " two")
        await expect(words).to_have_text(f"Now one {NASTY} two")
        await expect(words.locator("strong")).to_have_text("one")
        await expect(page.locator("#typing")).to_have_text("assistant is working")
        speaker.end()
        await is_over(page)
        await expect(last_turn(page).locator(".prose strong")).to_have_text("one")
        await expect(last_turn(page).locator(".prose")).to_have_text(f"Now one {NASTY} two")

        await write(page, "words again")
        speaker.say("half a ")
        await expect(last_turn(page).locator(".words")).to_have_text("half a ")
        await page.get_by_label("Stop", exact=True).click()
        await is_over(page, "cancelled")
        await expect(last_turn(page)).to_contain_text("Stopped.")

        await write(page, 'call look {"what": "this"}')
        await is_over(page)
        await last_turn(page).locator(".call summary").click()
        await expect(last_turn(page).get_by_label("Result")).to_contain_text(NASTY)
        await expect(last_turn(page).locator("img, script")).to_have_count(0)


async def test_a_lost_connection_loses_and_doubles_no_word(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console, opened_wire(console.url) as wire:
        console.forgive("ERR_|Failed to load resource")
        speaker = speaking(console)
        page = await console.page("/chat")
        await page.goto(wire.url + "/chat")
        await write(page, "words please")
        words = last_turn(page).locator(".words")
        said = ""

        async def say(*numbers: int) -> None:
            nonlocal said
            said += "".join(f"w{number} " for number in numbers)
            speaker.say(*(f"w{number} " for number in numbers))

        await say(1, 2, 3)
        await expect(words).to_have_text(said)
        wire.cut()
        await expect(page.locator("#live")).to_have_text("offline: trying again")
        await say(4, 5, 6)
        wire.mend()
        await expect(words).to_have_text(said)
        await is_live(page)

        await page.context.set_offline(True)
        await expect(page.locator("#live")).to_have_text("offline: trying again")
        await say(*range(7, 200))
        await page.context.set_offline(False)
        await expect(words).to_have_text(said)
        await page.reload()
        await say(200)
        await expect(words).to_have_text(said)
        wire.cut()
        await say(201)
        speaker.end()
        wire.mend()
        await is_over(page)
        await expect(last_turn(page).locator(".prose")).to_have_text(said.strip())
        await expect(page.locator(".turn")).to_have_count(1)


async def test_a_run_that_goes_on_after_a_restart_says_nothing_twice(
    open_console: OpenConsole, tmp_path: Path, browser: Browser
) -> None:
    async with AsyncExitStack() as stack:
        async with open_console(tmp_path, model="speaker") as console:
            speaker = speaking(console)
            wire = await stack.enter_async_context(opened_wire(console.url))
            signed_in = await (await console.context()).storage_state()
            context = await stack.enter_async_context(await browser.new_context(storage_state=signed_in))
            page = await context.new_page()
            await page.goto(wire.url + "/chat")
            await write(page, "words please")
            speaker.say("what never came to its end")
            await expect(last_turn(page).locator(".words")).to_have_text("what never came to its end")
            wire.cut()
        async with open_console(tmp_path, model="speaker") as console:
            speaker = speaking(console)
            speaker.say("told ", "anew")
            wire.mend(console.url)
            await expect(last_turn(page).locator(".words")).to_have_text("told anew")
            speaker.end()
            await is_over(page)
            await expect(last_turn(page).locator(".words")).to_have_text("told anew")


async def test_two_tabs_show_the_same(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        first = await console.page("/chat")
        await write(first, "hello")
        await is_over(first)
        second = await first.context.new_page()
        await second.goto(first.url)
        await is_live(second)
        await write(first, "words please")
        speaker.say("for ", "both")
        for page in (first, second):
            await expect(last_turn(page).locator(".words")).to_have_text("for both")
        speaker.end()
        await is_over(first)
        await is_over(second)
        await write(second, 'call burn {"what": "it"}')
        await first.get_by_role("button", name="Allow once").click()
        await is_over(first)
        await is_over(second)
        assert await first.locator("#talk").inner_text() == await second.locator("#talk").inner_text()


async def test_tabs_behind_another_leave_it_the_connections_of_the_browser(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    """A browser has six to one place: a stream in each of eight tabs would leave none to the ninth."""
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        run = await console.hub.ask("hello")
        context = await console.context()
        await context.add_init_script(
            "if (name !== 'seen') Object.defineProperty(document, 'hidden', { get: () => name !== 'seen' })"
        )
        tabs = [await context.new_page() for _ in range(8)]
        for tab in tabs:
            await tab.goto(f"{console.url}/chat/{run.thread}")
        await tabs[-1].evaluate("name = 'seen'; document.dispatchEvent(new Event('visibilitychange'))")
        await is_live(tabs[-1])
        await write(tabs[-1], "word")
        speaker.say("Nine tabs.")
        speaker.end()
        await expect(last_turn(tabs[-1])).to_contain_text("Nine tabs.")
        # What happened meanwhile is there as soon as one of the others is seen.
        await tabs[0].evaluate("name = 'seen'; document.dispatchEvent(new Event('visibilitychange'))")
        await expect(last_turn(tabs[0])).to_contain_text("Nine tabs.")


async def test_earlier_messages_are_shown_when_asked_for(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        run = await console.hub.ask("message 0")
        for number in range(1, 10):
            await console.hub.ask(f"message {number}", thread=run.thread)
        page = await console.page(f"/chat/{run.thread}")
        await expect(page.locator(".said")).to_have_text([f"message {number}" for number in range(2, 10)])
        await page.get_by_role("button", name="Show earlier messages").click()
        await expect(page.locator(".said")).to_have_text([f"message {number}" for number in range(10)])
        await expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


async def test_a_key_without_the_right_to_approve_is_told_so(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker", multi_user=True) as console:
        speaking(console)
        key = await console.add_user("eve", scopes=("read", "call"))
        page = await console.page("/chat", key=key)
        await write(page, 'call burn {"what": "it"}')
        await last_turn(page).get_by_role("button", name="Allow once").click()
        await expect(page.locator("#notes")).to_contain_text("this needs a key with the scope 'approve'")
        await expect(last_turn(page)).to_have_attribute("data-state", "waiting")


async def test_agents_are_mentioned_by_the_keyboard(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        await console.hub.agents.create("helper", connectors=["email"])
        page = await console.page("/chat")
        # More than are told at once: the menu finds them all.
        for number in range(41):
            await console.hub.agents.create(f"clerk-{number:02}", connectors=["email"])
        crowded = await page.context.new_page()
        await crowded.goto(f"{console.url}/chat")
        await crowded.locator("#to > summary").click()
        await crowded.get_by_label("Search agents").fill("helper")
        await crowded.get_by_role("menuitemradio", name="helper").click()
        await expect(crowded.locator("#to")).to_have_attribute("data-agent", "helper")
        await crowded.close()
        for number in range(41):
            await console.hub.agents.remove(f"clerk-{number:02}")
        field, options = page.locator("#message"), page.locator("#mentions [role=option]:visible")
        await field.press_sequentially("Ask @")
        await expect(options).to_have_count(3)
        await expect(options.nth(1)).to_contain_text("@helper")
        await expect(options.nth(1)).to_contain_text(re.compile(r"worker · \d+ tools"))
        await console.picture(page, "chat_mention")
        await field.press("Escape")
        await expect(options).to_have_count(0)
        await field.press_sequentially("e")
        await expect(options.first).to_contain_text("@email")
        await field.press("ArrowDown")
        await field.press("Tab")
        await expect(field).to_have_value("Ask @helper ")
        await field.press("Shift+Enter")
        await expect(field).to_have_value("Ask @helper \n")
        await field.fill("")
        await field.press_sequentially("@hel")
        await field.press("Enter")
        await field.press_sequentially("words and @assistant too")
        await field.press("Enter")
        await page.wait_for_url(re.compile(r"/chat/thr_"))
        await expect(page.locator("#typing")).to_have_text(
            re.compile("^(helper, assistant|assistant, helper) are working$")
        )
        speaker.end()
        await expect(page.locator("#typing")).to_have_text(re.compile("^(helper|assistant) is working$"))
        speaker.end()
        await is_over(page)
        await expect(last_turn(page).locator(".work")).to_have_count(2)


async def test_delegations_are_nested_and_connectors_chosen(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        await console.hub.connectors.add("email", **sample("email", tmp_path))
        await console.hub.agents.create("helper", connectors=["email"])
        page = await console.page("/chat")
        await write(page, 'call ask_agent {"agent": "helper", "request": "words"}')
        nested = last_turn(page).locator(".call .work.nested")
        await expect(nested.locator("h3")).to_contain_text("helper")
        speaker.say("from below")
        await expect(nested.locator(".words")).to_have_text("from below")
        await expect(page.locator("#typing")).to_have_text("assistant, helper are working")
        await expect(page.locator("header.top p").first).to_have_text(
            "assistant, helper · 2 agents in this chat"
        )
        speaker.end()
        await is_over(page)
        await expect(last_turn(page).locator(".work.nested .prose")).to_have_text("from below")

        await write(page, "call manage {}")
        await expect(last_turn(page)).to_contain_text("Manage agents and connectors")

        thread = page.url.rpartition("/")[2]
        await page.locator("#use > summary").click()
        await page.locator("#use").get_by_label("email").uncheck()
        await expect(page.get_by_role("button", name="Use my default set")).to_be_visible()
        assert (await console.hub.threads.get(thread)).active == ("native",)
        await page.get_by_role("button", name="Use my default set").click()
        await expect(page.get_by_text("Your default set.")).to_be_visible()
        assert (await console.hub.threads.get(thread)).active == ("email", "native")


async def test_two_people_see_only_their_own(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker", multi_user=True) as console:
        console.forgive("404")
        speaker = speaking(console)
        ada = await console.page("/chat", key=await console.add_user("ada"))
        bob = await console.page("/chat", key=await console.add_user("bob"))
        await write(ada, "ada's secret plan")
        await is_over(ada)
        await write(bob, "bob's words")
        await is_over(bob)
        await ada.reload()
        await expect(ada.locator(".threads .thread")).to_have_text(["ada's secret plan"])
        await expect(bob.locator("body")).not_to_contain_text("ada's")
        await write(ada, "words please")
        speaker.say("only ada's")
        await expect(last_turn(ada).locator(".words")).to_have_text("only ada's")
        await expect(bob.locator("#typing")).to_be_hidden()
        await expect(bob.locator(".turn")).to_have_count(1)
        speaker.end()
        await is_over(ada)
        root = await last_turn(ada).get_attribute("data-root")
        for path in (ada.url.removeprefix(console.url), f"/chat/turns/{root}"):
            answer = await bob.goto(console.url + path)
            assert answer is not None
            assert answer.status == 404
            await expect(bob.locator("main")).not_to_contain_text("ada's")


async def test_files_are_chosen_shown_removed_and_sent_with_the_message(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        page = await console.page("/chat")
        files = [
            {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
            for name, text in (("heron.txt", "a grey bird"), ("other.txt", "not this one"))
        ]
        await page.set_input_files("#file", files)  # type: ignore[arg-type]
        await expect(page.locator("#files li")).to_have_count(2)
        await page.get_by_label("Remove other.txt").click()
        await expect(page.locator("#files li")).to_have_text(["heron.txt11 B×"])
        await console.picture(page, "chat_files")
        await write(page, "what is it?")
        await is_over(page)
        await expect(last_turn(page).locator(".said .files li")).to_have_text(["heron.txt"])
        await expect(last_turn(page)).to_contain_text("a grey bird")
        await expect(last_turn(page)).not_to_contain_text("not this one")
        await expect(page.locator("#files")).to_be_hidden()

        await page.set_input_files("#file", [{**files[0], "name": "a.bin", "buffer": b"\0\1"}])  # type: ignore[arg-type]
        await page.fill("#message", "and this?")
        await page.press("#message", "Enter")
        await expect(page.locator("#notes")).to_contain_text("neither text in UTF-8 nor an image")
        await expect(page.locator("#files li")).to_have_text(["a.bin2 B×"])  # nothing is lost
        await expect(page.locator("#message")).to_have_value("and this?")


FOUND = """(text) => {
  getSelection().removeAllRanges();
  const isFound = window.find(text, true);
  const { height } = getSelection().getRangeAt(0).getBoundingClientRect();
  return [isFound, getSelection().toString(), height > 0];
}"""
SKIPPED = """() => [...document.querySelectorAll(".part, .code-part")]
  .filter((one) => !one.firstElementChild.checkVisibility({ contentVisibilityAuto: true })).length"""


async def test_a_long_answer_is_read_from_its_end_and_found_where_it_is_not_drawn(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    """Thousands of items and as many lines of code: what nobody sees is skipped, and found by the browser."""
    speaker = Speaker()
    async with open_console(tmp_path / "home", model="speaker") as console:
        speaker.install(console.hub)
        items = "\n".join(f"- item {number} of the list" for number in range(3_000))
        code = "\n".join(f"line_{number} = 0" for number in range(3_000))
        speaker.say(f"{items}\n\n```python\n{code}\n```\n\nThat is all.")
        speaker.end()
        page = await console.page("/chat")
        await write(page, "words")
        await is_over(page)
        for _ in range(2):  # as it was streamed, and as it is read again
            await expect(page.get_by_text("That is all.")).to_be_in_viewport()
            assert await page.evaluate(SKIPPED) > 40  # of 60
            for text in ("item 1711 of", "line_1711 = 0"):
                assert await page.evaluate(FOUND, text) == [True, text, True]
            await page.reload()
