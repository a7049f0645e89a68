"""What a boxed program has: a home that lasts, its mounts, its own environment, and nothing that loads code
outside."""

import marshal
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxes.boxed import PROGRAM, added, called, needs, open_hub
from dragoman.connections.boxes import container, machine
from dragoman.connections.boxes.visible_paths import own_paths, program_paths
from dragoman.errors import Denied, InvalidConfig
from dragoman.scope import LOCAL_CALLER

pytestmark = pytest.mark.anyio
LAUNCHER = Path(machine.__file__).with_name("launch_program.py")


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_a_home_lasts_and_is_shown_and_cleared(mode: str, tmp_path: Path) -> None:
    needs(mode)
    async with open_hub(tmp_path) as hub:
        await added(hub, sandbox=mode)
        home = (await called(hub, "look"))["home"]
        assert Path(home).is_relative_to(tmp_path / "boxes")
        kept = str(Path(home) / "state")
        await called(hub, "look", write={kept: "x" * 5000})
        await hub.connectors.disconnect("hostile")
        await hub.connectors.connect("hostile")
        assert (await called(hub, "look", read=[kept]))[kept] == "x" * 5000
        (found,) = await hub.connectors.homes("hostile")
        assert found.bytes >= 5000
        assert await hub.connectors.clear_homes("hostile") == found.bytes
        assert (await called(hub, "look", read=[kept]))[kept] != "x" * 5000
        await hub.connectors.remove("hostile")
        assert not list((tmp_path / "boxes").iterdir())


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_a_mount_is_read_only_unless_it_is_said(mode: str, tmp_path: Path) -> None:
    needs(mode)
    read, write = tmp_path / "read", tmp_path / "write"
    for folder in (read, write):
        folder.mkdir()
        (folder / "file").write_text("before")
    async with open_hub(tmp_path / "home") as hub:
        await added(hub, sandbox=mode, mounts=[str(read), f"{write}:rw"])
        seen = await called(hub, "look", read=[str(read / "file")], write={str(write / "file"): "after"})
        assert seen[str(read / "file")] == "before"
        await called(hub, "look", write={str(read / "file"): "after"})
        assert ((read / "file").read_text(), (write / "file").read_text()) == ("before", "after")
        view = await hub.connectors.get("hostile")
        assert view.box is not None
        assert (view.box.mode, view.box.mounts) == (mode, (f"{read}:ro", f"{write}:rw"))


async def test_what_is_mounted_around_dragomans_home_does_not_show_it(tmp_path: Path) -> None:
    needs("bubblewrap")
    (tmp_path / "file").write_text("seen")
    async with open_hub(tmp_path / "home") as hub:
        key = tmp_path / "home" / "key"
        await added(hub, mounts=[str(tmp_path)])
        found = await called(hub, "look", read=[str(tmp_path / "file"), str(key)])
        assert (found[str(tmp_path / "file")], found[str(key)]) == ("seen", "No such file or directory")
        with pytest.raises(InvalidConfig, match="Dragoman's own home"):
            await hub.connectors.update("hostile", mounts=[str(key)])


async def test_a_path_that_is_named_and_not_mounted_is_offered(tmp_path: Path) -> None:
    needs("bubblewrap")
    folder = tmp_path / "documents"
    folder.mkdir()
    async with open_hub(tmp_path / "home") as hub:
        args = ["-S", "-E", str(PROGRAM), str(folder)]
        view = await hub.connectors.add("files", command=sys.executable, args=args)
        assert [one for one in view.notices if f"update files --mount {folder}" in one], view.notices
        view = await hub.connectors.update("files", mounts=[str(folder)])
        assert view.notices == ()
        args = ["-S", "-E", str(PROGRAM), f"--database={tmp_path / 'new.db'}"]
        view = await hub.connectors.add("rows", command=sys.executable, args=args, connect=False)
        assert not view.needs, "the folder holds Dragoman's home"
        args = ["-S", "-E", str(PROGRAM), f"--database={folder / 'new.db'}"]
        view = await hub.connectors.update("rows", args=args, connect=False)
        assert [one.value for one in view.needs] == [f"{folder}:rw"]


async def test_variables_of_a_connector_load_no_code_outside_of_its_box(tmp_path: Path) -> None:
    """What starts the box runs before it is closed: LD_PRELOAD and PYTHONPATH are for the server alone."""
    needs("bubblewrap")
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("resource", "ctypes", "json"):
        (planted / f"{name}.py").write_text(f"open({str(tmp_path / 'out')!r}, 'w')")
    async with open_hub(tmp_path / "home") as hub:
        await added(hub, env={"PYTHONPATH": str(planted), "LD_PRELOAD": str(planted / "no.so"), "OWN": "1"})
        env = (await called(hub, "look"))["env"]
        assert env["OWN"] == "1"
        assert env["LD_PRELOAD"]
    assert not (tmp_path / "out").exists()


def test_the_words_for_a_container_are_words_of_the_clients_that_are_here(tmp_path: Path) -> None:
    """Each reads all of them before it asks its service for an image that there is not."""
    clients = [one for one in map(shutil.which, ("podman", "docker")) if one]
    if not clients:
        pytest.skip("not on this machine: podman and docker: neither is installed")
    mounts = [container.ContainerMount(str(tmp_path), "/seen"), container.ContainerMount("/usr", "/usr")]
    facts: dict[str, Any] = {
        "has_network": True,
        "has_control_group": True,
        "memory": 64,
        "processes": 32,
        "files": 64,
        "mounts": mounts,
    }
    for client in clients:
        said: list[str] = []
        for bind_alone in container.ways_to_bind_alone(client):
            words = container.run_words(
                client, bind_alone=bind_alone, name="dragoman-never", hidden=["/seen/hidden"], **facts
            )
            done = subprocess.run(
                [*words, "localhost/nothing:0"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 125
            said.append(done.stderr)
            wrong = subprocess.run(
                [*words, "--no-such-word", "x"], capture_output=True, text=True, check=False
            )
            assert "unknown flag: --no-such-word" in wrong.stderr or "unexpected key" in wrong.stderr
        known = ("No such image", "Cannot connect", "not known")
        assert any(words in one for one in said for words in known), said


OLDER_DOCKER = """#!/bin/sh
case "$*" in *bind-recursive=*)
    echo "invalid argument for --mount flag: unexpected key 'bind-recursive'" >&2
    echo "See 'docker run --help'." >&2
    exit 125;;
esac
exec podman-itself "$@"
"""


def test_a_docker_that_knows_only_the_older_words_makes_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("container")
    podman = shutil.which("podman")
    if podman is None:
        pytest.skip("not on this machine: podman is not installed")
    for name, text in (
        ("docker", OLDER_DOCKER.replace("podman-itself", podman)),
        ("podman", "#!/bin/sh\nexit 1\n"),
    ):
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    way = machine.container.__wrapped__()
    assert (way.missing, way.detail) == (None, str(tmp_path / "docker"))
    assert way.bind_alone == "bind-nonrecursive=true"
    broken = OLDER_DOCKER.replace("exec podman-itself", f"test $1 = run && exit 125\nexec {podman}")
    (tmp_path / "docker").write_text(broken)
    assert "unexpected key 'bind-recursive'" in (machine.container.__wrapped__().missing or "")


UNGROUPED = """#!/bin/sh
case "$*" in *--pids-limit=*)
    echo "Error: runc create failed: error setting cgroup config: openat2 pids.max: no such file" >&2
    exit 126;;
esac
exec podman-itself "$@"
"""
NOT_READY = {
    "cannot clone: No space left\nuser namespaces are not enabled in /proc/sys\nError: cannot re-exec": (
        "podman: user namespaces are not enabled in /proc/sys",
        "sysctl user.max_user_namespaces",
    ),
    'Error: command required for rootless mode: exec: "newuidmap": executable file not found in $PATH': (
        "executable file not found",
        "apt-get install uidmap",
    ),
    "Error: keep-id requires additional UIDs or GIDs defined in /etc/subuid and /etc/subgid": (
        "keep-id requires",
        "usermod --add-subuids",
    ),
}


def test_a_podman_of_an_ordinary_user_makes_boxes_without_a_control_group_or_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("container")
    podman = shutil.which("podman")
    if podman is None:
        pytest.skip("not on this machine: podman is not installed")

    def way_with(podman: str) -> machine.BoxWay:
        for name, text in (("podman", podman), ("docker", "#!/bin/sh\nexit 1\n")):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return machine.container.__wrapped__()

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    way = way_with(UNGROUPED.replace("podman-itself", podman))
    assert (way.missing, way.has_control_group) == (None, False)
    assert way.text.startswith("container: works (no control group for its limits")
    for said, (cause, cure) in NOT_READY.items():
        way = way_with(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 125\n")
        assert cause in (way.missing or "")
        assert cure in way.hint
        assert cure in way.text


async def test_with_many_users_an_admin_neither_leaves_the_box_nor_mounts(tmp_path: Path) -> None:
    async with open_hub(tmp_path, multi_user=True) as hub:
        admin = hub.acting_for(replace(LOCAL_CALLER, user="ada", role="admin"))
        command: dict[str, Any] = {"command": sys.executable, "args": ["server.py"], "connect": False}
        wider: list[dict[str, Any]] = [
            {"sandbox": "none"},
            {"mounts": ["/usr/share"]},
            {"limits": {"memory": 9000}},
        ]
        for facts in wider:
            with pytest.raises(Denied, match="only the operator"):
                await admin.connectors.add("x", **command, **facts)
        assert (await admin.connectors.add("x", **command)).connector.configuration.sandbox == "auto"
        with pytest.raises(Denied, match="only the operator"):
            await admin.connectors.update("x", sandbox="none", connect=False)


async def test_where_nothing_boxes_a_command_is_refused_for_many_users_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in ("bubblewrap", "landlock", "container"):
        missing = machine.BoxWay(way, "not here")  # type: ignore[arg-type]
        monkeypatch.setattr(machine, way, lambda missing=missing: missing)
    async with open_hub(tmp_path / "many", multi_user=True) as hub:
        with pytest.raises(InvalidConfig, match="cannot box") as caught:
            await hub.connectors.add("x", command=sys.executable, connect=False)
        assert "apt-get install bubblewrap" in (caught.value.hint or "")
        assert "DRAGOMAN_ALLOW_UNBOXED=1" in (caught.value.hint or "")
    async with open_hub(tmp_path / "allowed", multi_user=True, allow_unboxed=True) as hub:
        await hub.connectors.add("x", command=sys.executable, connect=False)
    async with open_hub(tmp_path / "one") as hub:
        view = await hub.connectors.add("x", command=sys.executable, connect=False)
        assert view.box is not None
        assert "same access as Dragoman itself" in view.box.text


def test_a_launcher_that_cannot_make_its_namespaces_starts_nothing(tmp_path: Path) -> None:
    """In a box no namespace can be made: so the launcher, run in one, fails at that step."""
    needs("bubblewrap")
    out = tmp_path / "out"
    spec = {
        "limits": {},
        "namespaces": {"overlays": [["/usr", str(tmp_path), str(tmp_path), str(tmp_path)]]},
        "program": ["/usr/bin/touch", str(out)],
        "env": {},
        "cwd": "/",
        "filter": "",
        "read": ["/"],
        "write": ["/"],
    }
    file = tmp_path / "spec"
    file.write_bytes(marshal.dumps(spec))
    words = [
        "bwrap",
        "--unshare-user",
        "--uid",
        "1000",
        "--disable-userns",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
    ]
    done = subprocess.run(
        [*words, "sh", "-c", f'exec "$0" -I -S {LAUNCHER} 3 3<{file}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 71, done
    assert "the box could not be made" in done.stderr
    assert not out.exists()


def test_what_holds_more_than_a_program_is_never_shown_whole(tmp_path: Path) -> None:
    home = os.path.expanduser("~")
    kept_out = tmp_path / "dragoman"
    kept_out.mkdir()
    script = tmp_path / "server.py"
    script.touch()
    shown = own_paths("python3", [str(script)], home, kept_out)
    assert shown == [str(script)], "its folder holds Dragoman's home, and the working directory is a home"
    assert home not in program_paths(sys.executable, os.environ["PATH"], kept_out)
    assert own_paths("python3", ["-c", "code", str(script)], None, kept_out) == []


async def test_what_is_named_by_a_relative_path_is_offered_and_found_by_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bubblewrap")
    (tmp_path / "data.json").write_text("seen")
    monkeypatch.chdir(tmp_path)
    async with open_hub(tmp_path / "home") as hub:
        args = ["-S", "-E", str(PROGRAM), "data.json", "data"]
        view = await hub.connectors.add("hostile", command=sys.executable, args=args, approval="never")
        (need,) = view.needs
        assert (need.setting, need.value) == ("mounts", f"{tmp_path}/data.json:ro")
        await hub.connectors.update("hostile", mounts=need.becomes)
        assert (await called(hub, "look", read=["data.json"]))["data.json"] == "seen"


async def test_packages_that_one_box_writes_reach_neither_another_nor_the_cache_that_they_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is called npx here: what package runners keep is shown to them alone."""
    needs("bubblewrap")
    shared = tmp_path / "person" / ".npm" / "_cacache"
    shared.mkdir(parents=True)
    (shared / "package").write_text("sound")
    runner = tmp_path / "bin" / "npx"
    runner.parent.mkdir()
    runner.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {PROGRAM} "$@"\n')
    runner.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    async with open_hub(tmp_path / "home", box_paths=(str(PROGRAM.parent),)) as hub:
        found: dict[str, str] = {}
        for name in ("poisoner", "victim"):
            view = await hub.connectors.add(name, command=str(runner), approval="never")
            assert view.status.state == "connected", (view.status.cause, view.status.stderr)
            file = str(Path((await called(hub, "look", name))["home"]) / ".npm" / "_cacache" / "package")
            found[name] = (await called(hub, "look", name, read=[file]))[file]
            written = await called(hub, "look", name, write={file: "poisoned"})
            assert written[file] == "written"
            assert (await called(hub, "look", name, read=[file]))[file] == "poisoned"
        assert found == {"poisoner": "sound", "victim": "sound"}
        assert (shared / "package").read_text() == "sound"


async def test_what_asks_for_a_container_of_its_own_is_left_alone_and_that_is_said(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    async with open_hub(tmp_path / "home") as hub:
        view = await hub.connectors.add("contained", command=str(docker), connect=False)
        assert view.box is not None
        assert (view.box.mode, "for a container" in view.box.text) == ("none", True)
        view = await hub.connectors.update("contained", limits={"memory": 64}, connect=False)
        assert view.box is not None
        assert view.box.mode == machine.chosen("auto")
