"""What an MCP client gives its model to read of 117 tools: all of them, or the search view.

The SDK's own client does the same job by both: two calls, the second after the first one's result. Every
request carries the definitions and all that was said before, as providers want it; tokens are counted here.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters

import lab
from dragoman import Hub, Settings
from dragoman.tokens import count_tokens, counter

HERE = Path(__file__).parent
CATALOGUE = HERE.parent / "tests" / "data" / "tool-search" / "github_mcp_tools.json"
JOB = "List the open issues of octocat/xyne, then read the first one."
LIST = {"owner": "octocat", "repo": "xyne", "state": "OPEN"}
READ = {"method": "get", "owner": "octocat", "repo": "xyne", "issue_number": 1}
FEWER = 95.0
Step = tuple[str, dict[str, Any]]
STEPS: dict[str, Sequence[Step]] = {
    "tools": [("mcp_github_list_issues", LIST), ("mcp_github_issue_read", READ)],
    "search": [
        ("search_tools", {"query": "list the issues of a repository, read one issue"}),
        ("call_tool", {"name": "mcp_github_list_issues", "arguments": LIST}),
        ("call_tool", {"name": "mcp_github_issue_read", "arguments": READ}),
    ],
}


@dataclass(slots=True)
class Read:
    """Tokens that a model reads over a whole job."""

    definitions: int
    tools: int
    requests: int = 0
    said: int = field(default_factory=lambda: count_tokens(JOB))
    all: int = 0

    @property
    def first(self) -> int:
        return self.definitions + count_tokens(JOB)

    def request(self) -> None:
        self.requests += 1
        self.all += self.definitions + self.said


async def job(view: str, home: Path) -> Read:
    words = ["-m", "dragoman", "stdio", "--view", view]
    server = StdioServerParameters(command=sys.executable, args=words, env={"DRAGOMAN_HOME": str(home)})
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        facts = [
            {"name": one.name, "description": one.description, "input_schema": one.input_schema}
            for one in tools
        ]
        read = Read(count_tokens(json.dumps(facts)), len(tools))
        for name, arguments in STEPS[view]:
            read.request()
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            texts = [str(getattr(part, "text", "")) for part in result.content]
            read.said += count_tokens(json.dumps([name, arguments])) + count_tokens("\n".join(texts))
        read.request()  # what it says in the end
    return read


async def measure(rows: int) -> dict[str, Read]:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        async with Hub(Settings(home=home)) as hub:
            program = [str(HERE / "catalog_server.py"), str(CATALOGUE), str(rows)]
            await hub.connectors.add("github", command=sys.executable, args=program, approval="never")
        return {view: await job(view, home) for view in STEPS}


def main() -> None:
    given = lab.options(__doc__ or "", rows=(10, "issues in each result"))
    report = lab.Report("views")
    found = asyncio.run(measure(given.rows))
    report.table(
        f"Tokens by {counter()}",
        [
            "view",
            "tools seen",
            "definitions",
            "first request",
            "requests of the job",
            "read in the whole job",
        ],
        [[view, one.tools, one.definitions, one.first, one.requests, one.all] for view, one in found.items()],
    )
    fewer = 100 * (1 - found["search"].first / found["tools"].first)
    report.verdict(
        f"the first request has at least {FEWER:g} % fewer tokens", f"{fewer:.1f} % fewer", met=fewer >= FEWER
    )
    share = found["search"].all / found["tools"].all
    report.verdict("the whole job reads at most half", f"{share:.0%}", met=share <= 0.5)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
