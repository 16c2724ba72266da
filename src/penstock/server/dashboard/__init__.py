"""The dashboard: what the API tells and does, as pages for people."""
