"""What the pages show works: every shell and Python snippet that can run here is run, page by page.

The snippets of a page are one shell script in an empty folder with a home of its own. `dragoman serve` goes
on in the background; 8765 is a port that is free. The README's are run a second time, where they ran before.
"""

import os
import re
import shlex
import socket
import subprocess
import textwrap
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from docs.forked_programs import forked_programs
from dragoman.cli.root import app
from patience import patient
from snippets import command_lines, snippets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAPERS = [ROOT / name for name in ("SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [README, *PAPERS, *sorted(DOCS.rglob("*.md"))]
RUN = [page for page in PAGES if any(not one.why_not for one in snippets(page, "sh", "python"))]
# Their servers come from the package index.
REAL = {DOCS / "start.md", README}
# What a reader sees of them, among other things.
SHOWN = {README: ("mcp_time_get_current_time", "Europe/Rome", "180.0", "Asia/Tokyo")}

# Where a machine's mirror of packages may be: with many users what is inside is the operator's to open.
INSIDE = "0.0.0.0/0"
HEAD = """
set -euo pipefail
end() {  # a service that stops takes its address back last
    kill $(jobs -p) 2>/dev/null || true
    wait
    for _ in $(seq 1200); do [ -e "$DRAGOMAN_HOME/server.json" ] || return 0; sleep 0.05; done
}
trap end EXIT
serve() {
    dragoman serve "$@" >serve.out 2>&1 &
    for _ in $(seq 1200); do [ -s "$DRAGOMAN_HOME/server.json" ] && return; sleep 0.05; done
    cat serve.out >&2
    return 1
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    with forked_programs(tmp_path_factory.mktemp("programs")) as folder:
        yield folder


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.real if page in REAL else (), id=named(page)) for page in RUN],
)
def test_the_snippets_of_a_page_work(page: Path, programs: Path, tmp_path: Path) -> None:
    work, people, port = tmp_path / "work", tmp_path / "people", free_port()
    work.mkdir()
    people.mkdir()
    script = tmp_path / "page.sh"
    script.write_text(HEAD + "".join(parts(page, tmp_path, port)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    environment = {
        "UV_CACHE_DIR": str(Path.home() / ".cache" / "uv"),
        **kept,
        "PATH": os.pathsep.join((str(programs), str(ROOT / ".venv" / "bin"), os.environ["PATH"])),
        "HOME": str(people),
        "DRAGOMAN_HOME": str(tmp_path / "home"),
        "DRAGOMAN_PORT": port,
        "DRAGOMAN_MODEL": "offline",
        "DRAGOMAN_ALLOWED_NETWORKS": INSIDE,
        "NO_COLOR": "1",
    }
    for _ in range(2 if page == README else 1):
        done = subprocess.run(
            ["bash", str(script)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patient(100),
        )
        assert done.returncode == 0, f"{done.stderr[-3000:]}\n{done.stdout[-2000:]}"
        for words in SHOWN.get(page, ()):
            assert words in done.stdout


def parts(page: Path, folder: Path, port: str) -> list[str]:
    made: list[str] = []
    for one in snippets(page, "sh", "python"):
        if one.why_not:
            continue
        made.append(f"echo '# {named(page)}, line {one.line}' >&2\n")
        text = one.text.replace("8765", port)
        if one.language == "python":
            file = folder / f"line_{one.line}.py"
            file.write_text(as_program(text))
            made.append(f"python {file}\n")
        else:
            made.append(re.sub(r"^dragoman serve", "serve", text, flags=re.MULTILINE))
    return made


def as_program(text: str) -> str:
    """What awaits outside of a function is put into one."""
    try:
        compile(text, "snippet", "exec")
    except SyntaxError:
        inside = textwrap.indent(text, "    ")
        return f"import asyncio\n\nasync def main():\n{inside}\n\nasyncio.run(main())\n"
    return text


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@cache
def options() -> dict[str, set[str]]:
    """Every option of every command, by its path."""
    found: dict[str, set[str]] = {}

    def walk(command: Any, path: str) -> None:
        known = command.get_params(typer.Context(command))
        found[path] = {flag for one in known for flag in (*one.opts, *one.secondary_opts)}
        for name, child in getattr(command, "commands", {}).items():
            walk(child, f"{path} {name}")

    walk(get_command(app), "dragoman")
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_on_a_page_exists(page: Path) -> None:
    """Those of snippets that are not run, too: what was renamed must not stay."""
    for snippet in snippets(page, "sh"):
        for line in command_lines(snippet):
            words = [*shlex.split(line, comments=True), ""]
            path = max((one for one in options() if f"{line} ".startswith(f"{one} ")), key=len)
            ours = words[: words.index("--")] if "--" in words else words
            unknown = {word.partition("=")[0] for word in ours if word.startswith("--")} - options()[path]
            assert not unknown, f"{named(page)}, line {snippet.line}: {line}"
            is_group = any(other.startswith(f"{path} ") for other in options())
            assert not is_group or words[len(path.split())].startswith(("", "-")), line


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_snippet_is_overlooked(page: Path) -> None:
    """By another name of its language, or because it is indented."""
    fences = re.findall(r"^[ >]*```[ {.]*(\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert not {"bash", "shell", "console", "zsh", "shellsession", "py", "pycon"} & set(fences)
    assert len(snippets(page, "sh", "python")) == sum(one in ("sh", "python") for one in fences)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_what_is_not_run_is_shell_or_python(page: Path) -> None:
    """The mark says something of a snippet that would be run otherwise."""
    marks = len(re.findall(r"^\s*<!-- not run: ", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert marks == sum(one.why_not is not None for one in snippets(page, "sh", "python"))
