"""What nodes tell each other of connections comes back as it was, and is said as it was recorded.

`versions/` has it as each version said it first; a record is never changed.
"""

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.calls.call_channel import CallChannel
from dragoman.connections import placed_messages as messages
from dragoman.connections.deadline import Deadline
from dragoman.connections.source import ConnectionStatus, Listing, ServerNotice, ServerRequest, SourceCall
from dragoman.connector import Configuration, Connector
from dragoman.errors import DragomanError, Internal, RateLimited
from dragoman.scope import holder_caller, identity_of
from dragoman.tool import Annotations, RawResult, Tool, ToolDefinition

pytestmark = pytest.mark.anyio
RECORD: dict[str, Any] = json.loads(
    (Path(__file__).parent / "versions" / "0.1.0_connections.json").read_text()
)
BOX = Connector(
    id="con_1",
    workspace="local",
    owner="",
    slug="box",
    configuration=Configuration(command="box"),
    revision=3,
)
IDENTITY = "user:local:ada%3Abyron:thread:one"
ECHO = ToolDefinition(original_name="echo", title="Echo", annotations=Annotations(read_only=True))
STATUS = ConnectionStatus(
    connector_id="con_1",
    slug="box",
    identity=IDENTITY,
    state="error",
    cause="gone",
    since=datetime(2026, 11, 17, 1, tzinfo=UTC),
    stderr=("one", "two"),
)
PLAIN: dict[str, tuple[Any, Any, Any]] = {
    "result": (
        messages.dump_result,
        messages.load_result,
        RawResult(content=({"type": "text", "text": "é"},), structured={"a": 2**70}, has_structured=True),
    ),
    "listing": (
        messages.dump_listing,
        messages.load_listing,
        Listing(tools=(ECHO,), era="2025", skipped=("a tool without a name",)),
    ),
    "status": (messages.dump_status, messages.load_status, STATUS),
    "notice": (
        partial(messages.dump_notice, BOX, IDENTITY),
        messages.load_notice,
        ServerNotice("resource", "test://a"),
    ),
}


def told(body: Any) -> Any:
    return json.loads(json.dumps(body))


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_told_comes_back_as_it_was_and_is_on_record(name: str) -> None:
    dump, load, meant = PLAIN[name]
    assert load(RECORD[name]) == meant
    assert told(dump(meant)) == RECORD[name]


async def test_a_call_and_a_question_say_all_that_the_wire_needs_and_no_right() -> None:
    caller = holder_caller(IDENTITY)
    assert identity_of(caller, "thread") == IDENTITY
    assert not caller.may_use("box", "mcp_box_echo")
    deadline = Deadline(60, 300)
    channel = CallChannel(None, BOX, deadline)
    tool = Tool(
        name="mcp_box_echo",
        workspace="local",
        connector_id="con_1",
        slug="box",
        definition=ECHO,
        fingerprint="f1",
    )
    call = SourceCall(
        connector=BOX, tool=tool, arguments={"text": "x"}, caller=caller, deadline=deadline, channel=channel
    )
    question = ServerRequest(
        connector=BOX,
        method="prompts/get",
        params={"name": "p"},
        caller=caller,
        deadline=deadline,
        channel=channel,
    )
    said = {
        "call": messages.dump_call(call, IDENTITY),
        "question": messages.dump_question(question, IDENTITY),
    }
    for name, body in said.items():
        assert told({**body, "deadline": [60, 60, 300]}) == RECORD[name]
    read = messages.load_call(RECORD["call"], BOX, caller, messages.load_deadline(RECORD["call"]), channel)
    assert read.tool.original_name == "echo"
    assert read.tool.definition.annotations.is_safe_to_repeat
    assert read.arguments == {"text": "x"}
    assert 55 < read.deadline.left < 60, "a moment less: who holds it says more of why it is late"
    asked = messages.load_question(RECORD["question"], BOX, caller, deadline, channel)
    assert (asked.method, asked.params) == ("prompts/get", {"name": "p"})


def test_an_error_is_the_same_elsewhere_and_one_of_a_later_version_is_internal() -> None:
    error = RateLimited("wait", hint="later", cause="rate_limited", retry_after=2.0)
    error.attempts = 3
    read = messages.load_error(told(messages.dump_error(error)))
    assert (type(read), vars(read)) == (RateLimited, vars(error))
    assert type(messages.load_error({"code": "not_thought_of_yet", "message": "?"})) is Internal
    for kind in _kinds(DragomanError):
        assert messages.load_error(messages.dump_error(kind("x"))).code == kind.code


def _kinds(root: type[DragomanError]) -> list[type[DragomanError]]:
    return [one for kind in root.__subclasses__() for one in (kind, *_kinds(kind))]
