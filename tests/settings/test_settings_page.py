"""The page of the documentation tells of every setting, and is as the descriptions are now."""

import runpy
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from dragoman.agent import AgentProfile
from dragoman.api.agents import AgentChanges, NewAgent
from dragoman.api.people_shapes import KeyChanges, NewKey, NewUser, UserChanges, WorkspaceChanges
from dragoman.api.setting_models import SettingsRequest
from dragoman.api.threads import PreferenceChanges
from dragoman.people import ApiKey, CallLimits, Preferences, User, UserLimits, Workspace
from dragoman.setting import people_set, settings_of
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


def test_the_library_s_types_of_agents_users_keys_and_workspaces_are_up_to_date() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "settings_page.py"))["written_people_types"]()
    assert written == (ROOT / "src" / "dragoman" / "hub" / "people_settings.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("request_model", "noun"),
    [
        (NewAgent, AgentProfile),
        (AgentChanges, AgentProfile),
        (NewUser, User),
        (UserChanges, User),
        (NewKey, ApiKey),
        (KeyChanges, ApiKey),
        (WorkspaceChanges, Workspace),
        (PreferenceChanges, Preferences),
    ],
)
def test_a_request_knows_every_setting_and_every_limit(
    request_model: type[SettingsRequest], noun: type
) -> None:
    assert request_model.described == {one.path[0] for one in people_set(noun)}
    assert request_model.described <= request_model.model_fields.keys()
    if "limits" in request_model.described:
        limits = asdict(CallLimits() if noun is ApiKey else UserLimits())
        name = {"name": "n"} if "name" in request_model.model_fields else {}
        assert request_model.model_validate({**name, "limits": limits}).settings() == {"limits": limits}
