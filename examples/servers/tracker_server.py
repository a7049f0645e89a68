"""A sample issue tracker as an MCP server over stdio, with its state in `DIR/tracker.json`.

python tracker_server.py --data DIR
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ResourceLink, ToolAnnotations
from pydantic import Field

from answers import answered, said
from issues import Issue, Issues, Question, Repository
from state import add_data_option

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
SETS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Name = Annotated[str, Field(description="owner/name, as search_repositories gives it")]
Number = Annotated[int, Field(ge=1, description="the issue's number within its repository")]
Limit = Annotated[int, Field(ge=1, le=100, description="most entries to return")]
Login = Annotated[str | None, Field(description="a login such as octocat; 'me' is whose account this is")]
Day = Annotated[str | None, Field(description="a date, such as 2026-03-04")]


@dataclass(frozen=True)
class Repositories:
    repositories: list[Repository]
    count: int
    more: bool


@dataclass(frozen=True)
class FoundIssues:
    issues: list[Issue]
    count: int
    more: bool


OneIssue = Annotated[CallToolResult, Issue]
ManyIssues = Annotated[CallToolResult, FoundIssues]


def build_server(issues: Issues) -> MCPServer:
    server = MCPServer(
        "sample-tracker",
        version="1.0.0",
        instructions="Issues of repositories. Find the repository first, then its issues by full name.",
        log_level="WARNING",
    )
    _add_reading(server, issues)
    _add_changing(server, issues)
    return server


def _add_reading(server: MCPServer, issues: Issues) -> None:
    @server.tool(title="Search repositories", annotations=READS)
    def search_repositories(
        query: Annotated[str, Field(description="words of its name or description; empty lists all")] = "",
        limit: Limit = 10,
    ) -> Repositories:
        """Find repositories by words; gives the full name that the other tools take."""
        found = issues.list_repositories(query)
        return Repositories(found[:limit], len(found[:limit]), len(found) > limit)

    @server.tool(title="List issues", annotations=READS)
    def list_issues(
        repository: Annotated[str | None, Field(description="owner/name; all of them if omitted")] = None,
        assignee: Login = None,
        state: Annotated[Literal["open", "closed", "all"], Field(description="which ones")] = "open",
        label: Annotated[str | None, Field(description="one label, such as bug")] = None,
        since: Annotated[str | None, Field(description="changed at this date or time, or later")] = None,
        due_before: Day = None,
        text: Annotated[str | None, Field(description="part of the title or the body")] = None,
        limit: Limit = 20,
    ) -> ManyIssues:
        """List issues, last changed first; every filter is optional and all that are given must hold."""
        question = Question(
            repository=repository,
            assignee=assignee,
            state=None if state == "all" else state,
            label=label,
            since=since,
            due_before=due_before,
            text=text,
        )
        with said():
            found = issues.find(question)
        shown = FoundIssues(found[:limit], len(found[:limit]), len(found) > limit)
        return linked(asdict(shown), found[:limit])

    @server.tool(title="Get an issue", annotations=READS)
    def get_issue(repository: Name, number: Number) -> OneIssue:
        """Read one issue with its comments."""
        with said():
            issue = issues.get(repository, number)
        return linked(asdict(issue), [issue])

    @server.resource("tracker://{owner}/{name}/issues/{number}", mime_type="application/json")
    def issue_resource(owner: str, name: str, number: int) -> str:
        """One issue with its comments, as JSON."""
        with said():
            return json.dumps(asdict(issues.get(f"{owner}/{name}", number)), ensure_ascii=False)

    _ = search_repositories, list_issues, get_issue, issue_resource  # the server holds them


def _add_changing(server: MCPServer, issues: Issues) -> None:
    @server.tool(title="Create an issue", annotations=ADDS)
    def create_issue(
        repository: Name,
        title: Annotated[
            str, Field(min_length=1, max_length=200, description="one line that says what is wrong")
        ],
        body: Annotated[str, Field(description="what happens, since when, how to see it")] = "",
        labels: Annotated[list[str] | None, Field(description="such as bug, docs, feature")] = None,
        assignee: Login = None,
        due: Annotated[str | None, Field(description="a date", json_schema_extra={"format": "date"})] = None,
    ) -> OneIssue:
        """File a new issue in a repository."""
        named = [label.lower() for label in labels or []]
        with said():
            issue = issues.create(repository, title, body=body, labels=named, assignee=assignee, due=due)
        return linked(asdict(issue), [issue])

    @server.tool(title="Comment on an issue", annotations=ADDS)
    def comment_issue(
        repository: Name, number: Number, body: Annotated[str, Field(min_length=1, description="the comment")]
    ) -> OneIssue:
        """Add a comment to an issue."""
        with said():
            issue = issues.comment(repository, number, body)
        return linked(asdict(issue), [issue])

    @server.tool(title="Close an issue", annotations=SETS)
    def close_issue(
        repository: Name,
        number: Number,
        reason: Annotated[Literal["completed", "not_planned"], Field(description="why")] = "completed",
    ) -> OneIssue:
        """Close an issue; one that is closed already stays as it is."""
        with said():
            issue = issues.close(repository, number, reason)
        return linked(asdict(issue), [issue])

    _ = create_issue, comment_issue, close_issue  # the server holds them


def linked(result: dict[str, Any], issues: Sequence[Issue]) -> CallToolResult:
    return answered(
        result,
        [
            ResourceLink(
                uri=issue.uri,
                name=f"{issue.repository}#{issue.number}",
                title=issue.title,
                mime_type="application/json",
            )
            for issue in issues
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="tracker_server.py", description="A sample issue tracker.")
    add_data_option(parser)
    directory: Path = parser.parse_args().data
    build_server(Issues(directory / "tracker.json")).run("stdio")


if __name__ == "__main__":
    main()
