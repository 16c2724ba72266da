"""Requests that come as messages: translates, never decides."""
