"""The table of extras, the package's metadata and the page for people say the same."""

import re
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from dragoman.extras import EXTRAS, ExtraName

ROOT = Path(__file__).parents[2]
DECLARED: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=! ;]", one)[0].lower().replace("_", "-") for one in requirements}


def test_every_extra_of_the_package_is_in_the_table() -> None:
    assert DECLARED.keys() - {"all"} == EXTRAS.keys()


def test_all_has_every_extra_but_those_that_few_want() -> None:
    (everything,) = DECLARED["all"]
    by_agents = {"anthropic", "openai"}
    assert all(any(one in needed for needed in DECLARED["agents"]) for one in by_agents)
    left_out = {"demo", "guard", "langchain", "tokens"} | by_agents
    assert set(re.findall(r"\w+", everything)) - {"dragoman"} == EXTRAS.keys() - left_out


@pytest.mark.parametrize("name", [name for name in EXTRAS if name != "tokens"])
def test_the_modules_of_an_extra_come_from_its_requirements(name: ExtraName) -> None:
    brought = names(DECLARED[name])
    for one in [*brought]:
        brought |= names([needed for needed in requires(one) or () if "extra ==" not in needed])
    found = packages_distributions()
    for module in EXTRAS[name].modules:
        assert {one.lower().replace("_", "-") for one in found[module.partition(".")[0]]} & brought, module


def test_people_can_read_of_every_extra() -> None:
    page = (ROOT / "docs" / "guides" / "install.md").read_text()
    assert [name for name in DECLARED if f"| `{name}` |" not in page] == []
