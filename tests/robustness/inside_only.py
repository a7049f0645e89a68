"""`dragoman serve` in a process that cannot reach beyond this machine, whatever it is asked."""

import sys
from typing import Any

from dragoman.cli import main

_INSIDE = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "", None}


def _stay_inside(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
        if (host.decode() if isinstance(host, bytes) else host) not in _INSIDE:
            raise OSError("this process stays on its machine")
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in _INSIDE:
            raise OSError("this process stays on its machine")


if __name__ == "__main__":
    sys.addaudithook(_stay_inside)
    sys.argv = ["dragoman", "serve", "--port", "0"]
    main()
