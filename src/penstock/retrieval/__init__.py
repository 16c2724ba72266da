"""Retrieval quality: terms, ranks, fusion, snippets. Pure, no I/O."""
