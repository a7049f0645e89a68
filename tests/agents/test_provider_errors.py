"""What a provider does wrong is told in words that help, and never with a key."""

import traceback
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.exceptions import ModelHTTPError, RunTimedOut, UnexpectedModelBehavior, UserError

from dragoman.agents.models import Models
from dragoman.agents.provider_errors import explained
from dragoman.errors import DragomanError, InvalidConfig
from patience import deadline, patient, until
from servers.processes import HttpProcess
from servers.scenarios import Call, Reply
from servers.scripted_models import ScriptedServer, open_scripted_anthropic, open_scripted_openai

pytestmark = pytest.mark.anyio
KEY = "sk-proj-canary-4f1c9a7e22b1"
NAMES = {"openai": "openai-chat:gpt-5.4", "anthropic": "anthropic:claude-sonnet-5-5"}
PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


async def failed(
    protocol: str, server: ScriptedServer | str, streamed: bool = False, timeout: float = 5.0, **run: Any
) -> DragomanError:
    """What a person is told when a run fails."""
    base_url = server if isinstance(server, str) else server.base_url
    variable = protocol.upper()
    environment = {f"{variable}_API_KEY": KEY, f"{variable}_BASE_URL": base_url}
    async with Models(environment=environment, ollama="", timeout=timeout) as models:
        model = models.open(await models.choose(NAMES[protocol]))
        agent = Agent(model, model_settings={"max_retries": 0, "max_tokens": 1000})

        @agent.tool_plain
        def again() -> str:
            raise ModelRetry("not like this")

        with pytest.raises((RuntimeError, OSError)) as caught:
            if streamed:
                async with agent.run_stream_events("hello", **run) as events:
                    _ = [event async for event in events]
            else:
                await agent.run("hello", **run)
    found = explained(caught.value, NAMES[protocol])
    assert KEY not in "".join(traceback.format_exception(found))
    assert KEY not in f"{found.message} {found.hint} {found.cause}"
    assert found.hint
    return found


def open_scripted(protocol: str, reply: Reply, key: str | None = None) -> Any:
    opened = open_scripted_openai if protocol == "openai" else open_scripted_anthropic
    return opened(lambda _: reply, key)


@PROTOCOLS
@STREAMED
@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (Reply(status=403, text=f"not for {KEY}"), "model_refused_key", "does not let this key use"),
        (Reply(status=404, text="no such model"), "model_not_found", "has no model"),
        (Reply(status=429, retry_after=7), "model_rate_limited", "wants fewer requests"),
        (Reply(status=402), "model_quota_spent", "no credit left"),
        (Reply(status=500), "model_unavailable", "down or overloaded (status 500)"),
        (Reply(status=503), "model_unavailable", "down or overloaded (status 503)"),
        (Reply(status=529), "model_unavailable", "down or overloaded"),
        (Reply(context_too_long=True), "context_too_long", "longer than"),
        (Reply(status=400, text="a tool's schema is wrong"), "model_refused", "rejected the request"),
        (Reply(garbage=True), "model_garbage", "cannot be read"),
        (Reply(content_filter=True), "model_refused", "content filter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_failure_of_a_provider_has_its_own_words(
    protocol: str, streamed: bool, reply: Reply, code: str, message: str
) -> None:
    async with open_scripted(protocol, reply) as server:
        found = await failed(protocol, server, streamed)
    assert (found.code, len(server.requests)) == (code, 1), (found.message, found.cause)
    assert message in found.message
    assert found.retry_after == reply.retry_after
    if reply.status == 400:
        assert found.cause == "a tool's schema is wrong"


@STREAMED
@pytest.mark.parametrize("path", ["/endless", "/bomb"])
async def test_an_answer_without_end_is_cut(tmp_path: Path, path: str, streamed: bool) -> None:
    program = str(Path(__file__).parents[1] / "hostile" / "hostile_server.py")
    with HttpProcess(tmp_path, "gzip-bomb", program=program) as server:
        before = psutil.Process().memory_info().rss
        found = await failed("openai", f"{server.origin}{path}", streamed, timeout=patient(20))
        assert found.code == "model_garbage", found
        assert "sent an answer of more than 33,554,432 bytes" in found.message
        assert psutil.Process().memory_info().rss - before < 200 * 1024 * 1024
        await until(lambda: server.state()["open"] == 0)
        assert server.state()["sent"] < 100 * 1024 * 1024


@PROTOCOLS
@STREAMED
async def test_a_refused_key_is_never_repeated(protocol: str, streamed: bool) -> None:
    async with open_scripted(protocol, Reply(text="never"), key="another") as server:
        found = await failed(protocol, server, streamed)
    assert found.code == "model_refused_key"
    assert f"{protocol.upper()}_API_KEY" in (found.hint or "")
    assert server.keys == [KEY]


@PROTOCOLS
async def test_a_stream_that_is_cut_is_told_as_such(protocol: str) -> None:
    async with open_scripted(protocol, Reply(text="half of an answer", cut=True)) as server:
        found = await failed(protocol, server, streamed=True)
    assert (found.code, found.retryable) == ("model_unavailable", True)
    assert "broke off in the middle of its answer" in found.message


@PROTOCOLS
async def test_a_key_inside_of_another_message_is_hidden(protocol: str) -> None:
    text = f"project {KEY} may not, x-api-key: {KEY}, nor gsk_abcdef0123456789 nor AIzaSyD4f1c9a7e22b1xyz"
    async with open_scripted(protocol, Reply(status=400, text=text)) as server:
        found = await failed(protocol, server)
    assert found.cause == "project [hidden] may not, x-api-key: [hidden], nor [hidden] nor [hidden]"


@PROTOCOLS
async def test_a_provider_that_is_not_there_is_unavailable(protocol: str) -> None:
    found = await failed(protocol, "http://127.0.0.1:1")
    assert found.code == "model_unavailable"
    assert "cannot be reached" in found.message
    assert f"{protocol.upper()}_BASE_URL" in (found.hint or "")


@PROTOCOLS
@STREAMED
async def test_a_slow_provider_is_given_up(protocol: str, streamed: bool) -> None:
    async with open_scripted(protocol, Reply(text="late", delay=30)) as server:
        found = await failed(protocol, server, streamed, timeout=0.2)
        async with deadline(2):
            await server.left_alone.wait()
    assert (found.code, found.retryable) == ("model_timeout", True)


@PROTOCOLS
async def test_the_limits_of_a_run_are_ours(protocol: str) -> None:
    async with open_scripted(protocol, Reply(tool_calls=(Call("again", {}),))) as server:
        found = await failed(protocol, server, usage_limits=UsageLimits(request_limit=1))
    assert found.code == "limit_reached"
    assert "request_limit of 1" in found.message


@PROTOCOLS
async def test_a_model_that_never_gets_it_right_is_told(protocol: str) -> None:
    async with open_scripted(protocol, Reply(tool_calls=(Call("again", {}),))) as server:
        found = await failed(protocol, server)
    assert found.code == "model_garbage"
    assert "kept sending what the tools do not accept" in found.message


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelHTTPError(401, "m"), "model_refused_key"),
        (ModelHTTPError(404, "m"), "model_not_found"),
        (ModelHTTPError(408, "m"), "model_timeout"),
        (ModelHTTPError(429, "m", headers={"Retry-After": "2"}), "model_rate_limited"),
        (ModelHTTPError(502, "m"), "model_unavailable"),
        (ModelHTTPError(413, "m", {"error": {"message": "prompt is too long"}}), "context_too_long"),
        (ModelHTTPError(418, "m"), "model_refused"),
        (UnexpectedModelBehavior("Content filter triggered"), "model_refused"),
        (UnexpectedModelBehavior("Received empty model response"), "model_garbage"),
        (RunTimedOut("too long"), "limit_reached"),
        (UserError("Set the `X_API_KEY` environment variable. To try Pydantic AI …"), "invalid_config"),
        (ImportError("Please install `x`"), "invalid_config"),
        (TimeoutError(), "model_timeout"),
        (ConnectionResetError(), "model_unavailable"),
        (ZeroDivisionError("secret inside"), "internal"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_errors_without_a_category_are_read_by_what_they_are(error: Exception, code: str) -> None:
    found = explained(error, "cohere:command")
    assert found.code == code
    assert found.hint
    assert "secret inside" not in f"{found.message} {found.hint} {found.cause}"


def test_what_is_ours_already_stays_as_it_is() -> None:
    ours = InvalidConfig("x")
    assert explained(ours, "openai:gpt-5") is ours


def test_a_model_that_is_not_there_is_told_what_may_help() -> None:
    error = ModelHTTPError(404, "qwen3")
    assert "ollama pull qwen3" in (explained(error, "ollama:qwen3").hint or "")
    assert "openai-chat:gpt-9" in (explained(error, "openai:gpt-9").hint or "")
    assert "OLLAMA_HOST" in (explained(ConnectionRefusedError(), "ollama:qwen3").hint or "")
