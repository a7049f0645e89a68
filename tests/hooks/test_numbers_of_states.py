"""Numbers that states give to people, by Presidio's own recognisers."""

import re
from pathlib import Path
from typing import Any

import pytest
from presidio_analyzer import PatternRecognizer, predefined_recognizers

from dragoman import Hub, InvalidConfig
from dragoman.hooks.presidio import NUMBERS
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "hooks.md"


def offer_record(hub: Hub) -> None:
    @hub.tool
    def record(text: str) -> dict[str, str]:
        """Gives it back."""
        return {"note": text}


async def test_they_are_masked_beside_our_own_kinds(tmp_path: Path) -> None:
    async with open_hub(tmp_path, hooks=("personal_data email US_SSN UK_NHS",)) as hub:
        offer_record(hub)
        text = "SSN 536-90-4399, NHS 943 476 5919, ann@example.com, call 555-867-5309, order 943 476 5918"
        given = await hub.call("record", {"text": text})
        assert given.result == {
            "note": "SSN [hidden: US_SSN], NHS [hidden: UK_NHS], [hidden: e-mail address], "
            "call 555-867-5309, order 943 476 5918"
        }
        # As content and as structure.
        assert [*given.metadata.warnings] == [
            "personal_data: masked 2 × US_SSN, 2 × UK_NHS, 2 × e-mail address in the result"
        ]


async def test_arguments_with_one_are_refused_where_the_rule_says_before(tmp_path: Path) -> None:
    async with open_hub(tmp_path, hooks=("personal_data PL_PESEL before",)) as hub:
        offer_record(hub)
        refused = await hub.call("record", {"text": "PESEL 44051401359"})
        assert refused.error is not None
        assert refused.error.code == "hook_refused"
        assert "44051401359" not in refused.error.message
        assert (await hub.call("record", {"text": "PESEL 44051401358"})).error is None, "no checksum"


async def test_a_number_that_nobody_knows_is_told_with_a_near_one(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        with pytest.raises(InvalidConfig, match="US_SSN"):
            await hub.people.update_workspace("local", hooks=["personal_data US_SSM"])


def test_each_is_one_of_presidios_that_is_told_from_other_numbers() -> None:
    kinds: list[Any] = [one for one in vars(predefined_recognizers).values() if isinstance(one, type)]
    known: dict[str, bool] = {}
    for kind in kinds:
        if issubclass(kind, PatternRecognizer) and kind is not PatternRecognizer:
            made: Any = kind()  # pyright: ignore[reportCallIssue]
            is_checked = kind.validate_result is not PatternRecognizer.validate_result
            is_told = is_checked or max(one.score for one in made.patterns) >= 0.4
            known |= dict.fromkeys(made.supported_entities, is_told)
    assert [name for name in NUMBERS if not known.get(name)] == []
    assert set(re.findall(r"`([A-Z]{2}_[A-Z_]+)`", PAGE.read_text())) == {*NUMBERS}
