"""What an interrupted `npx` leaves behind: it would fail for ever with half a package, so it is removed.

uv and pip write beside their caches and rename when all is there; npx installs in place.
"""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def remove_half_installed(env: Mapping[str, str], since: float) -> None:
    """Removes each folder of npx that was written to since then and has not come to its end.

    npm writes its own lock file into `node_modules` when everything else is there.
    """
    home = env.get("HOME")
    cache = env.get("npm_config_cache") or env.get("NPM_CONFIG_CACHE") or (home and f"{home}/.npm")
    if not cache:
        return
    for folder in _folders(Path(cache) / "_npx"):
        with suppress(OSError):
            is_whole = (folder / "node_modules" / ".package-lock.json").exists()
            if not is_whole and _last_written(folder) >= since:
                shutil.rmtree(folder, ignore_errors=True)


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []


def _last_written(folder: Path) -> float:
    inside = (folder, folder / "node_modules")
    return max(one.stat().st_mtime for one in inside if one.exists())
