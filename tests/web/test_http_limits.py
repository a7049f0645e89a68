"""How long a connection may take for what, and that none is left open for ever."""

import asyncio
import logging
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from dragoman.web.http_server import ConnectionLimits, HttpServer, Wait
from patience import deadline, until
from servers.ports import served

pytestmark = pytest.mark.anyio
PATIENT: dict[Wait, float] = {"head": 60.0, "body": 60.0, "idle": 60.0, "reader": 60.0}
HEAD = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class App:
    """`/read` reads the body, `/hasty` answers without, `/large` tells 128 MB, `/stream` tells once."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.ended: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        try:
            if path == "/read":
                message = await receive()
                body = message.get("body", b"")
                while message.get("more_body"):
                    message = await receive()
                    body += message.get("body", b"")
                self.bodies.append(body)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(2000 if path == "/large" else 0):
                await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
            if path == "/stream":
                await send({"type": "http.response.body", "body": b"first", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass
            await send({"type": "http.response.body", "body": b"done"})
        finally:
            self.ended.append(path)


@asynccontextmanager
async def serving(most: int = 100, **seconds: float) -> AsyncGenerator[tuple[HttpServer, App, Any]]:
    app = App()
    limits = ConnectionLimits(most, {**PATIENT, **seconds})  # type: ignore[dict-item]
    server = HttpServer(app, limits, last_requests=1)
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[asyncio.StreamWriter] = []

    async def connect(said: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        opened.append(writer)
        writer.write(said)
        return reader, writer

    async with served(server, listener):
        try:
            yield server, app, connect
        finally:
            for writer in opened:
                writer.close()


async def told(reader: asyncio.StreamReader) -> bytes:
    """All of it, until the other side closes."""
    async with deadline(10):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b"reset"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (b"GET / HT", b"408"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-", b"408"),
    ],
)
async def test_a_head_that_does_not_come_ends_the_connection(said: bytes, status: bytes) -> None:
    async with serving(head=0.3) as (server, _, connect):
        reader, _ = await connect(said)
        answer = await told(reader)
        assert answer[9:12] == status
        assert b"too_slow" in answer or not status
        await until(lambda: not server.server_state.connections)


async def test_a_head_that_comes_byte_by_byte_gets_no_more_time() -> None:
    async with serving(head=0.5) as (server, _, connect):
        reader, writer = await connect()

        async def drip() -> None:
            for byte in HEAD * 50:  # each in time, all together not
                writer.write(bytes([byte]))
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        await told(reader)  # or it is reset, since more was said than was read
        dripping.cancel()
        await until(lambda: not server.server_state.connections)


@pytest.mark.parametrize("path", ["/read", "/hasty", "/stream"])
async def test_a_body_that_does_not_come_ends_the_connection_whatever_was_answered(path: str) -> None:
    async with serving(body=0.3) as (server, app, connect):
        reader, writer = await connect(HEAD.replace(b"/read", path.encode()) + b"abc")
        await asyncio.sleep(0)
        writer.write(b"d")
        answer = await told(reader)
        assert answer[9:12] == (b"408" if path == "/read" else b"200")
        assert answer.count(b"HTTP/1.1 ") == 1
        await until(lambda: not server.server_state.connections)
        await until(lambda: app.ended == [path])


async def test_a_connection_that_asks_nothing_more_is_closed() -> None:
    """Also where the rest of a request came after its answer, or empty lines: uvicorn's own timer has been
    stopped by then."""
    async with serving(idle=0.3, head=0.6) as (server, _, connect):
        reader, _ = await connect(GET)
        assert (await told(reader)).count(b"200 OK") == 1
        reader, writer = await connect(HEAD.replace(b"/read", b"/hasty"))
        async with deadline(10):
            await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"0123456789")
        assert await told(reader) == b""
        reader, writer = await connect(GET)
        async with deadline(10):
            await reader.readuntil(b"0\r\n\r\n")
        writer.write(b"\r\n")
        assert await told(reader) == b""
        await until(lambda: not server.server_state.connections)


async def test_requests_in_time_are_served_one_after_the_other_and_piped() -> None:
    async with serving(head=1, body=1, idle=5) as (_, app, connect):
        reader, writer = await connect()
        for number in range(3):
            writer.write(HEAD + b"%010d" % number)
            async with deadline(10):
                await reader.readuntil(b"0\r\n\r\n")
        writer.write((HEAD + b"0123456789") * 3 + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert (await told(reader)).count(b"200 OK") == 4
        assert len(app.bodies) == 6


async def test_a_stream_lasts_longer_than_any_limit_of_its_request() -> None:
    async with serving(head=0.2, body=0.2, idle=0.2, reader=0.2) as (_, _, connect):
        reader, _ = await connect(GET.replace(b"/ ", b"/stream "))
        late, _ = await connect(b"GET")
        await told(late)  # so much time has passed
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await reader.readuntil(b"0\r\n\r\n")


async def test_who_does_not_read_the_answer_loses_it() -> None:
    async with serving(reader=0.3) as (server, _, connect):
        _, writer = await connect()
        writer.transport.pause_reading()
        writer.write(GET.replace(b"/ ", b"/large "))
        await until(lambda: len(server.server_state.connections) == 1)
        await until(lambda: not server.server_state.connections)


async def test_what_was_asked_ahead_and_who_does_not_read_delay_no_end() -> None:
    async with serving() as (server, app, connect):
        for _ in range(3):
            _, writer = await connect()
            writer.transport.pause_reading()
            writer.write(GET.replace(b"/ ", b"/large ") * 20)
        await until(lambda: len(server.server_state.tasks) == 3)
        server.should_exit = True
        await until(lambda: not server.server_state.connections)
        await until(lambda: not server.server_state.tasks)
        assert app.ended == ["/large"] * 3


async def test_what_has_arrived_before_the_end_is_answered() -> None:
    """Nothing is awaited until then: what was sent lies at the system, also on a known connection."""
    async with serving() as (server, _, connect):
        reader, writer = await connect(GET)
        await reader.readuntil(b"\r\n\r\n")
        [listener] = server._arrivals._listeners
        sent = [socket.create_connection(listener.getsockname()) for _ in range(20)]
        for each in sent:
            each.sendall(GET)
        known = writer.get_extra_info("socket").dup()
        known.sendall(GET)
        known.close()
        server.should_exit = True
        for each in sent:
            each.setblocking(False)
            with each:
                assert (await asyncio.get_running_loop().sock_recv(each, 100)).startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 200" in await reader.read()


async def test_a_head_without_end_is_refused() -> None:
    async with serving() as (_, _, connect):
        reader, writer = await connect(b"GET / HTTP/1.1\r\nHost: x\r\n")
        flooded = b"X-Header: " + b"a" * 1000 + b"\r\n"
        for _ in range(100):
            writer.write(flooded)
        answer = await told(reader)
        assert answer == b"reset" or answer[9:12] == b"431"


async def test_where_there_are_too_many_those_who_have_waited_longest_make_room() -> None:
    async with serving(most=4) as (server, _, connect):
        stream, _ = await connect(GET.replace(b"/ ", b"/stream "))
        async with deadline(10):
            await stream.readuntil(b"first")
        idle, _ = await connect(GET)
        async with deadline(10):
            await idle.readuntil(b"0\r\n\r\n")
        half, _ = await connect(b"GET / HT")
        body, _ = await connect(HEAD)
        await until(lambda: len(server.server_state.connections) == 4)
        for first_out, said in ((idle, b""), (half, b"503"), (body, b"503")):
            reader, _ = await connect(GET)
            async with deadline(10):
                assert (await reader.readuntil(b"0\r\n\r\n"))[9:12] == b"200"
            assert (await told(first_out))[9:12] == said
        assert not stream.at_eof()


async def test_where_every_connection_is_being_answered_the_new_one_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(most=2) as (_, _, connect):
        for _ in range(2):
            reader, _ = await connect(GET.replace(b"/ ", b"/stream "))
            async with deadline(10):
                await reader.readuntil(b"first")
        with caplog.at_level(logging.WARNING):
            refused, _ = await connect(GET)
            assert re.match(rb"|reset|HTTP/1.1 503", await told(refused))
        assert "http.too_many_connections" in caplog.text


@pytest.mark.slow
async def test_who_has_said_all_does_not_wait_behind_a_crowd_that_has_not() -> None:
    async with serving(most=1000) as (server, _, connect):
        _, first = await connect()
        address = first.get_extra_info("peername")
        crowd = [socket.create_connection(address) for _ in range(300)]  # the loop stands still meanwhile
        for number, one in enumerate(crowd):
            one.sendall((b"", b"GET / HT", HEAD)[number % 3])
        whole = socket.create_connection(address)
        whole.sendall(GET)
        whole.setblocking(False)
        async with deadline(10):
            answer = await asyncio.get_running_loop().sock_recv(whole, 1000)
        assert answer[9:12] == b"200"
        assert len(server.server_state.connections) < 200, "the crowd still waits to begin"
        await until(lambda: len(server.server_state.connections) == 302)
        for one in (whole, *crowd):
            one.close()
