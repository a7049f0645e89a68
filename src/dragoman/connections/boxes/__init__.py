"""Programs in a box: what a server that we start may see, reach and use. Knows no MCP."""
