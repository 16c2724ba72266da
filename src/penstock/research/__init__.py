"""Research: what others have published, found and put in order."""
