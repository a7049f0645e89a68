"""How names and questions are taken apart."""

import pytest

from dragoman.catalog.search.query import SearchQuery
from dragoman.catalog.search.words import (
    clauses,
    name_key,
    parts,
    telling_words,
    terms,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_current_time", ["get", "current", "time"]),
        ("getCurrentTime", ["get", "current", "time", "getcurrenttime"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("GET /movie/{movie_id}", ["get", "movie", "movie", "id"]),
        ("upload to s3", ["upload", "to", "s", "3", "s3"]),
        ("prüfe Größe", ["prüfe", "größe"]),
        ("東京の天気", ["東京の天気"]),
        ("!!! ---", []),
    ],
)
def test_words_are_split_where_a_reader_would(text: str, words: list[str]) -> None:
    assert parts(text) == words


def test_stop_words_go_and_the_rest_is_cut_to_its_stem() -> None:
    assert terms("Please help me to list the running processes") == terms("lists run process")


def test_letters_and_numbers_tell_nothing_of_what_is_meant() -> None:
    assert telling_words("a 42 b the weather, the weather") == ["weather"]


def test_a_long_question_falls_into_its_steps_and_a_short_one_stays_whole() -> None:
    question = "Find the cheapest flight to Rome. Then send an email with the price to my boss."
    assert len(clauses(question)) == 2
    assert clauses("send an email, please") == []


def test_every_spelling_of_a_name_has_one_key() -> None:
    assert {name_key(name) for name in ("get_time", "getTime", "get-time", "Get Time")} == {"gettime"}


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("move /home/ada/old/draft.txt to ~/kept/here/letter.txt", "move draft.txt to letter.txt"),
        (r"open C:\Users\Ada\notes.md", "open notes.md"),
        ("compare ./src/app/main.py and ../docs/img/a.svg", "compare main.py and a.svg"),
        # One folder, an address, a place of a service and a choice are words like others.
        ("read /etc/hosts and yes/no/maybe", "read /etc/hosts and yes/no/maybe"),
        ("fetch https://github.com/acme/tools/issues/5", "fetch https://github.com/acme/tools/issues/5"),
        ("GET /repos/{owner}/{repo}/issues", "GET /repos/{owner}/{repo}/issues"),
    ],
)
def test_of_a_path_only_the_name_is_read(said: str, spoken: str) -> None:
    assert SearchQuery(said).spoken == spoken
