"""Views: the JSON representation of everything that HTTP, MCP and `--json` return."""
