"""Servers that many people add, as records of a registry: no network is asked to list them.

Facts of their published packages and nothing else: the package, what it asks for, where it comes from. Each
is read like any other record, so what is shown is exactly what would run.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from dragoman.discovery.servers import RegistryServer, read_server

PREFIX = "common/"


def _variable(name: str, description: str, *, secret: bool = False, needed: bool = True) -> dict[str, Any]:
    return {"name": name, "description": description, "isSecret": secret, "isRequired": needed}


def _key(name: str, where: str, *, needed: bool = True) -> dict[str, Any]:
    return _variable(name, where, secret=True, needed=needed)


def _positional(name: str, description: str) -> dict[str, Any]:
    return {"type": "positional", "valueHint": name, "description": description, "isRequired": True}


def _named(flag: str, description: str) -> dict[str, Any]:
    return {"type": "named", "name": flag, "description": description, "isRequired": True}


# Key, title, group, registry, package, repository, what it asks for (variables, then arguments).
_ROWS: tuple[tuple[Any, ...], ...] = (
    ("filesystem", "Filesystem", "Files and data", "npm", "@modelcontextprotocol/server-filesystem",
     "modelcontextprotocol/servers", [_positional("directory", "The folder that it may read and write.")]),
    ("git", "Git", "Code", "pypi", "mcp-server-git", "modelcontextprotocol/servers",
     [_named("--repository", "The folder of the repository.")]),
    ("fetch", "Fetch", "Web", "pypi", "mcp-server-fetch", "modelcontextprotocol/servers", []),
    ("time", "Time", "Basics", "pypi", "mcp-server-time", "modelcontextprotocol/servers", []),
    ("memory", "Memory", "Basics", "npm", "@modelcontextprotocol/server-memory",
     "modelcontextprotocol/servers", [_variable("MEMORY_FILE_PATH", "The file it keeps.", needed=False)]),
    ("playwright", "Playwright", "Web", "npm", "@playwright/mcp", "microsoft/playwright-mcp", []),
    ("chrome", "Chrome DevTools", "Web", "npm", "chrome-devtools-mcp", "ChromeDevTools/chrome-devtools-mcp",
     []),
    ("duckduckgo", "DuckDuckGo", "Search", "pypi", "duckduckgo-mcp-server", "nickclyde/duckduckgo-mcp-server",
     []),
    ("brave", "Brave Search", "Search", "npm", "@brave/brave-search-mcp-server",
     "brave/brave-search-mcp-server", [_key("BRAVE_API_KEY", "API key of Brave Search.")]),
    ("tavily", "Tavily", "Search", "npm", "tavily-mcp", "tavily-ai/tavily-mcp",
     [_key("TAVILY_API_KEY", "API key of Tavily.")]),
    ("exa", "Exa", "Search", "npm", "exa-mcp-server", "exa-labs/exa-mcp-server",
     [_key("EXA_API_KEY", "API key of Exa.")]),
    ("firecrawl", "Firecrawl", "Web", "npm", "firecrawl-mcp", "firecrawl/firecrawl-mcp-server",
     [_key("FIRECRAWL_API_KEY", "API key of Firecrawl.")]),
    ("context7", "Context7", "Code", "npm", "@upstash/context7-mcp", "upstash/context7",
     [_key("CONTEXT7_API_KEY", "API key of Context7, for higher limits.", needed=False)]),
    ("notion", "Notion", "Work", "npm", "@notionhq/notion-mcp-server", "makenotion/notion-mcp-server",
     [_key("NOTION_TOKEN", "Token of an integration of Notion.")]),
    ("atlassian", "Jira and Confluence", "Work", "pypi", "mcp-atlassian", "sooperset/mcp-atlassian",
     [_variable("JIRA_URL", "Address of Jira.", needed=False),
      _variable("JIRA_USERNAME", "Who signs in to Jira.", needed=False),
      _key("JIRA_API_TOKEN", "API token of Jira.", needed=False),
      _variable("CONFLUENCE_URL", "Address of Confluence.", needed=False),
      _variable("CONFLUENCE_USERNAME", "Who signs in to Confluence.", needed=False),
      _key("CONFLUENCE_API_TOKEN", "API token of Confluence.", needed=False)]),
    ("airtable", "Airtable", "Work", "npm", "airtable-mcp-server", "domdomegg/airtable-mcp-server",
     [_key("AIRTABLE_API_KEY", "Personal access token of Airtable.")]),
    ("figma", "Framelink for Figma", "Work", "npm", "figma-developer-mcp", "GLips/Figma-Context-MCP",
     [_key("FIGMA_API_KEY", "Personal access token of Figma.")]),
    ("stripe", "Stripe", "Work", "npm", "@stripe/mcp", "stripe/ai",
     [_key("STRIPE_SECRET_KEY", "Secret or restricted key of Stripe.")]),
    ("sentry", "Sentry", "Code", "npm", "@sentry/mcp-server", "getsentry/sentry-mcp",
     [_key("SENTRY_ACCESS_TOKEN", "Access token of Sentry.")]),
    ("postgres", "PostgreSQL", "Files and data", "pypi", "postgres-mcp", "crystaldba/postgres-mcp",
     [_key("DATABASE_URI", "As postgresql://user:password@host:5432/name.")]),
    ("mongodb", "MongoDB", "Files and data", "npm", "mongodb-mcp-server", "mongodb-js/mongodb-mcp-server",
     [_key("MDB_MCP_CONNECTION_STRING", "As mongodb://user:password@host/name.")]),
    ("redis", "Redis", "Files and data", "pypi", "redis-mcp-server", "redis/mcp-redis",
     [_named("--url", "As redis://host:6379/0.")]),
    ("supabase", "Supabase", "Files and data", "npm", "@supabase/mcp-server-supabase", "supabase/mcp",
     [_key("SUPABASE_ACCESS_TOKEN", "Personal access token of Supabase.")]),
    ("qdrant", "Qdrant", "Files and data", "pypi", "mcp-server-qdrant", "qdrant/mcp-server-qdrant",
     [_variable("QDRANT_URL", "Address of Qdrant."), _variable("COLLECTION_NAME", "The collection."),
      _key("QDRANT_API_KEY", "API key of Qdrant.", needed=False)]),
)  # fmt: skip


def list_common() -> Mapping[str, tuple[RegistryServer, ...]]:
    """By group, in the order of the table."""
    groups: dict[str, list[RegistryServer]] = {}
    for row in _ROWS:
        groups.setdefault(row[2], []).append(_all()[PREFIX + row[0]])
    return {group: tuple(servers) for group, servers in groups.items()}


def find_common(name: str) -> RegistryServer | None:
    return _all().get(name)


@cache
def _all() -> Mapping[str, RegistryServer]:
    return {PREFIX + row[0]: read_server(_record(*row)) for row in _ROWS}


def _record(
    key: str, title: str, group: str, kind: str, package: str, repository: str, asks: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": PREFIX + key,
        "title": title,
        "repository": {"url": f"https://github.com/{repository}"},
        "packages": [
            {
                "registryType": kind,
                "identifier": package,
                "environmentVariables": [one for one in asks if "type" not in one],
                "packageArguments": [one for one in asks if "type" in one],
            }
        ],
    }
