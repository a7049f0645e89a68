"""Bodies of requests, read no further than a limit: nobody fills our memory."""

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from dragoman.errors import CallerFault
from dragoman.web.problems import TooLarge

MAX_BODY = 16 * 1024 * 1024


async def read_body(receive: Receive, limit: int, declared: str = "") -> bytes:
    """`declared` is the header Content-Length where it is at hand: what is too large by it stays unread."""
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    message = await receive()
    if not message.get("more_body"):
        body: bytes = message.get("body", b"")
    else:
        parts = bytearray(message["body"])
        while message.get("more_body") and len(parts) <= limit:
            message = await receive()
            parts += message.get("body", b"")
        body = bytes(parts)
    if message["type"] == "http.disconnect":
        raise CallerFault("the request ended before its body did")
    if len(body) > limit:
        raise _too_large(limit)
    return body


def limited(receive: Receive, limit: int) -> Receive:
    """For whoever reads the body with a framework; it answers 413."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            # FastAPI and Starlette let only this kind of error through while they read a body.
            raise HTTPException(413, _too_large(limit).message)
        return message

    return receive_limited


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"the body of a request may have at most {limit:,} bytes",
        hint="write large data to a file that the tool can read, and pass its name",
    )
