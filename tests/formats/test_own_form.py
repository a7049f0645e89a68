"""`dragoman.toml` and the export: what is written is what is read."""

import json

import pytest

from dragoman.connector import Configuration, Connector
from dragoman.errors import InvalidConfig
from dragoman.formats import FoundAgent, read
from dragoman.formats.dragoman_files import write_dragoman_file
from dragoman.formats.mcp_servers import write_servers

TOML = """
[connectors.time]
command = "uvx"
args = ["mcp-server-time"]
description = "What time it is"
request_timeout = 5
retry = { tries = 1 }

[connectors.email_mcp]
url = "https://mail.example/mcp"
bearer = "${MAIL_TOKEN}"
isolation = "shared"
enabled = false

[connectors.shop]
openapi = "http://127.0.0.1:8000"
select = { tags = ["orders"] }

[connectors.typo]
comand = "uvx"
"""


def connector(slug: str, **configuration: object) -> Connector:
    return Connector(
        id=f"con_{slug}",
        workspace="local",
        owner="owner",
        slug=slug,
        configuration=Configuration.checked(configuration),
    )


def test_a_dragoman_toml_is_read() -> None:
    plan = read(TOML, "dragoman.toml")
    time, mail, shop = plan.connectors
    assert time.facts == {
        "command": "uvx",
        "args": ["mcp-server-time"],
        "request_timeout": 5,
        "retry": {"tries": 1},
    }
    assert time.description == "What time it is"
    assert (mail.slug, mail.aliases, mail.enabled) == ("email-mcp", ("email_mcp",), False)
    assert mail.facts["bearer"] == "${MAIL_TOKEN}"
    assert shop.facts["kind"] == "openapi"
    assert plan.problems[0].entry == "typo"
    assert "did you mean 'command'" in plan.problems[0].reason


def test_it_is_known_as_toml_without_its_name() -> None:
    assert len(read(TOML).connectors) == 3


def test_an_export_without_secrets_names_them() -> None:
    text = write_dragoman_file(
        [connector("a", command="uvx", secrets=["env:TOKEN"])], {}, [FoundAgent(name="m", connectors=("a",))]
    )
    plan = read(text)
    assert plan.format == "dragoman"
    assert plan.connectors[0].missing == ("env:TOKEN",)
    assert "secrets" not in plan.connectors[0].facts
    assert plan.agents == (FoundAgent(name="m", connectors=("a",)),)


@pytest.mark.parametrize("capabilities", [None, frozenset[str](), frozenset({"mcp_mail", "mcp_time"})])
def test_an_agent_comes_back_with_what_it_may_use_also_when_that_is_nothing(
    capabilities: frozenset[str] | None,
) -> None:
    agent = FoundAgent(name="m", connectors=("a",), capabilities=capabilities)
    assert read(write_dragoman_file([], {}, [agent])).agents == (agent,)


def test_an_export_with_secrets_gives_them_back() -> None:
    text = write_dragoman_file(
        [connector("a", command="uvx", secrets=["env:TOKEN"])], {"con_a": {"env:TOKEN": "v"}}
    )
    assert read(text).connectors[0].facts["secrets"] == {"env:TOKEN": "v"}
    assert read(text).connectors[0].missing == ()


def test_an_export_of_a_later_version_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="version 2"):
        read('{"dragoman": 2, "connectors": {}}')


def test_exported_servers_refer_to_secrets_that_are_left_out() -> None:
    connectors = [
        connector("mail", command="uvx", args=["m"], env={"MODE": "x"}, secrets=["env:MAIL_TOKEN"]),
        connector(
            "far-away", url="https://a.example/mcp", auth={"kind": "bearer"}, secrets=["auth", "header:X-Key"]
        ),
        connector(
            "keyed", url="https://a.example/sse", auth={"kind": "apikey", "header": "X-Own"}, secrets=["auth"]
        ),
        connector("service", kind="openapi", openapi="http://127.0.0.1:1"),
    ]
    servers = json.loads(write_servers(connectors, {"con_keyed": {"auth": "k3y"}}))["mcpServers"]
    assert servers["mail"] == {
        "command": "uvx",
        "args": ["m"],
        "env": {"MODE": "x", "MAIL_TOKEN": "${MAIL_TOKEN}"},
    }
    assert servers["far-away"]["headers"] == {
        "X-Key": "${FAR_AWAY_X_KEY}",
        "Authorization": "Bearer ${FAR_AWAY_TOKEN}",
    }
    assert servers["keyed"] == {"type": "sse", "url": "https://a.example/sse", "headers": {"X-Own": "k3y"}}
    assert "service" not in servers
