"""Files to import, read from disk: which there are, where they lie, and the variables they point to.

A text that came through a door has no folder, and nothing is read from disk on its behalf.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats import FoundConnector, ImportPlan, Places, Problem, read

_MOST_BYTES = 8 * 1024 * 1024
# Folders in which an editor keeps its files: the project is the folder around them.
_EDITOR_FOLDERS = frozenset({".vscode", ".cursor", ".windsurf", ".claude"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportText:
    """One text to import. `folder` is the project that it was written for, where one knows it."""

    name: str
    text: str = field(repr=False)
    folder: str | None = None
    is_on_disk: bool = False


Importable = Path | str | ImportText | ImportPlan


def read_all(sources: Iterable[Importable]) -> list[ImportPlan]:
    """Every source by itself: one that cannot be read is a plan with a problem, and the others are read."""
    plans: list[ImportPlan] = []
    for source in sources:
        if isinstance(source, ImportPlan):
            plans.append(source)
        elif isinstance(source, str):
            plans.append(_read(ImportText(name="the text", text=source)))
        elif isinstance(source, ImportText):
            plans.append(_read(source))
        else:
            plans += [read_path(path) for path in _files(source.expanduser())]
    return plans


def read_path(path: Path) -> ImportPlan:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidConfig(f"{path} is larger than {_MOST_BYTES // 1024 // 1024} MB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        return _failed(str(path), f"{path} cannot be read: {why}")
    except InvalidConfig as error:
        return _failed(str(path), error.message)
    around = path.absolute().parent
    folder = around.parent if around.name in _EDITOR_FOLDERS else around
    return _read(ImportText(name=str(path), text=text, folder=str(folder), is_on_disk=True))


def _files(path: Path) -> list[Path]:
    """A folder stands for the JSON files in it: `agent_configs/`."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def _read(source: ImportText) -> ImportPlan:
    home = str(Path.home()) if source.is_on_disk else None
    try:
        plan = read(source.text, source.name, Places(folder=source.folder, home=home))
    except DragomanError as error:
        return _failed(source.name, error.message, error.hint)
    if not any(found.env_file for found in plan.connectors):
        return plan
    return replace(plan, connectors=tuple(_with_env_file(found, source) for found in plan.connectors))


def _failed(name: str, reason: str, hint: str | None = None) -> ImportPlan:
    problem = Problem(entry="", reason=f"{reason}; {hint}" if hint else reason)
    return ImportPlan(format="unknown", source=name, problems=(problem,))


def _with_env_file(found: FoundConnector, source: ImportText) -> FoundConnector:
    """Its variables, all of them secret: such files are where people keep what nobody should see."""
    if not found.env_file:
        return found
    variables: dict[str, str] | None = None
    if source.is_on_disk:
        variables = _variables(Path(source.folder or ".") / found.env_file)
    if variables is None:
        warning = f"its envFile {found.env_file!r} was not read: give it its variables yourself"
        return replace(found, warnings=(*found.warnings, warning))
    own: dict[str, str] = found.facts.get("env", {})
    secret = tuple(f"env:{name}" for name in variables if name not in own)
    facts = {**found.facts, "env": {**variables, **own}, "secret": (*found.facts.get("secret", ()), *secret)}
    return replace(found, facts=facts)


def _variables(path: Path) -> dict[str, str] | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    found: dict[str, str] = {}
    for line in lines:
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and not name.startswith("#"):
            found[name.strip()] = value.strip().strip("'\"")
    return found
