"""Reads requests from message brokers: translates, never decides."""
