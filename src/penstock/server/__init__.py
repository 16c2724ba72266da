"""The HTTP server: translates between HTTP and the library, without decisions of its own."""
