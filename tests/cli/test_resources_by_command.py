"""`dragoman resources` and `dragoman prompts`."""

from pathlib import Path

from command_line import Command

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
