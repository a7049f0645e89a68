"""Why a program did not become a server: what real package runners, interpreters and servers print of it."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from descriptors import no_descriptors
from dragoman.connections.process import spawn
from dragoman.connections.start_failures import ErrorLines, diagnosed, missing_variable
from dragoman.connections.stdio import remove_half_installed
from dragoman.errors import InvalidConfig, Unreachable
from patience import deadline
from servers.hubs import open_hub, until

NPM_404 = """\
npm warn Unknown user config "nodedir". This will stop working in the next major version of npm.
npm error code E404
npm error 404 Not Found - GET https://registry.example/@acme%2fnone - Not found
npm error 404
npm error 404  The requested resource '@acme/none@*' could not be found or you do not have permission.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/ann/.npm/_logs/debug-0.log"""
STRIPE = """\
\x1b[33mThe --tools flag has been removed.\x1b[39m
\x1b[31m🚨  Error initializing Stripe MCP server:\x1b[39m
   Stripe API key not provided. Please pass --api-key=$KEY or set STRIPE_SECRET_KEY.
/home/ann/.npm/_npx/bce/node_modules/@stripe/mcp/dist/cli.js:34
        throw new Error('Stripe API key not provided.');
              ^
Error: Stripe API key not provided. Please pass --api-key=$KEY or set STRIPE_SECRET_KEY.
    at parseArgs (/home/ann/.npm/_npx/bce/node_modules/@stripe/mcp/dist/cli.js:34:15)
Node.js v20.20.2"""
UV_NONE = """\
error: No solution found when resolving tool dependencies
  cause: Because acme-none was not found in the package registry and you require acme-none."""
OLD_UV_NONE = """\
  × No solution found when resolving tool dependencies:
  ╰─▶ Because acme-none was not found in the package registry and you require acme-none."""
CLICK = """\
Installed 32 packages in 150ms
Usage: mcp-server-git [OPTIONS]
Try 'mcp-server-git --help' for help.
Error: No such option '--bogus'. Did you mean '--verbose'?"""
ARGPARSE = """\
usage: server.py [-h] folder
server.py: error: the following arguments are required: folder"""
TRACEBACK = """\
INFO starting
Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    token = os.environ["GITHUB_TOKEN"]
KeyError: 'GITHUB_TOKEN'"""
NO_MODULE = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
ModuleNotFoundError: No module named 'acme'"""
OUTAGE = """\
starting
Error: connect ECONNREFUSED 127.0.0.1:5432
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1607:16)
Node.js v20.20.2"""

CASES = [
    (NPM_404, "The requested resource '@acme/none@*' could not be found", "package", True),
    (STRIPE, "Error: Stripe API key not provided", "--secret-env STRIPE_SECRET_KEY=…", True),
    (UV_NONE, "Because acme-none was not found in the package registry", "package", True),
    (OLD_UV_NONE, "Because acme-none was not found in the package registry", "package", True),
    (CLICK, "Error: No such option '--bogus'", "arguments", True),
    (ARGPARSE, "server.py: error: the following arguments are required", "arguments", True),
    (TRACEBACK, "KeyError: 'GITHUB_TOKEN'", "--secret-env GITHUB_TOKEN=…", True),
    (NO_MODULE, "ModuleNotFoundError: No module named 'acme'", "package", True),
    (OUTAGE, "Error: connect ECONNREFUSED 127.0.0.1:5432", None, False),
]


@pytest.mark.parametrize(("printed", "cause", "hint", "is_permanent"), CASES)
def test_the_cause_is_the_line_that_says_it(
    printed: str, cause: str, hint: str | None, is_permanent: bool
) -> None:
    lines, errors = tuple(printed.splitlines()), ErrorLines()
    for line in lines:
        errors.take(line)
    failure = diagnosed("acme", lines, errors.first)
    assert failure.cause.startswith(cause)
    assert failure.is_permanent is is_permanent
    assert failure.hint is None if hint is None else hint in (failure.hint or "")


def test_the_cause_is_kept_however_much_is_printed_after_it() -> None:
    errors = ErrorLines()
    for line in ["Error: STRIPE_SECRET_KEY is required", *(f"    at step {n}" for n in range(5000))]:
        errors.take(line)
    assert errors.first == "Error: STRIPE_SECRET_KEY is required"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Please set the NOTION_API_KEY environment variable", "NOTION_API_KEY"),
        ("Missing required environment variables: SLACK_BOT_TOKEN, SLACK_TEAM_ID", "SLACK_BOT_TOKEN"),
        ("process.env.LINEAR_KEY is not defined", "LINEAR_KEY"),
        ("Error [ERR_MODULE_NOT_FOUND]: not found", None),
        ("listening on HTTP_PORT", None),
        ("GITHUB_TOKEN is set", None),
    ],
)
def test_a_missing_variable_is_recognised(text: str, name: str | None) -> None:
    assert missing_variable(text) == name


@pytest.mark.anyio
async def test_a_missing_key_is_said_with_the_way_to_set_it_and_not_tried_again(tmp_path: Path) -> None:
    program = (
        "import sys; sys.exit('Error: STRIPE_SECRET_KEY is required' + '\\n  at x' * 300 + '\\nNode.js v20')"
    )
    async with open_hub(tmp_path) as hub:
        view = await hub.connectors.add("stripe", command=sys.executable, args=["-c", program])
        status = view.status
        assert status.state == "error"
        assert status.cause == "the server exited with code 1: Error: STRIPE_SECRET_KEY is required"
        assert status.next_attempt is None
        assert "STRIPE_SECRET_KEY" in (status.hint or "")
        fixed = (
            "import os, runpy, sys; os.environ['STRIPE_SECRET_KEY'];"
            "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        )
        server = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")
        folder = os.path.dirname(server)
        await hub.connectors.update(
            "stripe",
            args=["-c", f"import sys; sys.path.insert(0, {folder!r});{fixed}", server],
            env={"STRIPE_SECRET_KEY": "sk_test_1234567890"},
            secret=["STRIPE_SECRET_KEY"],
        )
        assert (await hub.connectors.get("stripe")).status.state == "connected"


@pytest.mark.anyio
async def test_an_outage_at_the_start_is_tried_again(tmp_path: Path) -> None:
    gate = tmp_path / "files" / "gate"
    gate.parent.mkdir()
    server = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")
    async with open_hub(tmp_path / "home") as hub:
        view = await hub.connectors.add(
            "late",
            command=sys.executable,
            args=["-S", "-E", server, "--require-file", str(gate)],
            mounts=[str(gate.parent)],
            reconnect={"delay": 0.1, "cap": 0.2},
        )
        assert view.status.state != "connected"
        gate.touch()

        async def is_connected() -> bool:
            return (await hub.connectors.get("late")).status.state == "connected"

        await until(is_connected)


def test_what_an_interrupted_npx_leaves_is_removed_and_nothing_else(tmp_path: Path) -> None:
    began = time.time() - 1
    half, whole, old = (tmp_path / "_npx" / name for name in ("half", "whole", "old"))
    for folder in (half, whole, old):
        (folder / "node_modules" / "acme").mkdir(parents=True)
        (folder / "node_modules" / "acme" / "package.json").touch()
    (whole / "node_modules" / ".package-lock.json").write_text("{}")
    for path in (old / "node_modules", old):
        os.utime(path, (began - 100, began - 100))
    remove_half_installed({"npm_config_cache": str(tmp_path)}, began)
    assert not half.exists()
    assert whole.exists()
    assert old.exists()  # somebody else's


def test_a_program_that_the_machine_cannot_start_now_is_tried_again_and_a_wrong_one_is_not(
    tmp_path: Path,
) -> None:
    with no_descriptors(), pytest.raises(Unreachable, match="Too many open files"):
        spawn(sys.executable, [], {}, None)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(InvalidConfig, match="could not be started"):
        spawn(str(tmp_path / "text"), [], {}, None)


@pytest.mark.anyio
async def test_a_start_that_is_cancelled_at_any_step_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """A pipe that stayed with the loop would keep the next program that gets its number from being heard."""
    for steps in range(8):
        is_up = tmp_path / str(steps)
        # What it leaves behind holds its output open: nothing says that it has ended.
        program = f"env -i setsid sleep 2 & touch {is_up}; exec cat"
        process = spawn("/bin/sh", ["-c", program], dict(os.environ), None)
        start = asyncio.create_task(process.start(lambda _: None, 1000, lambda: None))
        for _ in range(steps):
            await asyncio.sleep(0)
        start.cancel()
        await asyncio.wait([start])
        await until(is_up.exists)
        process.kill()
        await process.close()
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        following = spawn("/bin/cat", [], {}, None)
        await following.start(heard.put_nowait, 1000, lambda: None)
        following.write(b"hello\n")
        async with deadline(5):
            assert (await heard.get()).strip() == b"hello"
        await following.close()
