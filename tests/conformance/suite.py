"""The official conformance suite as a process, and what it said of each scenario."""

import asyncio
import re

import pytest

from conformance import node_tools
from conformance.expectations import NOT_OURS, ONE_CHECK
from patience import deadline

_VERDICT = re.compile(r"^\s*([✓✗~])\s+(?:FAIL\s+)?([a-z0-9-]+):?\s+(\d+) passed, (\d+) failed", re.MULTILINE)


async def run(package: str, url: str, *options: str) -> str:
    tools = node_tools.find()
    if isinstance(tools, str):
        pytest.skip(tools)
    command = [
        *tools.program(package, "dist", "index.js"),
        "server",
        "--url",
        url,
        *options,
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=tools.environment,
        cwd=tools.folder,
    )
    try:
        async with deadline(300):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode()


def verdicts(text: str) -> dict[str, bool]:
    return {
        match[2]: int(match[4]) == (1 if match[2] in ONE_CHECK else 0) for match in _VERDICT.finditer(text)
    }


def check(text: str, revision: str) -> None:
    found = verdicts(text)
    assert len(found) > 25, text
    wrong = {name for name, passed in found.items() if not passed} - NOT_OURS[revision].keys()
    assert not wrong, "\n".join(line for line in text.splitlines() if any(name in line for name in wrong))
    stale = {name for name in NOT_OURS[revision] if found.get(name)}
    assert not stale, f"these pass now and need no excuse: {stale}"
