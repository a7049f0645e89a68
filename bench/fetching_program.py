"""For `boxes.py`: a service that sends as many bytes as it is asked for, and who fetches them and says how
long it took. A process each: what they cost is not the cost of the proxy.
"""

import json
import socket
import sys
import threading
import time

_BLOCK = b"x" * (1024 * 1024)
_BURST = 128 * 1024
_PROXY = ("127.0.0.2", 3128)


def serve() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=_answer, args=(server.accept()[0],), daemon=True).start()


def _answer(one: socket.socket) -> None:
    with one:
        size, rate = map(int, one.makefile("rb").readline().split())
        began, sent = time.perf_counter(), 0
        while sent < size:
            sent += len(block := _BLOCK[: min(size - sent, _BURST if rate else len(_BLOCK))])
            one.sendall(block)
            if rate and (early := sent / rate - (time.perf_counter() - began)) > 0:
                time.sleep(early)


def fetch(port: int, through: bool, times: int, size: int, rate: int) -> None:
    """`rate` are bytes a second that the service sends at most, as a link would; 0 is all that it can."""
    print(json.dumps([_fetched(port, through, size, rate) for _ in range(times)]))


def _fetched(port: int, through: bool, size: int, rate: int) -> float:
    taken = bytearray(1024 * 1024)
    began = time.perf_counter()
    with socket.create_connection(_PROXY if through else ("127.0.0.1", port)) as one:
        if through:
            one.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            one.recv(1000)
        one.sendall(b"%d %d\n" % (size, rate))
        while one.recv_into(taken):
            pass
    return time.perf_counter() - began


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        port, through, times, size, rate = map(int, sys.argv[2:])
        fetch(port, bool(through), times, size, rate)
