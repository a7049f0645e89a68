"""The process that turns documents into tools: `python -m dragoman.connections.openapi.worker`.

Reading a large document holds the interpreter for longer than other callers may wait, and a document
made to be slow must be stoppable: so it happens here. A request is a length, JSON and the document
itself; an answer is frames of a length, a kind and JSON. Ends when its input does.
"""

import sys
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO

import orjson

from dragoman.connections.openapi.conversion import Conversion, DocumentOrigin, OperationFilter
from dragoman.connections.openapi.parsing import parse
from dragoman.connections.openapi.untrusted_json import DocumentFault, Object

LENGTH = Struct(">I")
TOOLS, END = b"T", b"E"
_FRAME = 64 * 1024  # small enough to be read within a millisecond


def answers(request: Object, data: bytes) -> Iterator[bytes]:
    """Frames of tools, then one that says what was skipped; or one that says what is wrong."""
    try:
        document = parse(data)
        conversion = Conversion(
            document, DocumentOrigin(**request["origin"]), OperationFilter(**request["wanted"])
        )
        waiting: list[Object] = []
        size = 0
        for tool in conversion.tools():
            waiting.append(tool)
            size += len(orjson.dumps(tool))
            if size > _FRAME:
                yield TOOLS + orjson.dumps(waiting)
                waiting, size = [], 0
        yield TOOLS + orjson.dumps(waiting)
        yield END + orjson.dumps({"about": conversion.about(), "skipped": conversion.skipped})
    except DocumentFault as fault:
        yield END + orjson.dumps({"fault": fault.message, "hint": fault.hint})
    except Exception as error:  # noqa: BLE001 - boundary: whatever a document does, the next one is read
        words = f"{type(error).__name__}: {error!s:.200}"
        yield END + orjson.dumps({"fault": f"the document cannot be read: {words}", "hint": None})


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        request = orjson.loads(requests.read(LENGTH.unpack(head)[0]))
        for frame in answers(request, requests.read(request["size"])):
            replies.write(LENGTH.pack(len(frame)) + frame)
            replies.flush()


def main() -> None:
    # References may be chained further than Python's own limit; its frames live on the heap.
    sys.setrecursionlimit(1_000_000)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
