"""Rows and rules that every store with tables shares."""
