"""Thousands of requests made from the OpenAPI document, valid and not: none meets a fault of ours."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import patient, wait_until

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

_HERE = Path(__file__).parent
_SCHEMATHESIS = Path(sys.executable).with_name("st")
LEAST = 5000


@contextmanager
def _service(home: Path) -> Generator[str]:
    environment = {
        **os.environ,
        "DRAGOMAN_HOME": str(home),
        "DRAGOMAN_MULTI_USER": "1",
        "DRAGOMAN_DISCOVERY": "off",
        "DRAGOMAN_APPROVAL_WAIT": "0.05",
        "DRAGOMAN_MODEL": "offline",
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(_HERE / "inside_only.py")], env=environment, stdout=log, stderr=log
        )
        try:
            yield _address(home, process)
            assert process.poll() is None, (home / "log").read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(patient(20))


def _address(home: Path, process: "subprocess.Popen[bytes]") -> str:
    announced = home / "server.json"
    wait_until(lambda: announced.exists() or process.poll() is not None, within=30)
    assert process.poll() is None, (home / "log").read_text()[-2000:]
    return json.loads(announced.read_text())["url"]


def _post(url: str, path: str, token: str, body: Any) -> Any:
    request = urllib.request.Request(
        url + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=patient(30)) as response:
        return json.load(response)


def _admin_key(home: Path, url: str) -> str:
    token = (home / "token").read_text().strip()
    workspace = _post(url, "/api/workspaces", token, {"name": "fuzzed"})["id"]
    user = _post(url, "/api/users", token, {"name": "ann", "role": "admin", "workspace": workspace})["id"]
    scopes = ["read", "call", "manage", "approve", "admin"]
    wish = {"name": "all", "user": user, "workspace": workspace, "scopes": scopes}
    return _post(url, "/api/keys", token, wish)["key"]


def test_no_generated_request_is_answered_by_a_fault_of_ours(tmp_path: Path) -> None:
    with _service(tmp_path) as url:
        report = tmp_path / "report.json"
        command = [str(_SCHEMATHESIS), "run", f"{url}/api/openapi.json"]
        command += ["--header", f"Authorization: Bearer {_admin_key(tmp_path, url)}"]
        command += ["--checks", "not_a_server_error", "--phases", "examples,coverage,fuzzing"]
        # Streams of events never end; removing itself would end the visit early.
        command += ["--exclude-path", "/api/events", "--exclude-path", "/api/threads/{thread}/events"]
        command += ["--workers", "2", "--max-examples", "8"]
        command += [
            "--request-timeout",
            f"{patient(20):g}",
            "--generation-deterministic",
            "--no-color",
            "--no-shrink",
        ]
        command += ["--report", "json", "--report-json-path", str(report), "--continue-on-failure"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=patient(540), cwd=tmp_path)
        said = ended.stdout + ended.stderr
        assert ended.returncode == 0, said[-8000:]
        assert _cases(report) >= LEAST, said[-3000:]


def _cases(report: Path) -> int:
    return int(json.loads(report.read_text())["test_cases"]["generated"])
