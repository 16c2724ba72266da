"""The app as remote callers see it: a tenant's view, queue depth, and what needs attention."""
