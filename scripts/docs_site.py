"""Builds the documentation: `docs/`, the reference that is made from the code, and the project's own papers.

    docs_site.py build [FOLDER]    build/docs unless said otherwise; a link that leads nowhere is an error
    docs_site.py serve             the same, shown at http://localhost:8000 and built anew when a page changes

FOLDER/pages is what the site is made of, FOLDER/site the site: each page as HTML and, beside it, as Markdown,
with llms.txt as the list of them. Nothing is fetched, neither here nor by who reads it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "docs"
EXAMPLES = ROOT / "examples"
SITE = ROOT / "build" / "docs"
# Files of the repository that have a place in the site: links to them lead there.
PAPERS = {
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
    "deploy/prometheus/alerts.yml": "deploy/alerts.yml",
    "deploy/grafana/dashboard.json": "deploy/dashboard.json",
}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
EXAMPLE = re.compile(r"^<!-- example: (\S+) -->$", re.MULTILINE)
PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)]+\.svg)\)$", re.MULTILINE)


def gathered() -> dict[str, str]:
    """Every page by its path in the site, as Markdown."""
    # Imported here: looking at changed pages must not take as long as reading the whole package.
    import reference_pages as made

    pages = {str(path.relative_to(SOURCES)): path for path in SOURCES.rglob("*.md")}
    pages |= {place: ROOT / paper for paper, place in PAPERS.items() if place.startswith("project/")}
    texts = {place: linked(path, place) for place, path in pages.items()}
    texts["reference/errors.md"] = made.with_facts(texts["reference/errors.md"], made.error_facts())
    texts["reference/events.md"] = made.with_facts(texts["reference/events.md"], made.event_facts())
    texts["reference/metrics.md"] = texts["reference/metrics.md"].replace(
        "<!-- metrics -->\n", made.metrics_table()
    )
    texts["reference/commands.md"] = made.commands_page()
    texts["reference/rest.md"] = made.rest_page()
    texts["reference/library.md"] = made.library_page()
    return texts


def linked(source: Path, place: str) -> str:
    """A page whose links to files of the repository lead to where these are in the site."""

    def moved(link: re.Match[str]) -> str:
        target = os.path.relpath((source.parent / link[0]).resolve(), ROOT)
        inside = PAPERS.get(target) or target.removeprefix("docs/")
        return os.path.relpath(inside, Path(place).parent)

    return EXAMPLE.sub(shown, LINK.sub(moved, source.read_text(encoding="utf-8")))


def shown(name: re.Match[str]) -> str:
    """A program of `examples/`, whole: what the page says is what the tests run."""
    return f"```python\n{(EXAMPLES / name[1]).read_text(encoding='utf-8')}```"


def with_pictures(text: str, folder: Path) -> str:
    """Pictures become part of the page, so that they take its colours."""

    def drawn(picture: re.Match[str]) -> str:
        svg = (folder / picture[2]).read_text(encoding="utf-8")
        svg = re.sub(r"<style>.*?</style>\s*|^\s+|\n(?=\s*\n)", "", svg, flags=re.DOTALL | re.MULTILINE)
        svg = svg.replace("<svg ", f'<svg role="img" aria-label="{picture[1]}" ', 1)
        return f'<div class="picture">\n{svg.strip()}\n</div>'

    return PICTURE.sub(drawn, text)


def put(target: Path) -> dict[str, str]:
    """Writes what the site is made of; only what changed is touched."""
    import reference_pages as made

    pages = target / "pages"
    texts = gathered()
    files: dict[str, str | Path] = {
        place: with_pictures(text, (SOURCES / place).parent) for place, text in texts.items()
    }
    for path in SOURCES.rglob("*"):
        if path.is_file() and path.suffix != ".md" and path.name != "zensical.toml":
            files[str(path.relative_to(SOURCES))] = path
    files |= {place: ROOT / paper for paper, place in PAPERS.items() if place.startswith("deploy/")}
    files["reference/openapi.json"] = json.dumps(made.openapi(), indent=1)
    for old in pages.rglob("*"):
        if old.is_file() and str(old.relative_to(pages)) not in files:
            old.unlink()
    for place, content in files.items():
        file = pages / place
        whole = content.read_bytes() if isinstance(content, Path) else content.encode()
        if not file.exists() or file.read_bytes() != whole:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(whole)
    shutil.copyfile(SOURCES / "zensical.toml", target / "zensical.toml")
    return texts


def build(target: Path) -> None:
    shutil.rmtree(target / "site", ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    texts = put(target)
    site = target / "site"
    run_zensical(target, "build", "--clean", "--strict")
    for place, text in texts.items():
        (site / place).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text(llms(texts), encoding="utf-8")


def llms(texts: dict[str, str]) -> str:
    """The pages for who reads them with a model, in the order of the site, each with its first sentence."""
    project = tomllib.loads((SOURCES / "zensical.toml").read_text(encoding="utf-8"))["project"]
    made = f"# {project['site_name']}\n\n> {project['site_description']}\n\n## Pages\n\n"
    for entry in project["nav"]:
        ((title, inside),) = entry.items()
        if isinstance(inside, str):
            made += line(title, inside, texts)
        else:
            made += f"\n## {title}\n\n" + "".join(
                line(*one, texts) for page in inside for one in page.items()
            )
    return made


def line(title: str, place: str, texts: dict[str, str]) -> str:
    paragraphs = re.split(r"\n\s*\n", texts[place])
    plain = next((one for one in paragraphs if re.match(r"[\w`*\[]", one)), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(plain.split()))
    sentence = re.split(r"(?<=[.:])\s", plain)[0].rstrip(":.")
    return f"- [{title}]({place}): {sentence}\n"


def serve(target: Path) -> None:
    put(target)
    threading.Thread(target=follow, args=(target,), daemon=True).start()
    run_zensical(target, "serve")


def follow(target: Path) -> None:
    seen = stamps()
    while True:
        time.sleep(0.5)
        if (now := stamps()) != seen:
            seen = now
            put(target)


def stamps() -> dict[Path, Any]:
    paths = (*SOURCES.rglob("*"), *EXAMPLES.glob("*.py"))
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


def run_zensical(folder: Path, *words: str) -> None:
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run([program, *words], cwd=folder, check=False)  # noqa: S603 - our own tool
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [] | ["build"]:
            build(SITE)
        case ["build", folder]:
            build(Path(folder))
        case ["serve"]:
            serve(SITE)
        case _:
            sys.exit(__doc__)
