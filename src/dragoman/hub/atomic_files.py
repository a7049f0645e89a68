"""Files that are written whole or not at all."""

import os
from pathlib import Path
from secrets import token_hex


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old text or the new one; a crash leaves one of them. The file's mode is kept."""
    target = path.resolve()
    fresh = target.with_name(f".{target.name}.{token_hex(4)}")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
