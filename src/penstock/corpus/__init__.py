"""What decides how well documents are found: terms, ranks, fusion, snippets. Pure, no I/O."""
