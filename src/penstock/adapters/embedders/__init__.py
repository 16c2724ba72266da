"""Embedders: one inside the process, and any that is served over HTTP."""
