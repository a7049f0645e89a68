"""The terminal runs in a real sandbox or not at all. Every test runs in each sandbox that works here."""

import asyncio
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.connections.native import terminal_tool
from dragoman.connections.native.sandbox import CommandSandbox, get_sandbox, installed_sandboxes, why_broken
from dragoman.connections.native.terminal import TerminalLimits
from dragoman.errors import InvalidConfig
from dragoman.scope import Caller
from dragoman.tool import RawResult
from patience import patient, until

pytestmark = pytest.mark.anyio
WORKING = [sandbox for sandbox in installed_sandboxes() if why_broken(sandbox) is None]


@pytest.fixture(params=WORKING or [None], ids=lambda sandbox: sandbox.name if sandbox else "none")
def sandbox(request: pytest.FixtureRequest) -> CommandSandbox:
    if request.param is None:
        pytest.skip("no sandbox works on this machine")
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("the secret outside")
    return inside


async def run(sandbox: CommandSandbox, root: Path, command: str, **arguments: Any) -> dict[str, Any]:
    answer = await terminal_tool(root, sandbox=sandbox).call({"command": command, **arguments}, Caller())
    assert not answer.is_error, answer.content
    return answer.structured


async def failure(sandbox: CommandSandbox, root: Path, command: str, **arguments: Any) -> RawResult:
    answer = await terminal_tool(root, sandbox=sandbox).call({"command": command, **arguments}, Caller())
    assert answer.is_error, answer.structured
    return answer


def test_the_terminal_is_had_with_a_sandbox_or_refused_with_a_hint(root: Path) -> None:
    if WORKING:
        assert terminal_tool(root).definition.annotations.destructive is True
        assert get_sandbox().name == WORKING[0].name
        return
    with pytest.raises(InvalidConfig) as caught:
        terminal_tool(root)
    assert "bubblewrap" in (caught.value.hint or "")


def test_where_no_program_is_installed_there_is_no_sandbox(root: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        get_sandbox(search_path=str(root))
    assert "bubblewrap" in (caught.value.hint or "")
    assert caught.value.cause


@dataclass(frozen=True)
class Unconfined:
    """A sandbox that is none: it runs the command on the host."""

    name: str = "unconfined"

    def arguments(self, root: Path, command: str) -> list[str]:
        return ["/bin/sh", "-c", command]


def test_a_sandbox_that_does_not_confine_counts_as_broken() -> None:
    assert why_broken(Unconfined()) is not None


async def test_a_command_has_output_and_an_exit_code(sandbox: CommandSandbox, root: Path) -> None:
    answer = await run(sandbox, root, "echo out; echo err >&2; exit 3")
    assert answer == {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "truncated": False}


async def test_the_working_directory_can_be_written_and_is_the_real_one(
    sandbox: CommandSandbox, root: Path
) -> None:
    (root / "given.txt").write_text("from the host")
    answer = await run(sandbox, root, "pwd; cat given.txt; echo new > made.txt")
    assert answer["stdout"] == "/workspace\nfrom the host"
    assert (root / "made.txt").read_text() == "new\n"
    assert (root / "made.txt").stat().st_uid == os.geteuid()


async def test_the_hosts_passwd_cannot_be_seen(sandbox: CommandSandbox, root: Path) -> None:
    host = Path("/etc/passwd").read_text()
    answer = await run(
        sandbox, root, "cat /etc/passwd; cat /etc/shadow /etc/hostname /etc/machine-id; ls /etc"
    )
    people = [line for line in host.splitlines() if not line.startswith(("root:", "nobody:", "sandbox:"))]
    assert people
    assert not any(line in answer["stdout"] for line in host.splitlines() if not line.startswith("nobody:"))
    assert "shadow" not in answer["stdout"]


async def test_nothing_else_of_the_host_can_be_seen(sandbox: CommandSandbox, root: Path) -> None:
    outside = root.parent / "secret.txt"
    answer = await run(
        sandbox, root, f"cat ../secret.txt {outside}; ls -A / /root /home /var /sys /proc/1/root/root"
    )
    assert "the secret outside" not in answer["stdout"]
    listed = answer["stdout"].split("/:\n")[1].split("\n\n")[0].split()
    assert set(listed) <= {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "sbin",
        "tmp",
        "usr",
        "workspace",
    }


async def test_a_link_out_of_the_directory_leads_nowhere(sandbox: CommandSandbox, root: Path) -> None:
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    answer = await run(sandbox, root, "cat link.txt; ln -s /proc/1/root/etc/shadow other; cat other")
    assert answer["stdout"] == ""


async def test_the_system_cannot_be_changed(sandbox: CommandSandbox, root: Path) -> None:
    # The kernel's setting is overwritten with itself: a sandbox that is broken one day does no harm here.
    answer = await run(
        sandbox,
        root,
        "place=/proc/sys/kernel/core_pattern; value=$(cat $place); (echo $value > $place) && echo wrote it;"
        " for place in /usr/x /etc/x /x /dev/x; do (echo x > $place) && echo wrote $place; done; true",
    )
    assert answer["stdout"] == ""


async def test_there_is_no_capability_and_no_way_to_get_one(sandbox: CommandSandbox, root: Path) -> None:
    answer = await run(
        sandbox,
        root,
        "grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status;"
        " unshare -U true && echo nested; mount -t tmpfs none /tmp && echo mounted",
    )
    assert answer["stdout"].split() == [
        *("CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"),
    ]


async def test_no_variable_of_ours_gets_in(
    sandbox: CommandSandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary-in-our-environment")
    answer = await run(sandbox, root, "env; cat /proc/*/environ")
    assert "canary" not in answer["stdout"]
    assert "HOME=/workspace" in answer["stdout"]


async def test_there_is_no_network(sandbox: CommandSandbox, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(0.2)
        answer = await run(
            sandbox, root, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; cat /proc/net/dev"
        )
        assert "reached" not in answer["stdout"]
        assert "eth" not in answer["stdout"]
        with pytest.raises(TimeoutError):
            listener.accept()


async def test_no_process_of_the_host_can_be_seen(sandbox: CommandSandbox, root: Path) -> None:
    answer = await run(
        sandbox, root, "ls -d /proc/[0-9]* | wc -l; kill -9 $PPID; kill -0 " + str(os.getpid())
    )
    assert int(answer["stdout"].split()[0]) < 10


async def test_no_descriptor_of_ours_gets_in(sandbox: CommandSandbox, root: Path) -> None:
    with open(root.parent / "secret.txt") as secret:
        os.set_inheritable(secret.fileno(), True)
        answer = await run(sandbox, root, "ls -l /proc/self/fd; ls -l /proc/1/fd")
    assert "secret" not in answer["stdout"]


def marked_processes(mark: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


async def test_the_timeout_kills_children_of_children(sandbox: CommandSandbox, root: Path) -> None:
    mark = f"87{time.time_ns() % 10**9}"
    command = (
        f"(setsid sh -c 'sleep {mark} & sleep {mark}' &) ; nohup sleep {mark} & echo begun; sleep {mark}"
    )
    began = time.monotonic()
    answer = await failure(sandbox, root, command, timeout=1)
    assert time.monotonic() - began < patient(6)
    assert "more than 1 s" in answer.content[0]["text"]
    assert "begun" in answer.content[0]["text"]
    await gone(mark)


async def gone(mark: str) -> None:
    await until(lambda: not marked_processes(mark))


async def test_a_child_left_in_the_background_dies_with_its_command(
    sandbox: CommandSandbox, root: Path
) -> None:
    mark = f"88{time.time_ns() % 10**9}"
    began = time.monotonic()
    answer = await run(sandbox, root, f"setsid sleep {mark} & echo done")
    assert answer["stdout"] == "done\n"
    assert time.monotonic() - began < patient(5)
    await gone(mark)


async def test_a_cancelled_call_kills_its_command(sandbox: CommandSandbox, root: Path) -> None:
    mark = f"89{time.time_ns() % 10**9}"
    call = asyncio.ensure_future(run(sandbox, root, f"touch begun; sleep {mark} & sleep {mark}"))
    await until((root / "begun").exists, within=10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await gone(mark)


async def test_a_command_dies_with_the_process_that_started_it(sandbox: CommandSandbox, root: Path) -> None:
    mark = f"86{time.time_ns() % 10**9}"
    script = (
        "import asyncio, sys; from pathlib import Path; from dragoman.scope import Caller;"
        "from dragoman.connections.native import terminal_tool;"
        "from dragoman.connections.native.sandbox import installed_sandboxes;"
        "box = next(b for b in installed_sandboxes() if b.name == sys.argv[1]);"
        "tool = terminal_tool(Path(sys.argv[2]), sandbox=box);"
        f"asyncio.run(tool.call({{'command': 'touch begun; sleep {mark}'}}, Caller()))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, sandbox.name, str(root))
    await until((root / "begun").exists, within=20)
    process.kill()
    await process.wait()
    await gone(mark)


async def test_output_is_capped_and_the_command_still_ends(sandbox: CommandSandbox, root: Path) -> None:
    tool = terminal_tool(root, sandbox=sandbox, limits=TerminalLimits(output_bytes=1000))
    answer = await tool.call({"command": "head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2"}, Caller())
    assert answer.structured == {"exit_code": 0, "stdout": "x" * 1000, "stderr": "end\n", "truncated": True}


async def test_the_number_of_processes_is_capped(sandbox: CommandSandbox, root: Path) -> None:
    if os.geteuid() == 0 and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14):
        pytest.skip("before Linux 6.14 the processes of root cannot be capped")
    script = "i=0; while [ $i -lt 1000 ]; do sleep 30 & i=$((i+1)); done; echo all"
    answer = await run(sandbox, root, f"sh -c '{script}'")  # sh gives up at once where bash tries again
    assert "all" not in answer["stdout"]
    assert "fork" in answer["stderr"]


async def test_what_a_command_may_keep_in_memory_files_is_capped(sandbox: CommandSandbox, root: Path) -> None:
    answer = await run(sandbox, root, "head -c 400000000 /dev/zero > /tmp/large; stat -c %s /tmp/large")
    assert int(answer["stdout"]) < 300_000_000


async def test_many_commands_run_at_once(sandbox: CommandSandbox, root: Path) -> None:
    answers = await asyncio.gather(*(run(sandbox, root, f"echo {number}") for number in range(10)))
    assert [answer["stdout"] for answer in answers] == [f"{number}\n" for number in range(10)]


async def test_a_null_character_is_an_error(sandbox: CommandSandbox, root: Path) -> None:
    await failure(sandbox, root, "echo \0")
