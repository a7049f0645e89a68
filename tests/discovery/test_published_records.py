"""Records as servers really publish them (schema of 2025-12-11): names, packages and versions are theirs."""

from typing import Any

from dragoman.discovery import read_server

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
KEY = {
    "description": "A personal access token",
    "isRequired": True,
    "isSecret": True,
    "name": "AIRTABLE_API_KEY",
}
STDIO = {"type": "stdio"}


def record(name: str, version: str, **ways: Any) -> dict[str, Any]:
    return {"$schema": SCHEMA, "name": name, "description": "A server", "version": version, **ways}


AIRTABLE = record(
    "io.github.domdomegg/airtable-mcp-server",
    "1.7.3",
    packages=[
        {
            "registryType": "npm",
            "identifier": "airtable-mcp-server",
            "version": "1.7.3",
            "runtimeHint": "npx",
            "transport": STDIO,
            "environmentVariables": [KEY],
        },
        {
            "registryType": "oci",
            "identifier": "domdomegg/airtable-mcp-server:1.7.3",
            "runtimeHint": "docker",
            "transport": STDIO,
            "environmentVariables": [KEY],
        },
        {
            "registryType": "mcpb",
            "identifier": "https://releases.example/v1.7.3/airtable-mcp-server.mcpb",
            "fileSha256": "0f28a9129cfebd262dfb77854c872355d21401bb3e056575b3027081f5d570ca",
            "transport": STDIO,
        },
    ],
)
NUGET = record(
    "io.github.domdomegg/time-mcp-nuget",
    "1.0.8",
    packages=[
        {
            "registryType": "nuget",
            "identifier": "TimeMcpServer",
            "version": "1.0.8",
            "runtimeHint": "dnx",
            "transport": STDIO,
        }
    ],
)
PYPI = record(
    "io.github.domdomegg/time-mcp-pypi",
    "1.0.6",
    packages=[
        {
            "registryType": "pypi",
            "identifier": "time-mcp-pypi",
            "version": "1.0.6",
            "runtimeHint": "python",
            "transport": STDIO,
        }
    ],
)
REMOTE = record(
    "io.github.getcyphrex/cyphrex-mcp",
    "0.1.0",
    title="Cyphrex",
    remotes=[{"type": "streamable-http", "url": "https://mcp.cyphrex.io/mcp"}],
)


def test_each_package_becomes_a_way_or_a_reason() -> None:
    offer = read_server(AIRTABLE)
    assert offer.ways[0].shown == "npx -y airtable-mcp-server@1.7.3"
    assert offer.ways[1].shown == "docker run -i --rm -e AIRTABLE_API_KEY domdomegg/airtable-mcp-server:1.7.3"
    assert [need.name for need in offer.ways[0].needs] == ["AIRTABLE_API_KEY"]
    assert offer.ways[0].needs[0].is_secret
    assert "mcpb" in offer.refused[0]


def test_a_kind_of_package_that_cannot_be_run_here_is_named() -> None:
    offer = read_server(NUGET)
    assert offer.ways == ()
    assert "nuget" in offer.refused[0]


def test_a_package_of_pypi_is_run_by_uvx_whatever_its_hint_says() -> None:
    assert read_server(PYPI).ways[0].shown == "uvx time-mcp-pypi==1.0.6"


def test_a_remote_is_its_address() -> None:
    assert read_server(REMOTE).ways[0].shown == "https://mcp.cyphrex.io/mcp"
