"""Penstock beside its peers, measured in one run. See README.md."""
