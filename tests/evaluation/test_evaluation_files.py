"""The file of an evaluation: whatever is wrong in it is told with its line and field."""

from pathlib import Path

import pytest

from dragoman.errors import InvalidConfig
from dragoman.evaluation.cases import Case, Expectations, read_file
from dragoman.evaluation.evaluate import variants_of
from dragoman.evaluation.statistics import difference_interval, share_interval
from dragoman.evaluation.trials import MadeCall, Observed, judged
from dragoman.examples import examples
from dragoman.run import RunUsage

GOOD = """
repeat = 2

[connectors.email]
command = "python"

[variants.short]
instructions = "Be short."

[[cases]]
name = "first"
message = "hello"
expect.answer = "hello"

[[cases]]
name = "second"
message = ["one", "two"]
connectors = ["email"]

[cases.expect]
max_cost = 0.01
tools = ["email__read"]
"""
BAD = {
    "no TOML": (("expect.answer", "expect..answer"), ["cases.toml: this is no TOML", "line 13"]),
    "an unknown field of a case": (("message = [", "mesage = ["), ["cases.toml:17: cases[1].mesage: Extra"]),
    "a word for a number": (("0.01", '"cheap"'), ["cases.toml:21: cases[1].expect.max_cost: ", "number"]),
    "a limit of nothing": (("max_cost = 0.01", "max_cost = 0"), ["cases.toml:21: cases[1].expect.max_cost"]),
    "an unknown expectation": (("expect.answer", "expect.anser"), ["cases.toml:13: cases[0].expect.anser"]),
    "an exposure that is none": (
        ('instructions = "Be short."', 'exposure = "magic"'),
        ["cases.toml:8: variants.short.exposure: ", "'delegate'"],
    ),
    "a connector that is not there": (('["email"]', '["mail"]'), ["wants the connector 'mail'"]),
    "two cases of one name": (("second", "first"), ["two cases are named 'first'"]),
    "instructions for one's own connectors": (
        ('[connectors.email]\ncommand = "python"', ""),
        ["needs connectors in the file"],
    ),
    "no pattern": (("tools = [", 'answer_matches = "("\ntools = ['), ["is no regular expression"]),
    "no message": (("message = [", "message = []\nanswers = ["), ["cases[1].message"]),
    "no cases": ((GOOD[GOOD.index("[[cases") :], ""), ["cases: Field required"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_flaw_in_the_file_is_named_with_its_line_and_field(tmp_path: Path, name: str) -> None:
    (old, new), told = BAD[name]
    assert old in GOOD
    path = tmp_path / "cases.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InvalidConfig) as caught:
        read_file(path)
    for text in told:
        assert text in caught.value.message
    assert caught.value.hint


def test_a_good_file_has_its_cases_in_order_and_lists_may_be_one_text(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(GOOD)
    file = read_file(path)
    assert [(one.name, one.message, one.repeat) for one in file.cases] == [
        ("first", ("hello",), None),
        ("second", ("one", "two"), None),
    ]
    assert file.cases[0].expect.answer == ("hello",)
    assert [one.name for one in file.with_cases(["sec*"]).cases] == ["second"]
    with pytest.raises(InvalidConfig, match="no case is named third"):
        file.with_cases(["third"])
    with pytest.raises(InvalidConfig, match="cannot be read"):
        read_file(tmp_path / "nowhere.toml")


def test_models_and_exposures_that_are_asked_for_take_the_place_of_the_file_s_variants(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(GOOD)
    file = read_file(path)
    assert [*variants_of(file, [], [])] == ["short"]
    made = variants_of(file, ["direct", "code"], ["a:b"])
    assert {name: one.options for name, one in made.items()} == {
        "a:b direct": {"model": "a:b", "exposure": "direct"},
        "a:b code": {"model": "a:b", "exposure": "code"},
    }


def test_forty_cases_ship() -> None:
    assert len(read_file(examples() / "evaluation.toml").cases) == 40


NAMES = {"email__send": "mcp_email_send", "mcp_email_send": "mcp_email_send"}
SENT = Observed(
    status="done",
    answer="Sent to Ann.",
    calls=[MadeCall("mcp_email_send", {"to": ["ann"], "body": "x"}), MadeCall("search_tools", {}, True)],
    approvals=["mcp_email_send"],
    usage=RunUsage(requests=3, input_tokens=900, output_tokens=100, cost=0.02),
    seconds=4.0,
)
KEPT = [
    Expectations(tools=("email__send", "search_tools"), no_tools=("email__read",)),
    Expectations(arguments={"email__send": {"to": "ann"}}, times={"email__send": 1}),
    Expectations(answer=("SENT",), no_answer=("failed",), answer_matches=r"Ann\.$"),
    Expectations(approvals=("mcp_email_send",), questions=0),
    Expectations(max_calls=1, max_requests=3, max_tokens=1000, max_cost=0.02, max_seconds=4),
]
BROKEN = {
    "email__read was not called; called was mcp_email_send, search_tools": Expectations(
        tools=("email__read",)
    ),
    "email__send was called": Expectations(no_tools=("email__send",)),
    "not with {'to': ['bob']}": Expectations(arguments={"email__send": {"to": ["bob"]}}),
    "email__send was called 1 times, not 3": Expectations(times={"email__send": 3}),
    "the answer does not say 'Bob'": Expectations(answer=("Bob",)),
    "the answer says 'Ann'": Expectations(no_answer=("Ann",)),
    "the answer does not match '^Ann'": Expectations(answer_matches="^Ann"),
    "nobody was asked to approve email__read": Expectations(approvals=("email__read",)),
    "0 questions were asked, not 1": Expectations(questions=1),
    "the run is done, not failed": Expectations(status="failed"),
    "1 tool calls, more than 0": Expectations(max_calls=0),
    "3 requests, more than 2": Expectations(max_requests=2),
    "1,000 tokens, more than 999": Expectations(max_tokens=999),
    "0.02 dollars, more than 0.01": Expectations(max_cost=0.01),
    "4 seconds, more than 3": Expectations(max_seconds=3),
}


def test_what_is_expected_and_holds_is_no_failure() -> None:
    assert [judged(one, SENT, NAMES) for one in KEPT] == [[]] * len(KEPT)


@pytest.mark.parametrize("told", BROKEN)
def test_an_expectation_that_does_not_hold_says_how_it_was_instead(told: str) -> None:
    (failure,) = judged(BROKEN[told], SENT, NAMES)
    assert told in failure


def test_a_person_who_approves_some_tools_approves_no_others() -> None:
    case = Case(name="a", message=("b",), approve=("email__send",), expect=Expectations())
    assert case.approves("email__send")
    assert not case.approves("email__read")
    assert not Case(name="a", message=("b",), expect=Expectations()).approves("email__send")


def test_the_interval_of_a_share_is_wilson_s() -> None:
    # From Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    assert share_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert share_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert share_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert share_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert share_interval(0, 0) == (0.0, 1.0)


def test_a_difference_is_told_from_chance() -> None:
    clear = difference_interval([(10.0, 12.0 + at % 3) for at in range(30)])
    assert clear.excludes_zero
    assert clear.low < 3.0 < clear.high
    chance = difference_interval([(10.0, 10.0 + (-1) ** at) for at in range(30)])
    assert not chance.excludes_zero
    assert difference_interval([(1.0, 2.0)] * 5) == (1.0, 1.0)
