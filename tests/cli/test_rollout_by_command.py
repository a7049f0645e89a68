"""`dragoman rollout`: what the operator sees and sets."""

from command_line import Command


def test_the_operator_sets_and_sees_the_rollout(dragoman: Command) -> None:
    off = dragoman("rollout", "status")  # nobody has set it yet
    assert off.code == 0
    assert "connector agents: on; all users, compared with nobody" in off.out
    assert "errors exceed 5 %" in off.err
    assert "at least 20 of each" in off.err
    found = dragoman("rollout", "set", "--share", "25", "--user", "ada", "--json").value
    assert found["state"] == "on"
    assert found["plan"] == {"share": 25, "workspaces": [], "users": ["ada"]}
    seen = dragoman("rollout", "status")
    assert "on; ada first, 25 % of users" in seen.out
    assert dragoman("rollout", "set", "--off", "--json").value["plan"]["users"] == []
    assert "connector agents: off; 0 % of users" in dragoman("rollout", "status").out
    assert dragoman("rollout", "reset", "--json").value["source"] == "environment"


def test_a_wish_that_contradicts_itself_is_refused(dragoman: Command) -> None:
    assert dragoman("rollout", "set", "--off", "--share", "5").code == 2
    assert dragoman("rollout", "set", "--share", "500").code == 2
