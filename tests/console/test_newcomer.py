"""A newcomer's first hour: from the link that `dragoman serve` prints to a run that is read.

Nothing of ours is in this process: the service as people start it, a published server of npm, real Chromium.
`bench/cluster_doors.py` spends the same hour at three nodes.
"""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from cli.command_line import running_service
from console.newcomer import spend_first_hour

pytestmark = [pytest.mark.anyio, pytest.mark.real]


async def test_a_newcomer_gets_from_the_printed_link_to_a_run_that_is_read(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRAGOMAN_MODEL", "offline")
    with running_service() as service:
        await spend_first_hour(browser, tmp_path / "papers", service.console, [service.pid])
        assert service.stop() == 0
