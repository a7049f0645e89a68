"""How to reach every source of tools: MCP servers over three wires, and functions of this process."""
