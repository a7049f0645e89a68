"""What else than tools a server of MCP offers, asked by the MCP door for one of its clients."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError

from dragoman.connections.pool import Connections
from dragoman.connections.source import Question
from dragoman.connector import Connector
from dragoman.errors import NotFound
from dragoman.hub.registry import Registry
from dragoman.scope import Caller
from dragoman.tool import Line
