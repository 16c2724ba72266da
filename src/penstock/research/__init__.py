"""Research: searches providers, merges the results, reads the pages."""
