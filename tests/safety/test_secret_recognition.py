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
    f"--user=root:{SECRET}",
    f"-uroot:{SECRET}",
    f"curl -u root:{SECRET} https://a.example",
    f"tool --password '{SECRET}' --verbose",
    f'tool --password "{SECRET}" --verbose',
    f'{{\\"apiKey\\":\\"{SECRET}\\"}}',
    f"https://api.example/mcp?auth[token]={SECRET}",
    f"https://api.example/mcp?auth%5Btoken%5D={SECRET}",
    f"https://api.example/mcp?to%6Ben={SECRET}",
    f"jdbc:oracle:thin:scott/{SECRET}@//db:1521/x",
    f"//root:{SECRET}@db/x",
    f"root:{SECRET}@db/x",
    f"/password:{SECRET}",
    f"--api-keys={SECRET}",
    f"--tokens={SECRET}",
    f"--pw={SECRET}",
    f"X-Auth: R4nd0m{SECRET}",
    f"https://api.example/mcp?code=R4nd0m{SECRET}",
    f"mysql -pR4nd0m{SECRET} x",
    f"Bearer {SECRET}",
    "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/abcdefABCDEF012345678901",
    "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----",
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
    "--user=1000:1000",
    "--auth=oauth2",
    "--code=main.py",
    "--session=my-session-1",
    "-print0",
    "image:v1.2@sha256:0123456789abcdef",
    "git@github.example:owner/Repo1.git",
    "https://api.example/mcp?code=200",
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
    "words",
    [
        ["--api-key", SECRET],
        ["-H", f"Authorization: Basic {SECRET}"],
        ["--user", f"root:{SECRET}"],
        ["-p", f"R4nd0m{SECRET}"],
        ["--auth", f"R4nd0m{SECRET}"],
        ["--header", "X-Api-Key", f"R4nd0m{SECRET}"],
        ["--api-key", f"-R4nd0m{SECRET}"],
    ],
)
def test_the_word_after_a_telling_option_is_one(words: list[str]) -> None:
    masking = Masking()
    shown = masking.words(["run", *words, "--verbose"])
    assert SECRET not in " ".join(shown)
    assert [unmasked(word, masking.secrets) for word in shown] == ["run", *words, "--verbose"]


@pytest.mark.parametrize(
    "words",
    [
        ["--token", "--verbose"],
        ["--api-key", "${KEY}"],
        ["--sort-key", "name"],
        ["-p", "8080:80"],
        ["-p", "@scope/package"],
        ["-u", "1000:1000"],
        ["token", "list"],
    ],
)
def test_what_follows_a_telling_option_need_not_be_one(words: list[str]) -> None:
    assert Masking().words(words) == tuple(words)


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("X-Auth", f"R4nd0m{SECRET}", True),
        ("LICENCE", "aB3dE6gH9jK2mN5pQ8sT", True),
        ("TENANT", "0123456789abcdef0123456789abcdef", True),
        ("REGION", "eu-central-1", False),
        ("HOME_DIR", "/Users/Ann/Work2024/projects", False),
        ("MODEL", "claude-sonnet-4-20250514", False),
        ("PROJECT", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", False),
        ("X-Session", "morning", False),
    ],
)
def test_a_value_that_nobody_would_choose_is_one_in_a_variable_or_header(
    name: str, value: str, is_secret: bool
) -> None:
    assert holds_secret(value, name) == is_secret


@given(st.lists(st.text(max_size=30) | st.sampled_from(_HELD + _OPEN), max_size=6))
def test_whatever_is_masked_can_be_put_back(words: list[str]) -> None:
    masking = Masking(taken=names_in(words))
    shown = masking.words(words)
    own = {name: value for name, value in masking.secrets.items() if name not in names_in(words)}
    assert own == masking.secrets, "no name stands for two things"
    if not names_in(words):
        assert tuple(unmasked(word, masking.secrets) for word in shown) == tuple(words)
