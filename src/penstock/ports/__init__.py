"""Protocols of what the engine needs from outside; adapters implement them."""
