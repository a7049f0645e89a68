"""The documentation as it is built: whole, without a broken link, and with all that there is to know."""

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml
from typer.main import get_command

import dragoman
from dragoman import errors
from dragoman.agent import AgentProfile
from dragoman.cli.root import app
from dragoman.connector import Configuration, GivenCredentials
from dragoman.events import EventKind
from dragoman.people import ApiKey, Preferences, User, Workspace
from dragoman.run import RunEventKind
from dragoman.setting import people_set, settings_of
from dragoman.settings import PREFIX, Settings
from dragoman.web.problems import TABLE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HEADING = re.compile(r"^### `([a-z_.]+)`$", re.MULTILINE)


class Links(HTMLParser):
    """What a page leads to, loads, and can be led to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {name: value or "" for name, value in attrs}
        self.places |= {facts.get("id", ""), facts.get("name", "")}
        if tag == "a" and "href" in facts:
            self.targets.append(facts["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in facts:
            self.loaded.append(facts["src"])
        elif tag == "link" and facts.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(facts.get("href", ""))


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {page: Links(page) for page in site.rglob("*.html")}
    assert len(pages) > 15
    for page, links in pages.items():
        for target in [*links.targets, *links.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                assert target in links.targets, f"{page.name} loads {target}"
                continue
            # The page for what is not there is shown at any path: its links begin at the root.
            begin = site if parts.path.startswith("/") else page.parent
            file = (begin / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
            file = file / "index.html" if file.is_dir() else file
            assert file.exists(), f"{page.relative_to(site)}: {target}"
            if parts.fragment and file in pages:
                assert unquote(parts.fragment) in pages[file].places, f"{page.relative_to(site)}: {target}"


def test_every_page_is_in_the_menu_and_beside_its_html_as_markdown(site: Path) -> None:
    nav = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = set(pages_of(nav))
    assert listed == {str(page.relative_to(site)) for page in site.rglob("*.md")}
    assert listed == {str(page.relative_to(site).with_suffix(".md")) for page in site.rglob("*.html")} - {
        "404.md"
    }
    overview = (site / "llms.txt").read_text(encoding="utf-8")
    for place in listed:
        assert f"]({place}): " in overview
        assert (site / place).read_text(encoding="utf-8").startswith("# ")


def pages_of(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    return [page for one in inside for page in pages_of(one)]


def test_every_error_code_has_its_place_and_its_facts(site: Path) -> None:
    codes = {kind.code for kind in all_below(errors.DragomanError)}
    assert codes >= set(TABLE)
    page = (site / "reference" / "errors.md").read_text(encoding="utf-8")
    assert sorted(HEADING.findall(page)) == sorted(codes)
    for section in page.split("\n### ")[1:]:
        heading, facts, words = section.split("\n\n")[:3]
        assert re.match(r"\*.+\.\* HTTP \d+ · JSON-RPC -\d+ · ", facts), heading
        assert len(words) > 30, heading


def all_below(kind: type[errors.DragomanError]) -> list[type[errors.DragomanError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in all_below(child))]


def test_every_event_has_its_place(site: Path) -> None:
    page = (site / "reference" / "events.md").read_text(encoding="utf-8")
    assert sorted(HEADING.findall(page)) == sorted({*get_args(EventKind), *get_args(RunEventKind)})
    assert "\nData: `attempt`, `cause`, `next_attempt`, `state`." in page


def test_every_command_and_every_option_is_told(site: Path) -> None:
    page = (site / "reference" / "commands.md").read_text(encoding="utf-8")
    sections = {part.splitlines()[0]: part for part in re.split(r"\n#{2,4} ", page)[1:]}

    def look(command: Any, path: str) -> None:
        children = getattr(command, "commands", {})
        for name, child in children.items():
            look(child, f"{path} {name}")
        if children:
            return
        shown = options_of(command)
        assert path in sections, path
        missing = {option for option in shown if f"`{option}`" not in sections[path]}
        assert not missing, (path, missing)

    look(get_command(app), "dragoman")
    names = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert [name for name in names if name.count("[") != name.count("]") or name.endswith(("…", "."))] == []


def test_every_column_of_a_table_says_what_it_is(site: Path) -> None:
    nameless = {
        page.name: row
        for page in (site / "reference").glob("*.md")
        for row in re.findall(r"^(\|.*\|)\n\|(?: ?-+ ?\|)+$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if not all(cell.strip() for cell in row.strip("|").split("|"))
    }
    assert nameless == {}


def options_of(command: Any) -> set[str]:
    params = command.get_params(typer.Context(command))
    own = [one for one in params if one.name not in ("help", "as_json") and not one.hidden]
    return {
        flag for one in own if one.param_type_name == "option" for flag in (*one.opts, *one.secondary_opts)
    }


def test_every_setting_is_told(site: Path) -> None:
    page = (site / "settings.md").read_text(encoding="utf-8")
    named = [one for kind in (Configuration, GivenCredentials) for one in settings_of(kind)]
    named += [
        one for kind in (AgentProfile, Workspace, User, Preferences, ApiKey) for one in people_set(kind)
    ]
    for one in named:
        assert one.setting.derived or not one.setting.meaning or f"| `{one.name}` |" in page, one.name
    for one in settings_of(Settings):
        assert f"`{PREFIX}{one.name.upper()}`" in page


def test_every_rest_operation_is_told(site: Path) -> None:
    page = (site / "reference" / "rest.md").read_text(encoding="utf-8")
    document = json.loads((site / "reference" / "openapi.json").read_text(encoding="utf-8"))
    operations = [
        f"\n### {method.upper()} {path}\n"
        for path, methods in document["paths"].items()
        for method in methods
    ]
    assert len(operations) > 90
    assert not [one for one in operations if one not in page]


def test_every_public_name_is_told(site: Path) -> None:
    page = (site / "reference" / "library.md").read_text(encoding="utf-8")
    assert not [name for name in dragoman.__all__ if f"`{name}`" not in page and f" {name}\n" not in page]


def test_every_metric_is_told_and_those_of_rules_and_dashboard_exist(site: Path) -> None:
    page = (site / "reference" / "metrics.md").read_text(encoding="utf-8")
    samples = known_samples()
    for family in samples:
        assert f"| `{family}` |" in page
    alerts = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
    expressions = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for one in expressions for name in re.findall(r"dragoman_\w+", one)}
    assert used <= {name for names in samples.values() for name in names}
    assert len(expressions) > 15


def known_samples() -> dict[str, set[str]]:
    """The names of the samples of each metric, by the name that the page has: as a service tells them."""
    text = (ROOT / "tests" / "contract" / "snapshots" / "metrics.json").read_text(encoding="utf-8")
    return {
        f"{name}_total" if facts["type"] == "counter" else name: set(facts["samples"])
        for name, facts in json.loads(text).items()
    }
