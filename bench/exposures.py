"""What the same jobs cost by each way to tools: five over the demo's four connectors, one over 117 tools.

The one: find the tool that lists issues, call it for two repositories, say how many are open. A scripted
model does them by each way. Counted is what is sent to the model (instructions, definitions, messages) and
what it says, with the same counter for all; the price is that of a mid-sized model.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

import exposure_jobs as jobs
import lab
from dragoman import Hub
from dragoman.agents.prices import cost_of
from dragoman.examples import examples
from dragoman.run import Run
from dragoman.settings import Settings
from dragoman.tokens import count_tokens, counter
from dragoman.tool import json_bytes

HERE = Path(__file__).parent
CATALOGUE = HERE.parent / "tests" / "data" / "tool-search" / "github_mcp_tools.json"
PRICED = "openai:gpt-5-mini"
FIRST_OF_ASSISTANT, FIRST_OF_CONNECTOR = 1_500, 2_500
WAYS = ("direct", "search", "delegate", "code")
JOB = "How many open issues do octocat/xyne and octocat/other have together?"
TOOL = "mcp_github_list_issues"
CALLS = [
    (TOOL, {"owner": "octocat", "repo": repository, "state": "OPEN"}) for repository in ("xyne", "other")
]
LOOK = "print(await search_tools('list issues', limit=5))\nprint(await describe_tool('github.list_issues'))"
COUNT = """pages = await asyncio.gather(
    github.list_issues(owner="octocat", repo="xyne", state="OPEN"),
    github.list_issues(owner="octocat", repo="other", state="OPEN"),
)
sum(1 for page in pages for issue in page["issues"] if issue["state"] == "OPEN")"""
PLAN = {"steps": [{"tool": TOOL, "reason": "it lists the issues of a repository", "depends_on": []}]}
QUERY = {"connector_id": "github", "query": JOB}
SCRIPTS: dict[str, Sequence[jobs.Said]] = {
    "direct": [CALLS, "Together they have many open issues."],
    "search": [[("search_tools", {"query": "list issues of a repository"})], CALLS, "They have many."],
    "delegate": [[("query_mcp_connector", QUERY)], "Together they have many open issues."],
    "code": [[("run_code", {"code": LOOK})], [("run_code", {"code": "import asyncio\n" + COUNT})], "Many."],
    "child": [[("state_plan", PLAN), *CALLS], "Together they have many open issues [c1][c2]."],
}


@dataclass(slots=True)
class Sent:
    """What went to the model and came back, in tokens."""

    requests: int = 0
    instructions: int = 0
    definitions: int = 0
    messages: int = 0
    answers: int = 0
    most: int = 0

    first: dict[str, int] = field(default_factory=dict[str, int])  # the first request of each agent

    @property
    def total(self) -> int:
        return self.instructions + self.definitions + self.messages

    @property
    def cost(self) -> float:
        used = RequestUsage(input_tokens=self.total, output_tokens=self.answers)
        return cost_of(PRICED, used) or 0.0

    def add(self, messages: Sequence[ModelMessage], info: AgentInfo) -> None:
        instructions = count_tokens(info.instructions or "")
        definitions = sum(
            count_tokens(json_bytes([tool.name, tool.description, tool.parameters_json_schema]))
            for tool in info.function_tools
        )
        said = sum(count_tokens(text) for text in _texts(messages))
        self.requests += 1
        self.instructions += instructions
        self.definitions += definitions
        self.messages += said
        self.most = max(self.most, instructions + definitions + said)
        self.first.setdefault((info.instructions or "").partition("\n")[0], instructions + definitions + said)


@dataclass(slots=True)
class Scripted:
    """The model: by which way it works it knows from what it is offered."""

    way: str = "direct"
    job: jobs.Job | None = None
    sent: Sent = field(default_factory=Sent)

    @property
    def model(self) -> FunctionModel:
        async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            self.sent.add(messages, info)
            is_child = any(tool.name == "state_plan" for tool in info.function_tools)
            turn = sum(isinstance(message, ModelResponse) for message in messages)
            said = (
                jobs.said_next(self.job, messages, [tool.name for tool in info.function_tools], self.way)
                if self.job
                else SCRIPTS["child" if is_child else self.way][turn]
            )
            self.sent.answers += count_tokens(said if isinstance(said, str) else json.dumps(said))
            async for delta in _spoken(said, turn):
                yield delta

        return FunctionModel(stream_function=answer)


async def _spoken(said: jobs.Said, turn: int) -> AsyncIterator[Any]:
    if isinstance(said, str):
        yield said
        return
    for place, (name, arguments) in enumerate(said):
        yield {place: DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"c{turn}{place}")}


def _texts(messages: Sequence[ModelMessage]) -> list[str]:
    """What a provider would be sent of a conversation, without ids and times."""
    texts: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                texts.append(f"{part.tool_name} {part.args_as_json_str()}")
            elif isinstance(part, TextPart):
                texts.append(part.content)
            elif isinstance(message, ModelRequest):
                content = getattr(part, "content", "")
                texts.append(content if isinstance(content, str) else json.dumps(content, default=str))
    return texts


async def measure(rows: int) -> dict[str, tuple[Run, Sent]]:
    found: dict[str, tuple[Run, Sent]] = {}
    with TemporaryDirectory() as home:
        async with Hub(Settings(home=Path(home), model="scripted")) as hub:
            program = [str(HERE / "catalog_server.py"), str(CATALOGUE), str(rows)]
            await hub.connectors.add(
                "github",
                command=sys.executable,
                sandbox="none",
                args=program,
                description="GitHub: code, issues, reviews",
            )
            for way in WAYS:
                scripted = Scripted(way)
                hub.models.register("scripted", scripted.model)
                run = await hub.messages.ask(JOB, options={"exposure": way})
                assert run.status == "done", run.error
                assert (run.exposure, run.usage.calls) == (way, 2), run
                found[way] = (run, scripted.sent)
    return found


@asynccontextmanager
async def open_demo(place: Path) -> AsyncGenerator[Hub]:
    """The four connectors of `dragoman demo`, none of which asks a person."""
    servers = examples() / "servers"
    program = [str(servers / "tasks_service.py"), "--data", str(place), "--port", "0"]
    tasks = await asyncio.create_subprocess_exec(sys.executable, *program, stdout=asyncio.subprocess.PIPE)
    assert tasks.stdout is not None
    try:
        url = (await tasks.stdout.readline()).decode().strip()
        async with Hub(Settings(home=place / "home", model="scripted")) as hub:
            for name, description in {
                "email": "A mailbox: read and send e-mail",
                "tracker": "An issue tracker: repositories and their issues",
                "chat": "A team chat: channels, messages, who is here",
            }.items():
                data = (
                    ["--mailbox", str(place / "mailbox.json")] if name == "email" else ["--data", str(place)]
                )
                args = [str(servers / f"{name}_server.py"), *data]
                await hub.connectors.add(
                    name,
                    command=sys.executable,
                    sandbox="none",
                    args=args,
                    description=description,
                    approval="never",
                )
            await hub.connectors.add(
                "tasks", openapi=url, description="Tasks of a team with their due dates", approval="never"
            )
            yield hub
    finally:
        tasks.terminate()
        await tasks.wait()


async def measure_jobs() -> dict[str, list[Sent]]:
    """What each of the five jobs took, by way."""
    found: dict[str, list[Sent]] = {way: [] for way in WAYS}
    for way in WAYS:
        with TemporaryDirectory() as place:  # what a job changes is new to the next way
            async with open_demo(Path(place)) as hub:
                for job in jobs.JOBS:
                    scripted = Scripted(way, job)
                    hub.models.register("scripted", scripted.model)
                    run = await hub.messages.ask(job.text, options={"exposure": way})
                    assert (run.status, run.exposure) == ("done", way), run
                    made = sum(len(step) for step in job.steps)
                    assert run.usage.calls == made, (way, job.text, run.usage)
                    found[way].append(scripted.sent)
    return found


async def measure_first() -> Sent:
    """The first request of the assistant and of each connector's agent, by the default way."""
    sent = Sent()
    with TemporaryDirectory() as place:
        async with open_demo(Path(place)) as hub:
            for job in jobs.JOBS:
                scripted = Scripted("delegate", job, sent)
                hub.models.register("scripted", scripted.model)
                await hub.messages.ask(job.text)
    return sent


def report_jobs(report: lab.Report) -> None:
    found = asyncio.run(measure_jobs())
    report.table(
        f"The same five jobs over the demo's four connectors; tokens by {counter()}, price of {PRICED}",
        ["way", "requests", "tokens sent", "tokens said", "largest request", "dollars"],
        [
            [
                way,
                sum(one.requests for one in sent),
                sum(one.total for one in sent),
                sum(one.answers for one in sent),
                max(one.most for one in sent),
                f"{sum(one.cost for one in sent):.4f}",
            ]
            for way, sent in found.items()
        ],
    )
    first = asyncio.run(measure_first()).first
    report.table("First requests, in tokens", ["who", "tokens"], [[who[:60], n] for who, n in first.items()])
    assistant = max(tokens for who, tokens in first.items() if "assistant" in who)
    below = max(tokens for who, tokens in first.items() if "assistant" not in who)
    report.verdict(
        f"the assistant's first request has at most {FIRST_OF_ASSISTANT:,} tokens",
        f"{assistant:,}",
        met=assistant <= FIRST_OF_ASSISTANT,
    )
    report.verdict(
        f"that of a connector's agent has at most {FIRST_OF_CONNECTOR:,}",
        f"{below:,}",
        met=below <= FIRST_OF_CONNECTOR,
    )


def main() -> None:
    given = lab.options(__doc__ or "", rows=(50, "issues in each of the two results"))
    report = lab.Report("exposures")
    report_jobs(report)
    found = asyncio.run(measure(given.rows))
    report.table(
        f"The same job over 117 tools, two results of {given.rows} rows; tokens by {counter()}",
        ["way", "requests", "sent", "definitions", "instructions", "messages", "largest", "said", "saved"],
        [
            [
                *(way, sent.requests, sent.total, sent.definitions, sent.instructions, sent.messages),
                *(sent.most, sent.answers, run.usage.tokens_saved),
            ]
            for way, (run, sent) in found.items()
        ],
    )
    totals = {way: sent.total for way, (_, sent) in found.items()}
    for way in ("search", "code"):
        share = totals[way] / totals["direct"]
        report.verdict(f"{way} sends at most half of direct", f"{share:.0%}", met=share <= 0.5)
    report.notes.append(
        "delegate sends the definitions too, but to the connector's agent: who asked it sees only the answer."
    )
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
