"""Faults, planted one at a time: the suite must notice each of them.

    .venv/bin/python tests/contract/mutants.py            all of them, a few minutes
    .venv/bin/python tests/contract/mutants.py approval   those whose name has one of these words

Not part of the suite. The tree is copied to a temporary folder; the checkout is never changed. Where a text
stands is looked up in the whole of src/, and where a test is in the whole of tests/, so that files can be
renamed; each must be found exactly once. Ends with 1 when a mutant survives, or when a named test fails
without one.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "pyproject.toml", "README.md", "docs")


@dataclass(frozen=True)
class Mutant:
    """`text` becomes `replacement`; at least one of `tests` must then fail."""

    name: str
    text: str
    replacement: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "rights are not checked",
        "is_theirs = tool.connector_id == connector.id",
        "return\n    is_theirs = tool.connector_id == connector.id",
        (
            "test_a_disabled_tool_and_a_disabled_connector_refuse",
            "test_code_may_not_call_what_is_not_open_to_code",
        ),
    ),
    Mutant(
        "nobody is asked for approval",
        "        if need is None:\n            return False\n",
        "        if need is None or caller:\n            return False\n",
        ("test_an_agent_waits_for_the_yes_of_its_person", "test_a_no_is_a_refusal_and_nothing_runs"),
    ),
    Mutant(
        "arguments are not validated",
        "if rules.validator is not None and not rules.validator.is_valid(plain):",
        "if rules.validator is None and plain is None:",
        ("test_bad_arguments_never_leave", "test_a_misspelt_name_gets_a_suggestion"),
    ),
    Mutant(
        "secrets are not redacted",
        "return self._pattern.sub(HIDDEN, text)",
        "return text",
        (
            "test_what_the_source_raises_is_an_output_without_any_secret",
            "test_a_known_secret_is_in_no_line_whatever_its_spelling",
        ),
    ),
    Mutant(
        "a limit refuses nobody",
        "        if refused is not None:\n            raise _refusal(",
        "        if refused is not None and not refused:\n            raise _refusal(",
        (
            "test_money_is_counted_before_the_call_and_cents_add_up",
            "test_a_new_window_begins_with_the_minute_and_the_hour",
        ),
    ),
    Mutant(
        "a query forgets the workspace",
        "select(_rows).filter_by(workspace=workspace)\n        query = query.where(*(",
        "select(_rows)\n        query = query.where(*(",
        ("test_runs_of_another_workspace_are_not_found",),
    ),
    Mutant(
        "a page needs no mark of its session (CSRF)",
        "return compare_digest(self.csrf.encode(), token.encode())",
        "return True",
        ("test_a_change_needs_the_mark_of_the_session",),
    ),
    Mutant(
        "a key needs no scope",
        "    if needed not in scopes:\n",
        "    if needed not in scopes and not scopes:\n",
        (
            "test_a_missing_scope_is_named",
            "test_a_key_that_only_reads_changes_nothing",
            "test_keys_let_in_as_they_did",
        ),
    ),
    Mutant(
        "an agent has the capabilities of its person",
        "            (ANY_TOOL in grant or connector in grant or tool in grant)\n",
        "            (ANY_TOOL in grant or connector in grant or tool in grant or self.agent is not None)\n",
        ("test_a_tool_without_the_right_to_it_cannot_be_reached",),
    ),
    Mutant(
        "what people add reaches any address (SSRF)",
        "return is_public(address) or any(address in network for network in allowed)",
        "return True",
        (
            "test_the_operator_allows_networks_and_no_more",
            "test_a_forbidden_address_is_a_final_error_that_tells_no_address",
        ),
    ),
    Mutant(
        "a refusal leaves nothing in the audit trail",
        "self.add((finished, None",
        "if finished.ok:\n            self.add((finished, None",
        ("test_a_call_leaves_who_what_and_how_it_ended_but_never_its_arguments",),
    ),
    Mutant(
        "what is uncertain is tried again",
        "return self.kind in _WORTH_REPEATING and (safe or self.never_ran)",
        "return self.kind in _WORTH_REPEATING",
        (
            "test_an_unknown_outcome_of_an_unsafe_call_is_uncertain_and_not_repeated",
            "test_what_was_done_before_the_death_is_not_done_again",
        ),
    ),
    Mutant(
        "one user takes the streams of all",
        "if self._open[holder] >= self._most:",
        "if self._open[holder] >= self._most * 100:",
        ("test_one_user_cannot_take_the_streams_of_all",),
    ),
    Mutant(
        "the answer of a model may be of any size",
        "if size > _LARGEST:",
        "if size > 4 * _LARGEST:",
        ("test_an_answer_without_end_is_cut",),
    ),
    Mutant(
        "a file that is exported stays open to others",
        "os.fchmod(file.fileno(), FILE_MODE)",
        "pass",
        ("test_what_was_exported_is_imported_again",),
    ),
    Mutant(
        "servers are asked for any compression",
        '"Accept-Encoding": "gzip, deflate"',
        '"Accept-Encoding": "gzip, deflate, br"',
        ("test_a_compression_that_nobody_asked_for_is_refused_with_its_name",),
    ),
    Mutant(
        "a shell reads the command of a connector",
        "            [program, *args],\n            stdin=subprocess.PIPE,",
        '            " ".join((program, *args)), shell=True,\n            stdin=subprocess.PIPE,',
        ("test_no_shell_reads_a_command",),
    ),
    Mutant(
        "a page may run what stands in it (CSP)",
        "script-src 'self'; style-src",
        "script-src 'self' 'unsafe-inline'; style-src",
        ("test_no_page_of_the_console_runs_what_is_not_its_own",),
    ),
    Mutant(
        "a service that was told nothing listens to every machine",
        'Setting("Where the service listens.", _SERVICE)] = "127.0.0.1"',
        'Setting("Where the service listens.", _SERVICE)] = "0.0.0.0"',
        ("test_only_this_machine_reaches_a_service_that_was_told_nothing",),
    ),
)


def main() -> int:
    words = sys.argv[1:]
    wanted = [one for one in MUTANTS if not words or any(word in one.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for name in COPIED:
            copy(ROOT / name, tree / name)
        if output := failures(tree, {test for mutant in wanted for test in mutant.tests}):
            print(f"{output}\nthe named tests must pass before anything is planted", file=sys.stderr)
            return 1
        outcomes = [is_killed(tree, mutant) for mutant in wanted]
    print(f"{sum(outcomes)} of {len(outcomes)} killed")
    return 0 if all(outcomes) else 1


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    else:
        shutil.copyfile(source, target)


def is_killed(tree: Path, mutant: Mutant) -> bool:
    path = only(tree / "src", mutant.text)
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutant.text, mutant.replacement), encoding="utf-8")
    try:
        output = failures(tree, set(mutant.tests))
    finally:
        path.write_text(before, encoding="utf-8")
    by = sorted(set(re.findall(r"^FAILED \S+?::(\w+)", output, re.MULTILINE)))
    print(
        f"{'killed  ' if by else 'SURVIVED'} {mutant.name}: {', '.join(by) or 'no test failed'}", flush=True
    )
    return bool(by)


def failures(tree: Path, tests: set[str]) -> str:
    """What pytest says of the first that fails with the code of the tree; empty when all pass."""
    named = [f"{only(tree / 'tests', f'def {test}(')}::{test}" for test in sorted(tests)]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=line", *named]
    done = subprocess.run(
        command,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def only(folder: Path, text: str) -> Path:
    """The one file with this text, once."""
    found = [(path, path.read_text(encoding="utf-8").count(text)) for path in sorted(folder.rglob("*.py"))]
    places = [(path, times) for path, times in found if times]
    if [times for _, times in places] != [1]:
        told = ", ".join(f"{times} in {path.relative_to(folder)}" for path, times in places) or "nowhere"
        sys.exit(f"must be found exactly once, and is {told}:\n{text}")
    return places[0][0]


if __name__ == "__main__":
    sys.exit(main())
