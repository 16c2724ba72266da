"""Documents: how fast they become searchable, in how much memory, and how fast they are found."""
