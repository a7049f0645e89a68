"""The head of an answer goes out with its body: the same bytes as apart, in fewer packets."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from dragoman.web.http_server import AnswerWriter


class Packets:
    """Stands for the socket: what was handed to it, piece by piece."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        if data:
            self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True


def answered(method: str, status: int, length: int | None, pieces: list[bytes], *, together: bool) -> Packets:
    """What uvicorn writes for this answer; an app that says a wrong length fails in the middle."""
    packets: Any = Packets()
    log = logging.getLogger("tests.quiet")
    log.disabled = True
    headers = [] if length is None else [(b"content-length", b"%d" % length)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def run() -> None:
        cycle = RequestResponseCycle(
            scope={"type": "http", "method": method, "path": "/", "headers": []},  # type: ignore[typeddict-item]
            transport=packets,
            flow=FlowControl(packets),
            logger=log,
            access_logger=log,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=lambda: None,
        )
        if together:
            writer: Any = AnswerWriter(packets, cycle)
            cycle.transport = writer
        await cycle.run_asgi(app)

    asyncio.run(run())
    return packets


@given(
    st.sampled_from(["GET", "POST", "HEAD"]),
    st.sampled_from([200, 204, 304, 404]),
    st.lists(st.sampled_from([b"", b"x", b"word" * 100, b"y" * 300_000]), max_size=3),
    st.sampled_from([None, 0, -1, 1]),
)
def test_the_bytes_are_those_of_an_answer_in_pieces(
    method: str, status: int, pieces: list[bytes], wrong: int | None
) -> None:
    """`wrong` is by how much the length that is said differs; None: none is said."""
    length = None if wrong is None else max(0, sum(map(len, pieces)) + wrong)
    apart = answered(method, status, length, pieces, together=False)
    joined = answered(method, status, length, pieces, together=True)
    assert (b"".join(joined.sent), joined.is_closed) == (b"".join(apart.sent), apart.is_closed)
    assert len(joined.sent) <= len(apart.sent)


@pytest.mark.parametrize(("length", "expected"), [(4, 1), (None, 3)], ids=["known", "a stream"])
def test_a_short_answer_is_one_packet_and_a_stream_begins_at_once(length: int | None, expected: int) -> None:
    assert len(answered("POST", 200, length, [b"word"], together=True).sent) == expected
