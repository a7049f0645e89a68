"""Who is in a rollout and when it is switched off: rules, without a hub."""

from datetime import UTC, datetime

import pytest

from dragoman.agents.rollout import RolloutFigures, RolloutPlan, RolloutThresholds, figures_of, judged
from dragoman.errors import InvalidConfig
from dragoman.settings import Settings
from dragoman.store.records import RolloutSample

USERS = [f"usr_{number}" for number in range(4_000)]
LIMITS = RolloutThresholds()


def chosen(plan: RolloutPlan) -> set[str]:
    return {user for user in USERS if plan.arm_of("team", user) == "agents"}


@pytest.mark.parametrize("share", [1.0, 10.0, 25.0, 50.0, 90.0])
def test_a_share_of_the_users_is_in_and_stays_in_as_it_grows(share: float) -> None:
    users = chosen(RolloutPlan(share=share))
    assert len(users) / len(USERS) * 100 == pytest.approx(share, abs=2.5)
    assert users == chosen(RolloutPlan(share=share))
    assert users <= chosen(RolloutPlan(share=share + 5))


def test_nothing_and_everything_are_exact() -> None:
    assert chosen(RolloutPlan()) == {*USERS}, "while nobody says otherwise"
    assert chosen(RolloutPlan(share=0)) == set()
    assert chosen(RolloutPlan(share=100)) == {*USERS}
    assert chosen(RolloutPlan(users=("nobody",))) == set()


def test_who_is_named_comes_first_and_the_others_are_compared_with_them() -> None:
    plan = RolloutPlan(workspaces=("first",), users=("ada", "second/bob"))
    assert plan.arm_of("first", "anybody") == "agents"
    assert plan.arm_of("team", "ada") == "agents"
    assert plan.arm_of("second", "bob") == "agents"
    assert plan.arm_of("third", "bob") == "direct"


def test_another_salt_chooses_others() -> None:
    assert chosen(RolloutPlan(share=50)) != chosen(RolloutPlan(share=50, salt="other"))


@pytest.mark.parametrize(
    ("agents", "direct", "word"),
    [
        (RolloutFigures(runs=100, errors=6), RolloutFigures(), "6 of 100 runs failed: 6.0 %, over 5 %"),
        (RolloutFigures(runs=100, errors=5), RolloutFigures(), None),
        (RolloutFigures(runs=100, errors=4), RolloutFigures(), None),
        (RolloutFigures(runs=19, errors=19), RolloutFigures(), None),
        (RolloutFigures(runs=20, errors=2), RolloutFigures(), "2 of 20"),
        (
            RolloutFigures(runs=50, latency_ms=160),
            RolloutFigures(runs=50, latency_ms=100),
            "+60 %, over +50 %",
        ),
        (RolloutFigures(runs=50, latency_ms=150), RolloutFigures(runs=50, latency_ms=100), None),
        (RolloutFigures(runs=50, latency_ms=140), RolloutFigures(runs=50, latency_ms=100), None),
        (RolloutFigures(runs=50, latency_ms=900), RolloutFigures(runs=19, latency_ms=100), None),
        (RolloutFigures(runs=19, latency_ms=900), RolloutFigures(runs=50, latency_ms=100), None),
    ],
)
def test_the_arm_is_judged_by_errors_and_latency(
    agents: RolloutFigures, direct: RolloutFigures, word: str | None
) -> None:
    reason = judged(agents, direct, LIMITS)
    assert (reason is None) if word is None else (reason is not None and word in reason)


def test_figures_are_those_of_the_last_runs_of_an_arm() -> None:
    def sample(number: int, arm: str) -> RolloutSample:
        return RolloutSample(
            run=f"{arm}{number}",
            workspace="team",
            user="ada",
            arm=arm,
            ok=number >= 50,
            milliseconds=float(number),
            tokens=10,
            cost=0.5,
            unpriced=number % 2,
            thumb=1 if number == 249 else -1 if number == 248 else 0,
            at=datetime.now(UTC),
        )

    samples = [sample(number, arm) for number in range(250) for arm in ("agents", "direct")]
    figures = figures_of(samples, "agents", LIMITS)
    assert (figures.runs, figures.errors) == (200, 0)
    assert figures.latency_ms == pytest.approx(149.5)
    assert figures.latency_p95_ms == 239
    assert (figures.tokens, figures.cost, figures.thumbs_up, figures.thumbs_down) == (10, 0.5, 1, 1)
    assert figures.unpriced == 100


@pytest.mark.parametrize(
    ("said", "share"), [("true", 100), ("false", 0), ("On", 100), ("25", 25), ("12.5%", 12.5), ("0", 0)]
)
def test_the_environment_says_it_in_one_word(said: str, share: float) -> None:
    assert Settings.load({"USE_MCP_AGENTS": said}).rollout_share == share


def test_what_says_more_in_the_environment_wins() -> None:
    settings = Settings.load(
        {"USE_MCP_AGENTS": "true", "DRAGOMAN_ROLLOUT_SHARE": "10", "DRAGOMAN_ROLLOUT_USERS": "ada, bob"}
    )
    assert settings.rollout_share == 10
    assert settings.rollout_users == ("ada", "bob")


@pytest.mark.parametrize(
    "environment",
    [{"USE_MCP_AGENTS": "maybe"}, {"USE_MCP_AGENTS": "101"}, {"DRAGOMAN_ROLLOUT_SHARE": "-1"}],
)
def test_a_share_that_is_none_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match=next(iter(environment))):
        Settings.load(environment)
