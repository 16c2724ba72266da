"""Blob stores: where original files are until they are no longer needed."""
