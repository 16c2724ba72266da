"""Outbound requests: HTTP under a lane and a deadline, and the guard against private networks."""
