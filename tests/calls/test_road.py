import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from toolshop import READ_ONLY, Doorstep, World, echo, made_connector, text

from dragoman.calls import Road
from dragoman.errors import Unreachable
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.store.protocols import CallStore
from dragoman.telemetry.redaction import Redactor
from dragoman.tool import Annotations, RawResult, ToolCall
from patience import patient

pytestmark = pytest.mark.anyio


async def test_a_call_comes_back_with_result_and_circumstances(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        call = ToolCall(tool="mcp_shop_echo", arguments={"a": 1})
        output = await world.road.call(call, LOCAL_CALLER)
    assert output.ok
    assert output.error is None
    assert output.result == {"a": 1}
    metadata = output.metadata
    assert (metadata.request_id, metadata.connector, metadata.original_name) == (call.id, "shop", "echo")
    assert (metadata.version, metadata.content_type, metadata.attempts) == (1, "application/json", 1)
    assert metadata.duration_ms > 0
    assert not metadata.truncated


async def test_an_unknown_tool_is_an_output_with_a_hint(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        output = await world.call("mcp_shop_ecko")
    assert not output.ok
    assert output.error is not None
    assert (output.error.code, output.error.hint) == ("not_found", "did you mean 'mcp_shop_echo'?")
    assert world.shop.calls == []


async def test_a_tool_of_another_user_does_not_exist(sqlite_url: str) -> None:
    async with World(sqlite_url, made_connector(owner="ann")) as world:
        await world.offer("echo", echo)
        mine = await world.call("mcp_shop_echo", Caller(user="ann"))
        theirs = await world.call("mcp_shop_echo", Caller(user="bob"))
        elsewhere = await world.call("mcp_shop_echo", Caller(workspace="other", user="ann"))
        absent = await world.call("mcp_shop_echo2", Caller(user="bob"))
    assert mine.ok
    for output in (theirs, elsewhere):
        assert output.error is not None
        assert output.error.code == "not_found"
        assert absent.error is not None
        assert output.error.hint == absent.error.hint
        assert output.metadata.connector is None
    assert len(world.shop.calls) == 1


async def test_bad_arguments_never_leave(sqlite_url: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with World(sqlite_url) as world:
        await world.offer("echo", echo, input_schema=schema)
        output = await world.call("mcp_shop_echo", a="one")
        assert output.error is not None
        assert output.error.code == "invalid_arguments"
        assert output.error.message == "the argument 'a' must be a whole number, not text"
        assert world.shop.calls == []
        assert world.recorder.metrics(world.connector).rejected == 1
        assert world.recorder.metrics(world.connector).calls == 0


async def test_a_failure_of_the_tool_is_told_in_its_own_words(sqlite_url: str) -> None:
    async def fail(arguments: Mapping[str, Any]) -> RawResult:
        return text("no such zone: Mars", is_error=True)

    async with World(sqlite_url) as world:
        await world.offer("fail", fail)
        output = await world.call("mcp_shop_fail")
    assert output.error is not None
    assert (output.ok, output.result) == (False, None)
    assert (output.error.code, output.error.message) == ("tool_failed", "no such zone: Mars")
    assert (output.error.connector, output.error.tool) == ("shop", "mcp_shop_fail")
    assert output.content == ({"type": "text", "text": "no such zone: Mars"},)


async def test_what_the_source_raises_is_an_output_without_any_secret(sqlite_url: str) -> None:
    async def raise_fault(arguments: Mapping[str, Any]) -> RawResult:
        raise Unreachable("refused with hunter2-hunter2", hint="is it running?", retry_after=3.0)

    async def crash(arguments: Mapping[str, Any]) -> RawResult:
        raise RuntimeError("hunter2-hunter2")

    redactor = Redactor()
    redactor.register(["hunter2-hunter2"])
    async with World(sqlite_url, redactor=redactor) as world:
        await world.offer("fault", raise_fault)
        await world.offer("crash", crash)
        await world.offer("peek", crash, annotations=Annotations(read_only=True))
        fault, crashed = await world.call("mcp_shop_fault"), await world.call("mcp_shop_crash")
        peeked = await world.call("mcp_shop_peek")
    assert fault.error is not None
    assert crashed.error is not None
    assert (fault.error.code, fault.error.retryable, fault.error.retry_after) == ("unreachable", True, 3.0)
    assert fault.error.message == "refused with [hidden]"
    assert peeked.error is not None
    assert (peeked.error.code, peeked.error.cause) == ("internal", "RuntimeError")
    assert (crashed.error.code, crashed.error.cause) == ("uncertain", "RuntimeError"), "it may have happened"
    assert "hunter2" not in repr(crashed) + repr(peeked)


async def test_a_cancelled_call_is_cancelled_recorded_and_gives_its_place_back(sqlite_url: str) -> None:
    wait = Doorstep()
    async with World(sqlite_url, made_connector(max_concurrency=1)) as world:
        await world.offer("wait", wait)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(world.call("mcp_shop_wait"))
            await wait.begun.acquire()
            task.cancel()
        assert task.cancelled()
        wait.go.set()
        assert (await world.call("mcp_shop_wait")).ok
        await world.recorder.flush()
        codes = [record.code for record in await world.store.calls.recent("local", "owner")]
        assert sorted(codes, key=str) == [None, "cancelled"]


async def test_a_disabled_tool_and_a_disabled_connector_refuse(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        await world.catalog.disable("mcp_shop_echo", LOCAL_CALLER)
        tool_off = await world.call("mcp_shop_echo")
        await world.catalog.enable("mcp_shop_echo", LOCAL_CALLER)
        world.catalog.adopt(replace(world.connector, enabled=False))
        connector_off = await world.call("mcp_shop_echo")
    assert tool_off.error is not None
    assert connector_off.error is not None
    assert tool_off.error.code == connector_off.error.code == "tool_disabled"
    assert 'hub.connectors.enable("shop")' in (connector_off.error.hint or "")


async def test_code_may_not_call_what_is_not_open_to_code(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        output = await world.call("mcp_shop_echo", Caller(way="code"))
    assert output.error is not None
    assert output.error.code == "denied"
    assert "direct" in (output.error.hint or "")


async def test_a_pinned_tool_that_changed_is_not_called(sqlite_url: str) -> None:
    async with World(sqlite_url, made_connector(pin="block")) as world:
        await world.offer("echo", echo)
        world.shop.definitions[0] = replace(world.shop.definitions[0], description="poisoned")
        listing = await world.shop.list_tools(world.connector, LOCAL_CALLER)
        await world.catalog.refresh(world.connector, listing)
        refused = await world.call("mcp_shop_echo")
        await world.catalog.accept("mcp_shop_echo", LOCAL_CALLER)
        accepted = await world.call("mcp_shop_echo")
    assert refused.error is not None
    assert refused.error.code == "tool_changed"
    assert accepted.ok
    assert accepted.metadata.version == 2


@pytest.mark.parametrize(("asked", "allowed"), [(None, 60.0), (5.0, 5.0), (500.0, 60.0)])
async def test_a_caller_may_shorten_the_time_but_never_lengthen_it(
    sqlite_url: str, asked: float | None, allowed: float
) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        before = asyncio.get_running_loop().time()
        await world.road.call(ToolCall(tool="mcp_shop_echo", timeout=asked), LOCAL_CALLER)
        assert world.shop.calls[0].deadline.at - before == pytest.approx(allowed, abs=patient(0.5))


async def test_a_timeout_of_nothing_is_refused(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        for timeout in (0, -1, float("nan")):
            output = await world.road.call(ToolCall(tool="mcp_shop_echo", timeout=timeout), LOCAL_CALLER)
            assert output.error is not None
            assert output.error.code == "invalid_arguments"
        assert world.shop.calls == []


async def test_waiting_for_a_place_counts_against_the_deadline(sqlite_url: str) -> None:
    wait = Doorstep()
    async with World(sqlite_url, made_connector(max_concurrency=1)) as world:
        await world.offer("wait", wait)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(world.call("mcp_shop_wait"))
            await wait.begun.acquire()
            output = await world.road.call(ToolCall(tool="mcp_shop_wait", timeout=0.05), LOCAL_CALLER)
            wait.go.set()
    assert output.error is not None
    assert output.error.code == "limit_reached"
    assert "max_concurrency" in (output.error.hint or "")
    assert len(world.shop.calls) == 1


async def test_listeners_hear_a_call_begin_and_end(sqlite_url: str) -> None:
    async with World(sqlite_url) as world:
        await world.offer("echo", echo)
        with world.events.listen("local", "owner") as listener, world.events.listen("local", "bob") as other:
            await world.call("mcp_shop_echo")
            world.events.close()
            heard = [event async for event in listener]
            assert [event async for event in other] == []
    assert [event.kind for event in heard] == ["call.started", "call.finished"]
    assert heard[1].data["ok"] is True
    assert heard[0].data["id"] == heard[1].data["id"]


async def test_a_large_result_is_cut_and_kept_whole_for_its_user(database_url: str) -> None:
    whole = "äbc" * 500_000

    async def shout(arguments: Mapping[str, Any]) -> RawResult:
        return text(whole)

    async with World(database_url, made_connector(max_result_bytes=2048)) as world:
        await world.offer("shout", shout)
        output = await world.call("mcp_shop_shout")
        handle = output.metadata.handle or ""
        kept = await world.store.calls.find_result("local", "owner", handle)
        assert await world.store.calls.find_result("local", "bob", handle) is None
    assert output.ok
    assert (output.metadata.truncated, output.metadata.size) == (True, len(whole.encode()))
    assert kept is not None
    assert kept.body.decode() == whole
    shown, last = output.result.rsplit("\n", 1)
    assert whole.startswith(shown)
    assert 2040 <= len(shown.encode()) <= 2048
    assert handle in last
    assert output.content == ({"type": "text", "text": output.result},)


async def test_a_result_that_cannot_be_kept_is_still_a_result(sqlite_url: str) -> None:
    async def shout(arguments: Mapping[str, Any]) -> RawResult:
        return text("x" * 5000)

    async with World(sqlite_url, made_connector(max_result_bytes=1024)) as world:
        await world.offer("shout", shout)
        world.road._keeping._rows = cast("CallStore", _Full())
        output = await world.call("mcp_shop_shout")
    assert output.ok
    assert (output.metadata.truncated, output.metadata.handle) == (True, None)
    assert "could not be kept" in output.result


class _Full:
    async def keep_result(self, result: object) -> None:
        raise OSError("disk full")


async def test_a_read_only_tool_with_a_time_to_live_answers_from_memory(sqlite_url: str) -> None:
    async with World(sqlite_url, made_connector(cache_ttl=60)) as world:
        await world.offer("read", echo, annotations=READ_ONLY)
        await world.offer("write", echo)
        first = await world.call("mcp_shop_read", a=[1])
        first.result["a"].append("changed by its caller")
        second = await world.call("mcp_shop_read", a=[1])
        other_arguments = await world.call("mcp_shop_read", a=[2])
        other_user = await world.call("mcp_shop_read", Caller(user="bob"), a=[1])
        await world.call("mcp_shop_write")
        repeated = await world.call("mcp_shop_write")
        assert world.recorder.metrics(world.connector).cached == 1
    assert second.metadata.cached
    assert second.result == {"a": [1]}
    for output in (first, other_arguments, other_user, repeated):
        assert not output.metadata.cached
    assert len(world.shop.calls) == 5


def test_the_road_fits_on_one_screen() -> None:
    assert len(inspect.getsource(Road.call).splitlines()) <= 40
