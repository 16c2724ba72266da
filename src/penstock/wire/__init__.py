"""Views: everything callers are told, in the one form it has over HTTP, MCP and in `--json`."""
