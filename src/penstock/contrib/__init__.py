"""Penstock in other frameworks: each part is imported by who uses that framework."""
