"""A file for each screen: its page, its live part, what can be done on it."""
