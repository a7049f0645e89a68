"""Files that go with a message: `--attach FILE`, or `@path` in what a person typed.

A text may hold words of others (`ask "$(cat letter)"`): it names only files below the directory where one is,
and none that is hidden. What is attached is said.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

_NAMED = re.compile(r"(?<!\S)@(?=\S*[./])(\"[^\"]+\"|\S+)")
_LARGEST = 10_000_000

Attached = Annotated[
    list[Path] | None,
    typer.Option(
        "--attach",
        help="A file that the model reads with it: text or an image; several times for several. @path in the"
        " text does the same below this directory.",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]


def with_files(text: str, files: Sequence[Path] = ()) -> tuple[str, dict[str, Any]]:
    """What is said, and what the body says of the files. `@` before a path of a file is no mention."""
    found = [*files]

    def named(match: re.Match[str]) -> str:
        word = match[1].strip('"')
        for candidate in (word, word.rstrip(".,;:!?)]")):
            path = Path(candidate)
            if _may_be_named(path):
                found.append(path)
                return candidate + word[len(candidate) :]
        return match[0]

    said = _NAMED.sub(named, text)
    return said, {"attachments": [_read(path) for path in dict.fromkeys(found)]} if found else {}


def _may_be_named(path: Path) -> bool:
    try:
        here, there = Path.cwd().resolve(), path.resolve()
        below = there.relative_to(here).parts
        return there.is_file() and not any(part.startswith(".") for part in below)
    except (OSError, ValueError):  # too long for a name, or somewhere else
        return False


def names_of(body: Mapping[str, Any]) -> str:
    """For a line that says what goes along."""
    return ", ".join(one["name"] for one in body.get("attachments", ()))


def _read(path: Path) -> dict[str, Any]:
    if (size := path.stat().st_size) > _LARGEST:
        raise typer.BadParameter(
            f"{path} has {size:,} bytes; {_LARGEST:,} are the most", param_hint="--attach"
        )
    return {"name": path.name, "data": base64.b64encode(path.read_bytes()).decode()}
