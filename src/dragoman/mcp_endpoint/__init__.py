"""Dragoman as one MCP server, for the user of the given key."""
