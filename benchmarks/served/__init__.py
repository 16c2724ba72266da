"""Penstock and its peers on one server: Redis, PostgreSQL."""
