"""Files that go with a message: `--attach FILE`, or `@path` in what a person typed."""

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

_NAMED = re.compile(r"(?<!\S)@(?=\S*[./~])(\"[^\"]+\"|\S+)")
_LARGEST = 10_000_000

Attached = Annotated[
    list[Path] | None,
    typer.Option(
        "--attach",
        help="A file that the model reads with it: text or an image; several times for several. @path in the"
        " text does the same.",
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
            path = Path(candidate).expanduser()
            if path.is_file():
                found.append(path)
                return candidate + word[len(candidate) :]
        return match[0]

    said = _NAMED.sub(named, text)
    return said, {"attachments": [_read(path) for path in dict.fromkeys(found)]} if found else {}


def _read(path: Path) -> dict[str, Any]:
    if (size := path.stat().st_size) > _LARGEST:
        raise typer.BadParameter(
            f"{path} has {size:,} bytes; {_LARGEST:,} are the most", param_hint="--attach"
        )
    return {"name": path.name, "data": base64.b64encode(path.read_bytes()).decode()}
