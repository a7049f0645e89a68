"""Files to import, read from disk: which there are, where they lie, and the variables they point to.

The only module of this package that touches the disk. A text that came through a door brings along what
belongs to it: nothing is read on its behalf.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.errors import DragomanError, InvalidConfig
from dragoman.formats.import_plan import FoundConnector, ImportPlan, ImportProblem
from dragoman.formats.parsing import MAX_TEXT
from dragoman.formats.recognition import UNNAMED, read, servers_only
from dragoman.formats.variables import BaseFolders

# Folders in which an editor keeps its files: the project is the folder around them.
_EDITOR_FOLDERS = frozenset({".vscode", ".cursor", ".windsurf", ".claude"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportText:
    """One text to import, and the text of each `envFile` that it names."""

    text: str = field(repr=False)
    name: str = UNNAMED
    places: BaseFolders = field(default_factory=BaseFolders)
    env_files: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


Importable = Path | str | ImportText | ImportPlan


def read_all(sources: Iterable[Importable]) -> list[ImportPlan]:
    """Every source by itself: one that cannot be read is a plan with a problem, and the others are read."""
    plans: list[ImportPlan] = []
    for source in sources:
        if isinstance(source, ImportPlan):
            plans.append(source)
        elif isinstance(source, Path):
            plans += [read_file(path) for path in files_in(source)]
        else:
            plans.append(_read(ImportText(text=source) if isinstance(source, str) else source))
    return plans


def read_file(path: Path) -> ImportPlan:
    try:
        return _read(load(path))
    except DragomanError as error:
        return _failed(str(path), error)


def files_in(path: Path) -> list[Path]:
    """The file itself; a folder stands for the JSON files in it: `agent_configs/`."""
    path = path.expanduser()
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def load(path: Path) -> ImportText:
    """The file with all that belongs to it; `InvalidConfig` when it cannot be read."""
    text = servers_only(_text(path), str(path))
    around = path.absolute().parent
    folder = around.parent if around.name in _EDITOR_FOLDERS else around
    places = BaseFolders(folder=str(folder), home=str(Path.home()))
    try:
        found = read(text, str(path), places).connectors
    except DragomanError:
        found = ()  # told when it is read in earnest
    env_files: dict[str, str] = {}
    for name in {one.env_file for one in found if one.env_file}:
        try:
            env_files[name] = _text(folder / name)
        except InvalidConfig:
            continue
    return ImportText(name=str(path), text=text, places=places, env_files=env_files)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_TEXT:
            raise InvalidConfig(f"{path} is larger than {MAX_TEXT // 1024 // 1024} MB")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidConfig(f"{path} cannot be read: it is no UTF-8 text") from None


def _read(source: ImportText) -> ImportPlan:
    try:
        plan = read(source.text, source.name, source.places)
    except DragomanError as error:
        return _failed(source.name, error)
    return replace(plan, connectors=tuple(_with_variables(found, source) for found in plan.connectors))


def _failed(name: str, error: DragomanError) -> ImportPlan:
    reason = f"{error.message}; {error.hint}" if error.hint else error.message
    return ImportPlan(format="unknown", source=name, problems=(ImportProblem(entry="", reason=reason),))


def _with_variables(found: FoundConnector, source: ImportText) -> FoundConnector:
    """Those of its `envFile`, all of them secret: such files are where people keep what nobody should see."""
    if not found.env_file:
        return found
    if found.env_file not in source.env_files:
        warning = f"its envFile {found.env_file!r} was not read: give it its variables yourself"
        return replace(found, warnings=(*found.warnings, warning))
    own: dict[str, str] = found.facts.get("env", {})
    variables = _variables(source.env_files[found.env_file])
    secret = tuple(f"env:{name}" for name in variables if name not in own)
    facts = {**found.facts, "env": {**variables, **own}, "secret": (*found.facts.get("secret", ()), *secret)}
    return replace(found, facts=facts)


def _variables(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and not name.startswith("#"):
            found[name.strip()] = value.strip().strip("'\"")
    return found
