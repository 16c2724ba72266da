"""Builds an app: its queue, its store, its services, and the operations of its queue."""
