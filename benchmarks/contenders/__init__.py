"""The queues that are measured, each behind the same small interface."""
