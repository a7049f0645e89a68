"""The page of the documentation tells of every setting, and is as the descriptions are now."""

import runpy
from dataclasses import fields
from pathlib import Path

from dragoman.api.people_shapes import UserLimitsRequest
from dragoman.people import UserLimits
from dragoman.setting import settings_of
from dragoman.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "settings_page.py"))["written"]()
    assert written == PAGE, "write it anew: .venv/bin/python scripts/settings_page.py"


def test_every_setting_of_the_process_is_described_with_its_variable() -> None:
    described = {one.name: one.setting for one in settings_of(Settings)}
    assert described.keys() == {item.name for item in fields(Settings)}
    for name, setting in described.items():
        assert setting.meaning.endswith("."), name
        assert f"`{PREFIX}{name.upper()}`" in PAGE


def test_a_request_knows_every_limit() -> None:
    assert UserLimitsRequest.model_fields.keys() == {one.name for one in settings_of(UserLimits)}
