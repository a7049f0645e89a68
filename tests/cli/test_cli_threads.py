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
    assert dragoman("threads", "remove", thread, "--yes").code == 0
    assert dragoman("threads", "show", thread).code == 1


def test_a_call_in_a_thread_reaches_what_is_active_there(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "alpha", *raw()).code == 0
    assert dragoman("threads", "create", "--id", "work").code == 0
    assert dragoman("call", "alpha__echo", "text=hello", "--thread", "work").out == "hello\n"
    assert dragoman("threads", "disable", "work", "alpha").code == 0
    refused = dragoman("call", "alpha__echo", "text=hello", "--thread", "work")
    assert (refused.code, refused.out) == (1, "")
    assert "hint: dragoman threads add work alpha" in refused.err
    assert dragoman("call", "alpha__echo", "text=hello").code == 0


def test_tools_are_loaded_into_a_thread_and_unloaded(dragoman: Command) -> None:
    assert dragoman("connectors", "add", "alpha", *raw()).code == 0
    loaded = dragoman("tools", "load", "alpha__echo", "mcp_alpha_count", "--thread", "work")
    assert (loaded.code, loaded.out.split()) == (0, ["mcp_alpha_echo", "mcp_alpha_count"])
    assert "2 loaded; work has 2 loaded now" in loaded.err
    assert dragoman("tools", "load", "alpha__nothing", "--thread", "work").code == 1
    one = dragoman("tools", "unload", "alpha__echo", "--thread", "work", "--json").value
    assert one == {"thread": "work", "changed": ["mcp_alpha_echo"], "loaded": ["mcp_alpha_count"]}
    assert "1 unloaded; work has 0 loaded now" in dragoman("tools", "unload", "--thread", "work").err
    assert dragoman("tools", "load", "alpha__echo").code == 2


def test_preferences_by_command(dragoman: Command) -> None:
    assert "all that you see" in dragoman("preferences", "show").out
    changed = dragoman(
        "preferences", "set", "--connector", "native", "--limit", "calls_per_hour=5", "--json"
    ).value
    assert (changed["connectors"], changed["in_force"]["calls_per_hour"]) == (["native"], 5)
    changed = dragoman("preferences", "set", "--unset", "connectors,limits.calls_per_hour", "--json").value
    assert (changed["connectors"], changed["in_force"]["calls_per_hour"]) == (None, None)
    assert dragoman("preferences", "set").code == 2
    assert dragoman("preferences", "set", "--limit", "calls_per_hour=many").code == 2
    refused = dragoman("preferences", "set", "--limit", "calls_per_hour=-1")
    assert (refused.code, "0 or more" in refused.err) == (1, True)
