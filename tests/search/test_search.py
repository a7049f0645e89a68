"""What is found, in which order, by whom, and after which changes."""

from dataclasses import replace

import numpy as np
import pytest
from shop import TOOLS, open_shop

from catalog.listings import defined, listed, made_connector
from dragoman.catalog.search.fusion import scaled, trusted
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.meaning import RowMeanings
from dragoman.catalog.search.vectors import Vector, WordVectors
from dragoman.catalog.search.words import terms
from dragoman.scope import Caller

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("strategy", ["hybrid", "bm25", "semantic"])
async def test_a_question_finds_the_tool_that_answers_it(sqlite_url: str, strategy: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert (await shop.names("send an email to Anna", strategy))[0] == "mcp_mail_send_message"
        assert (await shop.names("open an issue in my repository", strategy))[0] == "mcp_github_create_issue"


async def test_meaning_finds_what_shares_no_word(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert await shop.names("rain tomorrow", "bm25") == []
        assert "mcp_weather_getForecast" in (await shop.names("rain tomorrow", "semantic"))[:2]


async def test_parameters_and_connectors_are_found_too(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert await shop.names("town", "bm25") == ["mcp_weather_getForecast"]
        assert await shop.names("addresses", "bm25") == ["mcp_mail_send_message"]
        assert {*await shop.names("github", "bm25")} == {
            f"mcp_github_{tool.original_name}" for tool in TOOLS["github"]
        }


async def test_fixed_values_of_parameters_are_found(sqlite_url: str) -> None:
    unit = {"type": "string", "enum": ["celsius", "fahrenheit"]}
    levels = {"type": "array", "items": {"enum": ["pollen", 7]}}
    schema = {"type": "object", "properties": {"unit": unit, "levels": levels}}
    async with open_shop(sqlite_url) as shop:
        measured = defined("measure", "Says how it is now.", input_schema=schema)
        await shop.catalog.refresh(made_connector("weather"), listed(*TOOLS["weather"], measured))
        assert await shop.names("fahrenheit", "bm25") == ["mcp_weather_measure"]
        assert await shop.names("pollen", "bm25") == ["mcp_weather_measure"]


async def test_what_finds_the_id_that_a_tool_wants_comes_with_it(sqlite_url: str) -> None:
    """Of the connector that the tool belongs to, and only while both are there."""
    wants = {"type": "object", "properties": {"film_id": {"type": "integer"}}, "required": ["film_id"]}
    critics = defined("critics", "What critics wrote about it.", input_schema=wants)
    finds = defined("search_films", "Looks through the archive.")
    question = "what did critics write about Metropolis"
    async with open_shop(sqlite_url) as shop:
        await shop.catalog.refresh(made_connector("mail"), listed(*TOOLS["mail"], critics))
        await shop.catalog.refresh(made_connector("files"), listed(*TOOLS["files"], finds))
        apart = await shop.names(question)
        assert apart[0] == "mcp_mail_critics"
        assert apart[1] != "mcp_files_search_films", "another connector's ids are others"
        await shop.catalog.refresh(made_connector("mail"), listed(*TOOLS["mail"], critics, finds))
        assert (await shop.names(question))[:2] == ["mcp_mail_critics", "mcp_mail_search_films"]
        await shop.catalog.refresh(made_connector("mail"), listed(*TOOLS["mail"], finds))
        assert "mcp_mail_search_films" not in (await shop.names(question))[:2]


async def test_of_two_alike_the_one_whose_connector_fits_comes_first(sqlite_url: str) -> None:
    status = defined("status", "Shows how far it is.")
    fitting = [defined(f"parcel_{what}", f"Parcel {what}.") for what in ("label", "price", "pickup")]
    async with open_shop(sqlite_url) as shop:
        for one, other in (("alpha", "omega"), ("omega", "alpha")):
            shop.catalog.declare(made_connector(one), [status, *fitting])
            shop.catalog.declare(made_connector(other), [status, defined("lamp", "Turns on a lamp.")])
            found = await shop.names("show the status of a parcel")
            assert found.index(f"mcp_{one}_status") < found.index(f"mcp_{other}_status")


async def test_words_count_less_where_the_best_tool_has_few_of_them(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        index = SearchIndex(None)
        index.follow(shop.catalog.lists("local"))
        for question in ("send", "send an email to Anna", "send the zeppelin to the quokka"):
            wanted = terms(question)
            scores = index.postings.scores(wanted).values()
            assert max(scores) < index.postings.most(wanted)
        assert index.postings.most(terms("send")) < index.postings.most(terms("send the quokka"))
    assert trusted((0.6, 0.4, 0.1), 0.25) == (0.3, 0.4, 0.1)


def test_what_is_nearly_the_same_is_not_pulled_apart() -> None:
    near, far = scaled(np.array([0.474, 0.478], np.float32)), scaled(np.array([0.1, 0.5], np.float32))
    assert near.max() < 0.1
    assert far.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "spelling",
    [
        *("mcp_weather_getForecast", "weather__getForecast", "sky__getForecast"),
        *("getForecast", "get_forecast", "Get Forecast"),
    ],
)
async def test_an_exact_name_comes_first_however_it_is_spelled(sqlite_url: str, spelling: str) -> None:
    async with open_shop(sqlite_url, weather={"aliases": ("sky",)}) as shop:
        for strategy in ("hybrid", "bm25", "semantic"):
            assert (await shop.names(spelling, strategy))[0] == "mcp_weather_getForecast"


async def test_a_name_that_two_connectors_have_brings_both_and_a_full_one_its_own(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert {*(await shop.names("search"))[:2]} == {"mcp_files_search", "mcp_weather_search"}
        assert (await shop.names("files__search"))[0] == "mcp_files_search"
        assert (await shop.names("weather__search"))[0] == "mcp_weather_search"


@pytest.mark.parametrize("text", ["xqzvkw blorft", "asdf jklö qwrtz", "12345 !!", "fnord zzyx wubbl kkrt"])
async def test_nonsense_finds_nothing(sqlite_url: str, text: str) -> None:
    async with open_shop(sqlite_url) as shop:
        for strategy in ("hybrid", "bm25", "semantic"):
            assert await shop.names(text, strategy) == []


async def test_the_answer_says_how_many_there_are(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        found = await shop.find("email", limit=2)
        assert (len(found.hits), found.total, found.summary) == (2, 9, "2 of 9")
        assert found.hits[0].score >= found.hits[1].score


async def test_an_empty_catalog_finds_nothing(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        for strategy in ("hybrid", "bm25", "semantic", "regex"):
            found = await shop.find("send an email", strategy, caller=Caller("elsewhere", "nobody"))
            assert (found.hits, found.total) == ((), 0)


async def test_a_pattern_finds_and_ranks_by_where_it_matches(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert await shop.names("^create_.*", "regex") == [
            "mcp_github_create_issue",
            "mcp_github_create_pull_request",
        ]
        found = await shop.names("ISSUES?", "regex")
        assert {*found[:2]} == {"mcp_github_list_issues", "mcp_github_create_issue"}
        assert await shop.names("glob", "regex") == ["mcp_files_search"]
        assert await shop.names("no such text", "regex") == []


async def test_what_belongs_to_others_is_neither_found_nor_counted(sqlite_url: str) -> None:
    facts = {"mail": {"owner": "anna"}, "github": {"workspace": "other"}}
    async with open_shop(sqlite_url, **facts) as shop:
        anna, bert, other = Caller("local", "anna"), Caller("local", "bert"), Caller("other", "carl")
        for strategy in ("hybrid", "bm25", "semantic", "regex"):
            for text in ("message", "mcp_mail_send_message", "send_message"):
                seen = await shop.find(text, strategy, caller=anna)
                assert seen.total == 6
                assert any(hit.tool.slug == "mail" for hit in seen.hits)
                hidden = await shop.find(text, strategy, caller=bert)
                assert hidden.total == 3
                assert all(hit.tool.slug != "mail" for hit in hidden.hits)
        assert {hit.tool.slug for hit in (await shop.find("issue", caller=other)).hits} == {"github"}
        assert (await shop.find("issue", "regex", caller=anna)).hits == ()


async def test_what_is_disabled_is_not_found_until_it_is_enabled(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        assert "mcp_mail_send_message" in await shop.names("send_message")
        await shop.catalog.disable("mcp_mail_send_message", Caller())
        assert "mcp_mail_send_message" not in await shop.names("send_message")
        await shop.catalog.enable("mcp_mail_send_message", Caller())
        assert (await shop.names("send_message"))[0] == "mcp_mail_send_message"
        shop.catalog.adopt(replace(made_connector("mail"), enabled=False))
        assert (await shop.find("send_message")).total == 6


async def test_the_index_follows_what_is_added_changed_and_removed(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        mail = made_connector("mail")
        assert (await shop.names("translate a text"))[:1] != ["mcp_mail_translate"]
        translate = defined("translate", "Puts a text into another language.")
        await shop.catalog.refresh(mail, listed(*TOOLS["mail"], translate))
        assert await shop.names("language", "bm25") == ["mcp_mail_translate"]
        changed = replace(translate, description="Turns a letter into speech.")
        await shop.catalog.refresh(mail, listed(*TOOLS["mail"], changed))
        assert await shop.names("language", "bm25") == []
        assert await shop.names("speech", "bm25") == ["mcp_mail_translate"]
        await shop.catalog.refresh(mail, listed(*TOOLS["mail"]))
        assert await shop.names("speech", "bm25") == []
        shop.catalog.forget(mail.id)
        assert (await shop.find("email")).total == 6
        assert await shop.names("inbox", "bm25") == []


class CountingVectors(WordVectors):
    """The real ones, and how many texts they have read."""

    read = 0

    def of(self, text: str) -> Vector:
        self.read += 1
        return super().of(text)


async def test_a_change_in_one_list_is_all_that_is_read_again(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        words = CountingVectors.load()
        index = SearchIndex(RowMeanings(words))
        index.follow(shop.catalog.lists("local"))
        assert words.read == 2 * 9
        index.follow(shop.catalog.lists("local"))
        await shop.catalog.disable("mcp_mail_send_message", Caller())
        index.follow(shop.catalog.lists("local"))
        assert words.read == 2 * 9, "its text is the same"
        await shop.catalog.refresh(made_connector("mail"), listed(*TOOLS["mail"], defined("more", "More.")))
        index.follow(shop.catalog.lists("local"))
        assert words.read == 2 * 10
        index.follow({})
        assert (index.named("more"), index.postings.knows("email")) == ((), False)


async def test_a_description_of_any_shape_can_be_indexed(sqlite_url: str) -> None:
    async with open_shop(sqlite_url) as shop:
        deep = {"type": "array", "items": {"type": "object", "properties": {"ribosome": {"type": "string"}}}}
        schema = {"type": "object", "properties": {"any": True, "deep": deep}}
        odd = defined("odd", "broken\x00 text " + "very long " * 5_000, input_schema=schema)
        shop.catalog.declare(made_connector("odd"), [odd, defined("bare")])
        assert (await shop.names("odd"))[0] == "mcp_odd_odd"
        assert await shop.names("broken", "regex") == ["mcp_odd_odd"]
        assert await shop.names("ribosome", "bm25") == ["mcp_odd_odd"]
        assert (await shop.names("bare"))[0] == "mcp_odd_bare"
