"""Implementations of the ports: databases, models, browsers, files."""
