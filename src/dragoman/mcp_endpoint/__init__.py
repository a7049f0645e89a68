"""The MCP door: Dragoman as one MCP server, over HTTP and over stdin and stdout, in both eras."""

from dragoman.mcp_endpoint.endpoint import McpEndpoint

__all__ = ["McpEndpoint"]
