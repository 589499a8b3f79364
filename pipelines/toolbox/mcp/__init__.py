"""MCP servers over HTTP and standard input and output."""
