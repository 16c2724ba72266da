"""Blob stores for original files."""
