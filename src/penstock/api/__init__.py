"""The app as remote callers see it: one tenant's view, queue depth, and conditions that need attention."""
