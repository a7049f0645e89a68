"""The wheel in an empty environment, without and with each extra: how large it is, and how soon it is there.

Sizes are of all files that an installation writes, programs included, with the bytecode that pip compiles.
Packages come in the versions of requirements.lock, from the cache of uv where it has them.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

import lab

ROOT = Path(__file__).parents[1]
UV = str(Path(sys.executable).with_name("uv"))
LARGEST = 150.0  # MB of the core
TIMED = ("", "agents", "all")


class Environment:
    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        subprocess.run([UV, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
        self._folder = folder
        self._bin = folder / "bin"
        self._bare = _size(folder)  # what an environment without any package takes
        wanted = f"dragoman{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
        words = ["--python", str(self._bin / "python"), "-c", str(ROOT / "requirements.lock"), wanted]
        subprocess.run([UV, "pip", "install", "-q", "--compile-bytecode", *words], check=True)
        self.environment = {"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(folder / "home")}

    @property
    def packages(self) -> int:
        return len([*self._folder.glob("lib/python*/site-packages/*.dist-info")])

    @property
    def megabytes(self) -> float:
        return (_size(self._folder) - self._bare) / 1e6

    @property
    def megabytes_of_bytecode(self) -> float:
        return sum(file.stat().st_size for file in self._folder.rglob("*.pyc")) / 1e6

    def seconds(self, *words: str, times: int) -> float:
        """The median of a program of this environment, from its start to its end."""
        taken: list[float] = []
        for _ in range(times):
            since = time.perf_counter()
            subprocess.run(self._command(words), env=self.environment, capture_output=True, check=True)
            taken.append(time.perf_counter() - since)
        return statistics.median(taken)

    def seconds_to_serve(self, times: int) -> float:
        """From the start of `dragoman serve` to its first answer; the database is there already."""
        return statistics.median([self._served() for _ in range(times + 1)][1:])

    def _served(self) -> float:
        port = _free_port()
        since = time.perf_counter()
        command = self._command(["dragoman", "serve", "--port", str(port)])
        process = subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL)
        try:
            while process.poll() is None:
                try:
                    with urlopen(f"http://127.0.0.1:{port}/health"):
                        return time.perf_counter() - since
                except URLError:
                    time.sleep(0.01)
            raise SystemExit(f"dragoman serve ended with {process.returncode}")
        finally:
            process.terminate()
            process.wait()

    def _command(self, words: Sequence[str]) -> list[str]:
        return [str(self._bin / words[0]), *words[1:]]


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def measure(report: lab.Report, folder: Path, times: int) -> None:
    subprocess.run(
        [
            UV,
            "build",
            "-q",
            "--wheel",
            "--no-build-isolation",
            "-p",
            sys.executable,
            "-o",
            str(folder),
            str(ROOT),
        ],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sizes: list[list[object]] = []
    speeds: list[list[object]] = []
    for extra in ["", *project["optional-dependencies"]]:
        made = Environment(folder / f"with-{extra}", wheel, extra)
        name = f"dragoman[{extra}]" if extra else "dragoman"
        sizes.append([name, made.packages, made.megabytes, made.megabytes_of_bytecode])
        if not extra:
            core = made.megabytes
            report.verdict(f"the core takes at most {LARGEST:g} MB", f"{core:.1f} MB", met=core <= LARGEST)
        if extra in TIMED:
            nothing = made.seconds("python", "-c", "", times=times)
            hub = made.seconds("python", "-c", "from dragoman import Hub", times=times)
            helped = made.seconds("dragoman", "--help", times=times)
            speeds.append([name, nothing, hub, helped, made.seconds_to_serve(times)])
    report.table("Installed", ["what", "packages", "MB", "of them bytecode"], sizes)
    report.table(
        "Seconds, medians",
        ["what", "python alone", "from dragoman import Hub", "dragoman --help", "serve to first answer"],
        speeds,
    )
    report.notes.append(f"The wheel itself has {wheel.stat().st_size / 1e6:.1f} MB.")


def main() -> None:
    given = lab.options(__doc__ or "", times=(7, "how often each program is started"))
    report = lab.Report("install")
    with TemporaryDirectory(prefix="dragoman-install-") as folder:
        measure(report, Path(folder), 1 if given.quick else given.times)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
