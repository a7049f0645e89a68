"""A registry on this machine: records in the documented shapes, pages, and every way to misbehave."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from aiohttp import web

Record = dict[str, Any]
OFFICIAL = "io.modelcontextprotocol.registry/official"


def package(kind: str, identifier: str, version: str | None = "1.0.2", **facts: Any) -> Record:
    given = {"registryType": kind, "identifier": identifier, "transport": {"type": "stdio"}, **facts}
    return given if version is None else {**given, "version": version}


def server(name: str, description: str = "", version: str = "1.0.2", **facts: Any) -> Record:
    return {"name": name, "description": description, "version": version, **facts}


BRAVE_KEY = {
    "name": "SEARCH_API_KEY",
    "description": "Key of the search",
    "isRequired": True,
    "isSecret": True,
}
HONEST: list[Record] = [
    server(
        "io.example/web-search",
        "Searches the web",
        title="Web search",
        repository={"url": "https://code.example/search", "source": "github"},
        packages=[package("npm", "@example/server-search", environmentVariables=[BRAVE_KEY])],
    ),
    server(
        "io.example/files",
        "Reads files",
        packages=[
            package(
                "npm",
                "@example/server-files",
                runtimeHint="npx",
                runtimeArguments=[{"type": "named", "name": "-y"}],
                packageArguments=[
                    {
                        "type": "positional",
                        "valueHint": "target_dir",
                        "description": "Folder",
                        "isRequired": True,
                    },
                    {"type": "named", "name": "--depth", "description": "How deep", "format": "number"},
                    {"type": "named", "name": "--verbose", "format": "boolean"},
                ],
                environmentVariables=[{"name": "LOG_LEVEL", "default": "info", "choices": ["info", "debug"]}],
            ),
            package(
                "oci",
                "example/files",
                registryBaseUrl="https://docker.example",
                runtimeArguments=[
                    {
                        "type": "named",
                        "name": "--mount",
                        "value": "type=bind,src={source},dst={target}",
                        "isRequired": True,
                        "variables": {
                            "source": {
                                "description": "Folder here",
                                "format": "filepath",
                                "isRequired": True,
                            },
                            "target": {"description": "Folder there", "default": "/project"},
                        },
                    }
                ],
                packageArguments=[{"type": "positional", "valueHint": "target_dir", "value": "/project"}],
                environmentVariables=[{"name": "LOG_LEVEL", "default": "info"}],
            ),
        ],
    ),
    server(
        "io.example/time",
        "Tells the time",
        "0.6.2",
        packages=[package("pypi", "mcp-server-time", "0.6.2", runtimeHint="uvx")],
    ),
    server(
        "io.example/sql",
        "Asks databases",
        packages=[
            package(
                "pypi",
                "example-sql",
                registryBaseUrl="https://pypi.example",
                packageArguments=[
                    {"type": "positional", "value": "mcp"},
                    {"type": "positional", "value": "start"},
                    {"type": "named", "name": "--host", "default": "localhost", "isRequired": True},
                ],
            )
        ],
    ),
    server(
        "com.example/tickets",
        "Tickets in the cloud",
        remotes=[
            {
                "type": "streamable-http",
                "url": "https://tickets.example/mcp",
                "headers": [
                    {
                        "name": "Authorization",
                        "value": "Bearer {token}",
                        "isSecret": True,
                        "variables": {
                            "token": {"description": "Your token", "isRequired": True, "isSecret": True}
                        },
                    },
                    {"name": "X-Region", "default": "eu-1", "choices": ["eu-1", "us-1"]},
                ],
            },
            {"type": "sse", "url": "https://tickets.example/sse"},
        ],
    ),
    server(
        "com.example/tenants",
        "One address per tenant",
        remotes=[
            {
                "type": "streamable-http",
                "url": "https://{tenant}.example.com/mcp",
                "variables": {"tenant": {"description": "Your tenant", "isRequired": True}},
            }
        ],
    ),
    server(
        "io.example/bundle", packages=[package("mcpb", "https://files.example/x.mcpb", fileSha256="0" * 64)]
    ),
    server("io.example/dotnet", packages=[package("nuget", "Example.Server")]),
    server(
        "io.example/listens",
        packages=[
            package(
                "npm", "listens", transport={"type": "streamable-http", "url": "http://localhost:{port}/mcp"}
            )
        ],
    ),
    server("io.example/undated", packages=[package("npm", "undated", None)]),
    # Older records are flat and in snake_case.
    {
        "name": "io.example/older",
        "description": "From before",
        "status": "active",
        "version_detail": {"version": "0.3.0"},
        "packages": [
            {
                "registry_type": "pypi",
                "identifier": "older-server",
                "version": "0.3.0",
                "runtime_hint": "uvx",
                "environment_variables": [{"name": "OLDER_TOKEN", "is_required": True, "is_secret": True}],
            }
        ],
        "remotes": [{"transport_type": "sse", "url": "https://older.example/sse"}],
    },
    server("io.example/nothing", "Says no way to reach it"),
]


def wrapped(record: Record, status: str = "active", is_latest: bool = True) -> Record:
    """As the registry answers since autumn 2025; older records stay flat."""
    if "version_detail" in record:
        return record
    return {"server": record, "_meta": {OFFICIAL: {"status": status, "isLatest": is_latest}}}


class RegistryServer:
    """Answers as a registry does, unless `misbehaviour` says otherwise."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.misbehaviour = ""
        self.asked: list[str] = []
        self.url = ""

    async def list(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if answer := await self._misbehave():
            return answer
        words = request.query.get("search", "").lower()
        limit, start = int(request.query.get("limit", "30")), int(request.query.get("cursor", "0"))
        found = [one for one in self.records if words in str((one.get("server") or one).get("name")).lower()]
        page = found[start : start + limit]
        metadata: Record = {"count": len(page)}
        if start + limit < len(found):
            metadata["nextCursor"] = str(start + limit)
        return web.json_response({"servers": page, "metadata": metadata})

    async def latest(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if answer := await self._misbehave():
            return answer
        name = unquote(request.match_info["name"])
        for one in self.records:
            if one.get("server", {}).get("name") == name:
                return web.json_response(one)
        return web.json_response({"title": "Not Found"}, status=404)

    async def _misbehave(self) -> web.StreamResponse | None:
        kind = self.misbehaviour
        if kind.isdigit():
            return web.Response(status=int(kind), text="no")
        if kind == "html":
            return web.Response(text="<!doctype html><title>Welcome</title>", content_type="text/html")
        if kind == "list":
            return web.json_response([1, 2])
        if kind == "other":
            return web.json_response({"hello": "world"})
        if kind == "slow":
            await asyncio.sleep(30)
        return None


@asynccontextmanager
async def open_registry(records: list[Record] | None = None) -> AsyncGenerator[RegistryServer]:
    given = [wrapped(record) for record in HONEST] if records is None else records
    registry = RegistryServer(given)
    app = web.Application()
    app.router.add_get("/v0/servers", registry.list)
    app.router.add_get("/v0/servers/{name}/versions/latest", registry.latest)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        registry.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield registry
    finally:
        await runner.cleanup()
