"""The operator's token from the environment: the same at every process, and changed without a gap."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.command_line import Command
from cluster.processes import ServiceProcess
from dragoman.errors import InvalidConfig
from dragoman.settings import Settings
from dragoman.web.service_token import ServiceToken, get_or_make_token

OLD, NEW = "an-operator-token-of-last-year-0123", "an-operator-token-of-this-year-4567"


@pytest.mark.slow
def test_two_services_share_the_operators_token(tmp_path: Path, postgres_url: str) -> None:
    key = {"DRAGOMAN_KEY": "x" * 43 + "="}
    with ExitStack() as stack:
        services = [
            stack.enter_context(
                ServiceProcess(
                    tmp_path / name,
                    postgres_url,
                    environment={**key, "DRAGOMAN_OPERATOR_TOKEN": tokens},
                )
            )
            for name, tokens in (("one", f"{NEW},{OLD}"), ("two", NEW))
        ]
        one, two = services
        assert [service.get("/api/connectors", NEW)[0] for service in services] == [200, 200]
        assert [service.get("/api/connectors", OLD)[0] for service in services] == [200, 401]
        assert one.facts["token_file"] is None
        assert not (two.folder / "token").exists()


def test_a_home_with_a_token_file_does_not_open_to_it_when_another_is_given(tmp_path: Path) -> None:
    of_home = get_or_make_token(tmp_path / "token")
    given = ServiceToken(Settings(home=tmp_path, operator_token=(NEW, OLD)))
    assert given.current == NEW
    assert [given.is_token(word.encode()) for word in (NEW, OLD, of_home, "", NEW[:-1])] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="at least 32") as refused:
        ServiceToken(Settings(operator_token=(NEW, "secret")))
    assert "secret" not in refused.value.message
    assert NEW not in repr(Settings(operator_token=(NEW,)))


def test_the_command_prints_the_token_that_was_given(
    dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_OPERATOR_TOKEN", f"{NEW}, {OLD}")
    assert dragoman("token").out.strip() == NEW
    assert dragoman("token", "--json").value == {"token": NEW, "file": None}
    assert not (home / "token").exists()
