"""Shows that two commits differ in names only: `python tests/contract/names/prove.py OLD NEW`.

Every Python file of OLD is parsed and walked beside its counterpart of NEW. Wherever an identifier, an
import or a word of a string differs, the pair must stand in `names.toml`. Docstrings and comments are
prose and may differ; the order of imports and of `__all__` may too.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

_MAP = tomllib.loads(Path(__file__).with_name("names.toml").read_text())
_MODULES = {f"dragoman.{old}": f"dragoman.{new}" for old, new in _MAP["modules"].items()}
_NAMED = {(key.partition(":")[2], new) for part in ("names", "words") for key, new in _MAP[part].items()}
_MOVED = {(old.rpartition(".")[2], new.rpartition(".")[2]) for old, new in _MODULES.items()}
_PAIRS = _NAMED | _MOVED
_LISTS = ("__all__", "__slots__")


def main(old: str, new: str) -> int:
    before, after = _sources(old), _sources(new)
    faults: list[str] = []
    for path, text in before.items():
        target = _moved(path)
        if target not in after:
            faults.append(f"{path}: {target} is not there")
            continue
        faults += [f"{path}: {fault}" for fault in _differences(text, after[target])]
    faults += [f"{path}: is new" for path in after.keys() - {_moved(path) for path in before}]
    print("\n".join(faults) or f"{len(before)} files are equal under {len(_PAIRS)} pairs of names")
    return bool(faults)


def _sources(commit: str) -> dict[str, str]:
    command = ["git", "archive", commit, "src", "tests", "bench"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    sources: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            if member.name.endswith(".py") and not member.name.startswith("tests/contract/names/"):
                file = files.extractfile(member)
                sources[member.name] = file.read().decode() if file else ""
    return sources


def _moved(path: str) -> str:
    module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return f"src/{_MODULES[module].replace('.', '/')}.py" if module in _MODULES else path


def _differences(old: str, new: str) -> list[str]:
    before, after = ast.parse(old), ast.parse(new)
    faults: list[str] = []
    left = _imports(after)
    for module, name, alias in _imports(before).elements():
        candidates = [name, _MODULES.get(name, name), *(to for was, to in _PAIRS if was == name)]
        aliases = [alias, *(to for was, to in _PAIRS if was == alias)]
        target = _MODULES.get(module, module)
        found = next((one for n in candidates for a in aliases if left[one := (target, n, a)]), None)
        if found is None:
            faults.append(f"{name} is no longer imported from {target}")
        else:
            left[found] -= 1
    faults += [f"{one} is imported anew" for one in left.elements()]
    _walk(_bare(before), _bare(after), faults)
    return faults


def _imports(tree: ast.AST) -> Counter[tuple[str, str, str]]:
    return Counter(
        ((node.module or "") if isinstance(node, ast.ImportFrom) else "", name.name, name.asname or "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    )


def _bare(tree: ast.Module) -> ast.Module:
    """Without docstrings and imports."""
    for node in ast.walk(tree):
        body: Any = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [one for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]
            if kept and isinstance(kept[0], ast.Expr) and isinstance(kept[0].value, ast.Constant):
                kept = kept[1:]
            node.body = kept  # type: ignore[attr-defined]
    return tree


def _walk(old: Any, new: Any, faults: list[str]) -> None:
    if type(old) is not type(new):
        faults.append(f"{type(old).__name__} became {type(new).__name__}")
    elif isinstance(old, ast.Assign) and isinstance(old.targets[0], ast.Name) and old.targets[0].id in _LISTS:
        return
    elif isinstance(old, ast.AST):
        for field in old._fields:
            _walk(getattr(old, field, None), getattr(new, field, None), faults)
    elif isinstance(old, list):
        if len(old) != len(new):
            faults.append(f"{len(old)} parts became {len(new)}")
        for one, other in zip(old, new, strict=False):
            _walk(one, other, faults)
    elif isinstance(old, str) and old != new:
        others = re.findall(r"\w+|\W", new)
        for dotted, moved in _MODULES.items():
            old = re.sub(rf"\b{re.escape(dotted)}\b(?!\w)", moved, old)
        words = re.findall(r"\w+|\W", old)
        if len(words) != len(others) or any(
            pair[0] != pair[1] and pair not in _PAIRS for pair in zip(words, others, strict=True)
        ):
            faults.append(f"{old!r} became {new!r}")
    elif old != new:
        faults.append(f"{old!r} became {new!r}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
