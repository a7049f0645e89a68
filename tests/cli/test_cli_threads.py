"""`dragoman threads` and `dragoman preferences`, and connectors of a whole workspace, by command."""

from command_line import Command, raw


def test_threads_from_creation_to_removal_by_command(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "alpha", *raw("--shared")).code == 0
    assert dragoman("connectors", "add", "beta", *raw()).code == 0
    tiers = {one["slug"]: one["tier"] for one in dragoman("connectors", "list", "--json").value["connectors"]}
    assert (tiers["alpha"], tiers["beta"], tiers["native"]) == ("workspace", "user", "app")

    thread = dragoman("threads", "create", "Rome", "--json").value["id"]
    assert "alpha, beta (default)" in dragoman("threads", "show", thread).out
    assert dragoman("threads", "disable", thread, "beta", "--json").value["active"] == ["alpha"]
    shown = dragoman("threads", "tools", thread)
    assert "mcp_alpha_echo" in shown.out
    assert "beta is not active in this thread" in shown.err
    assert f"dragoman threads add {thread} beta" in shown.err
    assert dragoman("threads", "add", thread, "beta", "--json").value["active"] == ["alpha", "beta"]
    assert dragoman("threads", "set", thread, "--json").value["active"] == []
    assert dragoman("threads", "set", thread, "--default", "--json").value["connectors"] is None
    wrong = dragoman("threads", "add", thread, "gamma")
    assert (wrong.code, "there is no connector 'gamma'" in wrong.err) == (1, True)
    assert "Rome" in dragoman("threads", "list").out
    assert dragoman("threads", "remove", thread).code == 0
    assert dragoman("threads", "show", thread).code == 1


def test_preferences_by_command(dragoman: Command) -> None:
    assert "all that you see" in dragoman("preferences", "show").out
    changed = dragoman("preferences", "set", "--connector", "native", "--calls-per-hour", "5", "--json").value
    assert (changed["connectors"], changed["in_force"]["calls_per_hour"]) == (["native"], 5)
    changed = dragoman("preferences", "set", "--all-connectors", "--calls-per-hour", "none", "--json").value
    assert (changed["connectors"], changed["in_force"]["calls_per_hour"]) == (None, None)
    assert dragoman("preferences", "set").code == 2
    assert dragoman("preferences", "set", "--calls-per-hour", "many").code == 2
    refused = dragoman("preferences", "set", "--calls-per-hour", "-1")
    assert (refused.code, "0 or more" in refused.err) == (1, True)
