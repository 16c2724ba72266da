"""Penstock for agents: tools over the Model Context Protocol, on stdio and over HTTP."""
