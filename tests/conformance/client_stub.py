"""What the suite starts as a client: says over a socket what it wants, and exits as it is told."""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as told:
    told.connect(os.environ["CONFORMANCE_SOCKET"])
    names = ("MCP_CONFORMANCE_SCENARIO", "MCP_CONFORMANCE_CONTEXT")
    told.sendall("\0".join([sys.argv[-1], *(os.environ.get(name, "") for name in names)]).encode() + b"\n")
    raise SystemExit(0 if told.recv(1) == b"0" else 1)
