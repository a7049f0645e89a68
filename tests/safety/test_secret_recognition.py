"""Which words of a command line and of an address are secrets, and which are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.secret_recognition import Masking, holds_secret, names_in, unmasked

SECRET = "s3cr3t-9f41"
_HELD = [
    *(f"{scheme}://root:{SECRET}@db:5432/x" for scheme in ("postgresql", "mysql+pymysql", "redis", "amqps")),
    f"mongodb+srv://u:{SECRET}@a.example,b.example/db?w=1",
    f"postgres://root:a/b#{SECRET}@db/x",
    f"https://api.example/mcp?token={SECRET}",
    f"https://api.example/mcp?a=1&api_key={SECRET}&b=2",
    f"https://api.example/mcp#access_token={SECRET}",
    f"https://api.example/mcp?sig={SECRET}",
    f"--api-key={SECRET}",
    f"--apiKey={SECRET}",
    f"-token={SECRET}",
    f"--client-secret={SECRET}",
    f"--db.password={SECRET}",
    f"--env=API_KEY={SECRET}",
    f"GITHUB_PERSONAL_ACCESS_TOKEN={SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"X-API-Key:{SECRET}",
    f'{{"auth": {{"apiKey": "{SECRET}"}}}}',
    f"Server=db;User=sa;Password={SECRET};",
    f"host=db password={SECRET} dbname=x",
    f"node server.js --token {SECRET} --port 80",
    "sk_live_51HabcdefABCDEF0123456789",
    "git+https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.example/x",
]
_OPEN = [
    "--api-key=${KEY}",
    "--token=${TOKEN:-none}",
    "postgres://root:${PASSWORD}@db/x",
    "postgres://root@db/x",
    "http://host:8080/a@b",
    "--token-url=https://a.example/token",
    "--password-file=/run/secret",
    "--max-tokens=4096",
    "--sort-key=created_at",
    "--key=certificate.pem",
    "--monkey=business",
    "--auth=oauth",
    "@scope/package@1.2.3",
    "https://api.example/mcp?page=2&sort=key",
    "C:\\keys\\here",
    "${secret:token}",
]


@pytest.mark.parametrize("word", _HELD)
def test_a_secret_is_taken_out_and_comes_back_where_it_was(word: str) -> None:
    masking = Masking()
    (shown,) = masking.words([word])
    assert "${secret:" in shown
    assert all(value.get_secret_value() not in shown for value in masking.secrets.values())
    assert SECRET not in shown
    assert unmasked(shown, masking.secrets) == word
    assert masking.told
    assert SECRET not in " ".join(masking.told)
    assert Masking().words([shown]) == (shown,), "what is masked already stays as it is"


@pytest.mark.parametrize("word", _OPEN)
def test_what_is_no_secret_stays_in_the_open(word: str) -> None:
    masking = Masking()
    assert (masking.words([word]), masking.secrets) == ((word,), {})
    assert not holds_secret(word)


@pytest.mark.parametrize(
    "words", [["--api-key", SECRET], ["-H", f"Authorization: Basic {SECRET}"], ["--user", f"root:{SECRET}"]]
)
def test_the_word_after_a_telling_option_is_one(words: list[str]) -> None:
    masking = Masking()
    shown = masking.words(["run", *words, "--verbose"])
    assert SECRET not in " ".join(shown)
    assert [unmasked(word, masking.secrets) for word in shown] == ["run", *words, "--verbose"]


@pytest.mark.parametrize("words", [["--token", "--verbose"], ["--api-key", "${KEY}"], ["--sort-key", "name"]])
def test_what_follows_a_telling_option_need_not_be_one(words: list[str]) -> None:
    assert Masking().words(words) == tuple(words)


@given(st.lists(st.text(max_size=30) | st.sampled_from(_HELD + _OPEN), max_size=6))
def test_whatever_is_masked_can_be_put_back(words: list[str]) -> None:
    masking = Masking(taken=names_in(words))
    shown = masking.words(words)
    own = {name: value for name, value in masking.secrets.items() if name not in names_in(words)}
    assert own == masking.secrets, "no name stands for two things"
    if not names_in(words):
        assert tuple(unmasked(word, masking.secrets) for word in shown) == tuple(words)
