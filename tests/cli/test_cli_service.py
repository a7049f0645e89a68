"""The service as a process: the command finds it, one home has one, and it stops in time."""

import http.client
import json
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import Command, dragoman_process, errors_of, output_of, raw, running_service

from patience import patient, wait_until
from servers.processes import HttpProcess

pytestmark = pytest.mark.slow
HOSTILE = Path(__file__).parents[1] / "hostile" / "hostile_server.py"


def test_the_command_talks_to_the_running_service(dragoman: Command, home: Path) -> None:
    with running_service() as service:
        assert json.loads((home / "server.json").read_text()) == {"url": service.url, "pid": service.pid}
        assert dragoman("connectors", "add", "raw", *raw()).code == 0
        assert dragoman("call", "raw__count").code == 0
        # The server lives in the service: its count goes on from command to command.
        assert json.loads(dragoman("call", "raw__count").out)["count"] == 2
        assert "connected" in dragoman("connectors", "list").out
        large = dragoman("call", "raw__big", "bytes=300000", "--json").value["metadata"]["handle"]
        assert len(dragoman("results", "show", large, "--json").value["body"]) == 300_000
        assert "did you mean" in dragoman("tools", "show", "raw__eco").err
        assert f"runs at {service.url}" in dragoman("doctor").out
        assert service.stop() == 0
    assert not (home / "server.json").exists()
    assert dragoman("call", "raw__echo", "text=alone").out == "alone\n"


def test_a_service_is_found_by_url_and_token(
    dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running_service() as service:
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "other"))
        monkeypatch.setenv("DRAGOMAN_URL", service.url)
        assert "DRAGOMAN_TOKEN" in dragoman("tools", "list").err
        monkeypatch.setenv("DRAGOMAN_TOKEN", "drg_wrong")
        assert dragoman("tools", "list", "--json").value["code"] == "unauthenticated"
        monkeypatch.setenv("DRAGOMAN_TOKEN", (home / "token").read_text().strip())
        assert dragoman("tools", "list", "--json").value == {"tools": []}
        monkeypatch.setenv("DRAGOMAN_URL", "http://127.0.0.1:9")
        outcome = dragoman("tools", "list")
        assert (outcome.code, "no service answers" in outcome.err) == (1, True)


def test_a_home_has_one_service_and_a_port_one_listener(
    dragoman: Command, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running_service() as service:
        second = dragoman("serve", "--port", "0")
        assert (second.code, second.out) == (1, "")
        assert "already" in second.err
        assert "hint: " in second.err
        monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "other"))
        port = urlsplit(service.url).port
        taken = dragoman("serve", "--port", str(port))
        assert (taken.code, f"port {port}" in taken.err, "--port" in taken.err) == (1, True, True)
        assert dragoman("serve", "--port", "70000").code == 1
        assert dragoman("serve", "--host", "203.0.113.1").code == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_service_stops_in_time_with_streams_and_calls_open(
    dragoman: Command, home: Path, number: signal.Signals
) -> None:
    with running_service() as service, ExitStack() as stack:
        dragoman("connectors", "add", "raw", *raw())
        events = stack.enter_context(dragoman_process("events", "--json"))
        assert "listening" in errors_of(events).readline()
        call = stack.enter_context(dragoman_process("call", "raw__sleep", "seconds=60"))
        while json.loads(output_of(events).readline())["kind"] != "call.started":
            pass
        started = time.monotonic()
        assert service.stop(number) == 0
        assert time.monotonic() - started < patient(10)
        assert events.wait(patient(5)) == 0
        assert call.wait(patient(5)) == 1
    assert not (home / "server.json").exists()


def test_an_open_stream_is_ended_and_not_cut_off_when_the_service_stops(home: Path) -> None:
    with running_service() as service, dragoman_process("events") as events:
        assert "listening" in errors_of(events).readline()
        assert service.stop() == 0
        assert events.wait(patient(5)) == 0
        assert "shutdown exceeded" not in errors_of(service.process).read()


def test_a_killed_service_leaves_nothing_in_the_way(dragoman: Command, home: Path) -> None:
    with running_service() as service:
        assert service.stop(signal.SIGKILL) == -9
    assert (home / "server.json").exists()
    assert dragoman("tools", "list", "--json").value == {"tools": []}
    with running_service() as service:
        assert json.loads((home / "server.json").read_text())["pid"] == service.pid


def test_a_command_waits_for_a_service_that_is_just_starting(dragoman: Command, home: Path) -> None:
    """Else it would write to the store behind the back of a service that has read it already."""
    home.mkdir(mode=0o700, exist_ok=True)
    with dragoman_process("serve", "--port", "0", "--json") as process:
        wait_until((home / "server.lock").exists, within=60)
        added = dragoman("connectors", "add", "raw", *raw())
        assert added.code == 0
        assert (home / "server.json").exists()
        assert dragoman("call", "raw__count").code == 0
        assert json.loads(dragoman("call", "raw__count").out)["count"] == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(patient(10)) == 0


def test_events_are_followed(dragoman: Command, home: Path) -> None:
    with running_service(), dragoman_process("events") as events:
        assert "listening" in errors_of(events).readline()
        dragoman("connectors", "add", "raw", *raw())
        assert "connector.registered  raw" in output_of(events).readline()
        events.send_signal(signal.SIGINT)
        assert events.wait(patient(5)) == 130


def test_a_client_that_sends_half_a_request_holds_nobody_up(dragoman: Command, home: Path) -> None:
    with running_service() as service:
        parts = urlsplit(service.url)
        with socket.create_connection((parts.hostname, parts.port)) as half:
            token = (home / "token").read_text().strip()
            half.sendall(
                b"POST /api/call HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
                b"Authorization: Bearer " + token.encode() + b"\r\n\r\n{"
            )
            connection = http.client.HTTPConnection(parts.netloc)
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
            connection.close()
            started = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - started < patient(8)


def test_the_service_stops_in_time_among_hostile_servers(dragoman: Command, tmp_path: Path) -> None:
    """One drips, one floods as much as it is allowed to, one asks to be resumed for ever, one is deaf."""
    generous = ("--max-messages-per-second", "1000000000", "--max-bytes-per-second", "1000000000000")
    deaf = ("sh", "-c", "trap '' TERM; exec \"$@\"", "sh", *raw()[raw().index("--") + 1 :])
    with ExitStack() as stack:
        kinds = {
            kind: stack.enter_context(HttpProcess(tmp_path, kind, program=str(HOSTILE)))
            for kind in ("slow-drip", "wrong-ids", "reconnect-storm")
        }
        service = stack.enter_context(running_service())
        for kind, server in kinds.items():
            assert dragoman("connectors", "add", kind, "--url", server.url, *generous).code == 0
            stack.enter_context(dragoman_process("call", f"{kind}__echo", "text=many"))
        assert dragoman("connectors", "add", "deaf", "--", *deaf).code == 0
        stack.enter_context(dragoman_process("call", "deaf__sleep", "seconds=60"))
        for server in kinds.values():
            wait_until(
                lambda server=server: "tools/call" in [one["method"] for one in server.state()["requests"]]
            )
        assert service.stop() == 0, "within ten seconds"
