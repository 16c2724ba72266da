"""Lane rules: what may start now, and what an outage means. Pure functions, no I/O."""
