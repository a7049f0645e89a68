"""`dragoman eval` with the rule-driven model over real HTTP: what ships passes, and what is wrong fails.

So that prompts, offers and descriptions of functions cannot silently get worse.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman.cli.root import run
from dragoman.evaluation.cases import CaseVariant, read_file
from dragoman.evaluation.evaluate import Evaluation, evaluate
from dragoman.examples import examples
from dragoman.settings import Settings
from servers.rule_model import Fault, RuleModel
from servers.scripted_hubs import MODEL, scripted
from servers.scripted_models import ScriptedServer

pytestmark = pytest.mark.slow
SHIPPED = examples() / "evaluation.toml"
SAMPLE = ("two latest*", "an e-mail to each*", "one task", "a chain*", "an agent*", "nothing*")


def failures(made: Evaluation) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.variant, one.case, one.failures) for one in made.trials if not one.passed]


@pytest.mark.anyio
async def test_the_forty_cases_pass_by_delegation_and_a_sample_by_every_other_way(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", model=MODEL)
    file = read_file(SHIPPED)
    async with scripted(RuleModel()):
        variants = {"delegate": CaseVariant(exposure="delegate")}
        made = await evaluate(file, settings, folder=SHIPPED.parent, variants=variants, parallel=1)
        assert failures(made) == []
        assert len(made.trials) == 40
        figures = made.report()["variants"]["delegate"]
        assert figures["tokens"] < 8_000
        assert figures["requests"] < 5
        others = {name: CaseVariant(exposure=name) for name in ("direct", "search", "code")}
        sample = file.with_cases(SAMPLE)
        made = await evaluate(sample, settings, folder=SHIPPED.parent, variants=others, parallel=1)
        assert failures(made) == []
        assert {one.observed.exposure for one in made.trials} == {*others}
        assert not (tmp_path / "home").exists(), "an evaluation with connectors of its own has its own home"


FILE = """
[connectors.email]
description = "a mailbox: read and send e-mail"
command = "{python}"
args = ["{examples}/servers/email_server.py", "--mailbox", "{data}/mailbox.json"]

[variants.plain]
[variants.told]
instructions = "Speak of lighthouses."

[[cases]]
name = "sends"
message = 'Send an email to ann@example.com saying "Now"'
approve = ["email__send-email"]
expect.times."email__send-email" = 1

[[cases]]
name = "makes an agent"
message = "Create an agent named scribe"
approve = true
expect.tools = ["manage"]
expect.no_answer = ["failed"]

[[cases]]
name = "expects too much"
message = "Check my 2 latest emails"
connectors = ["email"]
expect.answer = ["Zanzibar"]
expect.max_tokens = 10
"""


@contextmanager
def served(model: RuleModel) -> Generator[ScriptedServer]:
    """The model for a command that has this thread to itself."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(scripted(model)) as server:
        yield server


def test_the_command_compares_variants_and_ends_with_one_when_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRAGOMAN_MODEL", MODEL)
    path = tmp_path / "cases.toml"
    path.write_text(FILE)
    with served(RuleModel()) as server:
        assert run(["eval", str(path), "--repeat", "2", "--json", "--parallel", "2"]) == 1
        told, progress = capsys.readouterr()
        words = ["--case", "sends", "--case", "expects*", "--at-least", "0.5", "--parallel", "1"]
        assert run(["eval", str(path), *words]) == 0
        shown = capsys.readouterr().out
    report = json.loads(told)
    assert {name: (one["passed"], one["trials"]) for name, one in report["variants"].items()} == {
        "plain": (4, 6),
        "told": (4, 6),
    }
    (failed,) = [case for case in report["cases"] if case["variants"]["plain"]["passed"] == 0]
    assert failed["name"] == "expects too much"
    assert failed["variants"]["plain"]["failures"][0] == "the answer does not say 'Zanzibar'"
    (compared,) = report["comparisons"]
    assert (compared["variant"], compared["against"]) == ("told", "plain")
    assert compared["differences"]["tokens"]["difference"] > 0
    assert not compared["differences"]["passed"]["is_significant"]
    assert "12/12" in progress
    assert "4 of 6 (plain), 4 of 6 (told) trials passed, and all should" in progress
    assert all(text in shown for text in ("sends", "plain", "told", "95 %", "compared"))
    systems = {turn.system for turn in server.turns}
    assert any("lighthouses" in one for one in systems)
    assert not all("lighthouses" in one for one in systems)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("email__send-email", "email__sent-email"), "did you mean"),
        (("email_server.py", "no_server.py"), "the connector 'email' of the evaluation is"),
    ],
    ids=["a tool that is not there", "a server that does not start"],
)
def test_what_cannot_work_is_told_before_any_trial(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    told: str,
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    path = tmp_path / "cases.toml"
    path.write_text(FILE.replace(*change))
    assert run(["eval", str(path)]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.anyio
async def test_a_model_that_does_the_wrong_thing_fails_the_cases(tmp_path: Path) -> None:
    """The net can tear: each way to be wrong is seen by what is expected."""
    path = tmp_path / "cases.toml"
    path.write_text(FILE)
    settings = Settings(home=tmp_path / "home", model=MODEL)
    model = RuleModel()
    async with scripted(model):

        async def passed(*faults: Fault, case: str = "sends", **changes: Any) -> list[tuple[str, ...]]:
            model.faults, model.met = faults, {}
            file = read_file(path).with_cases([case])
            changed = file.cases[0].model_copy(update=changes)
            file = file.model_copy(update={"cases": (changed,), "variants": {}})
            made = await evaluate(file, settings, folder=tmp_path, parallel=1)
            return [one.failures for one in made.trials]

        assert await passed() == [()]
        ((failure,),) = await passed(Fault("parallel"))
        assert failure == "email__send-email was called 3 times, not 1"
        ((failure,),) = await passed(Fault("stalled", seconds=600), timeout=3.0)
        assert failure == "it had no end within 3 s"
        failed = await passed(Fault("garbage"))
        assert "the run is failed, not done" in failed[0][-1]


def test_a_file_or_the_examples_and_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval"]) == 2
    assert run(["eval", "cases.toml", "--examples"]) == 2
    assert "give a file, or --examples" in capsys.readouterr().err
