"""`dragoman resources` and `dragoman prompts`."""

import json
import signal
from pathlib import Path
from urllib.request import Request, urlopen

from command_line import Command, dragoman_process, errors_of, output_of, running_service

from patience import patient, wait_until
from servers.processes import HttpProcess


def test_resources_and_prompts_by_command(dragoman: Command, tmp_path: Path) -> None:
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        assert dragoman("connectors", "add", "all", "--url", server.url).code == 0
        assert "all+test://static-text" in dragoman("resources", "list").out
        assert dragoman("resources", "read", "all+test://static-text").out.startswith("This is the content")
        unknown = dragoman("resources", "read", "none+test://static-text")
        assert (unknown.code, unknown.out) == (1, "")
        assert "hint: dragoman resources list shows those there are" in unknown.err
        assert "arg1 arg2" in dragoman("prompts", "list", "all").out
        got = dragoman("prompts", "get", "all__test_prompt_with_arguments", "arg1=a", "arg2=b")
        assert "arg1='a'" in got.out
        assert dragoman("prompts", "get", "all__test_simple_prompt", "word").code == 2
        proposed = dragoman("prompts", "complete", "all__test_prompt_with_arguments", "arg1=pa", "arg2=b")
        assert proposed.out.split() == ["paris", "park", "party"]
        assert dragoman("prompts", "complete", "all__test_prompt_with_arguments", "arg1=", "word").code == 2
        template = "all+test://template/{id}/data"
        assert dragoman("resources", "complete", template, "id", "--json").value["values"][0] == "paris"


def change(server: HttpProcess, resource: str) -> None:
    """Once somebody listens: a server tells nobody else."""
    url = server.url.replace("/mcp", "/control")

    def is_heard() -> bool:
        with urlopen(url) as response:
            state = json.load(response)
        return state["streams"] > 0 and resource in state["subscribed"]

    wait_until(is_heard)
    params = {"name": "change", "arguments": {"what": resource}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    urlopen(Request(server.url, json.dumps(body).encode(), {"Content-Type": "application/json"})).close()


def test_a_resource_is_watched_until_ctrl_c(dragoman: Command, tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "2025", program="telling_server.py") as server:
        assert dragoman("connectors", "add", "news", "--url", server.url).code == 0
        with dragoman_process("resources", "watch", "news+test://a") as watch:
            assert "watching news+test://a" in errors_of(watch).readline()
            change(server, "test://a")
            assert output_of(watch).readline() == "news+test://a\n"
            watch.send_signal(signal.SIGINT)
            assert watch.wait(patient(20)) == 130
            assert (output_of(watch).read(), errors_of(watch).read()) == ("", "")


def test_a_resource_is_watched_by_a_service_until_that_stops(dragoman: Command, tmp_path: Path) -> None:
    with HttpProcess(tmp_path, "2026", program="telling_server.py") as server, running_service() as service:
        assert dragoman("connectors", "add", "news", "--url", server.url).code == 0
        words = ("resources", "watch", "news+test://b", "news+test://a", "--json")
        with dragoman_process(*words) as watch:
            assert "watching news+test://b" in errors_of(watch).readline()
            change(server, "test://a")
            heard: dict[str, str] = {}
            while "news+test://a" not in heard:  # what may have been missed while both were begun is told too
                update = json.loads(output_of(watch).readline())
                heard[update["uri"]] = update["original_uri"]
            assert heard["news+test://a"] == "test://a"
            service.stop()
            assert watch.wait(patient(20)) == 1
            assert "hint: start it again: dragoman serve" in errors_of(watch).read()
